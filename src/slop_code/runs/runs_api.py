"""Python interface to whole runs: `evaluate_run` and `evaluate_run_async` yield the outcome of each submission."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from pathlib import Path
from queue import SimpleQueue
from types import NoneType
from typing import TYPE_CHECKING, Any, ParamSpec

from slop_code._arguments import (
    check_items,
    check_optional_folder,
    check_path,
    check_texts,
    check_type,
    same_parameters,
    wrong_argument,
)
from slop_code.errors import UsageError
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import EvaluationCancelledError
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.runs.discover import UNNAMED_RUN, DiscoveredRun, discover
from slop_code.runs.executors import check_executor
from slop_code.runs.jobs.job_records import Submission, SubmissionOutcome
from slop_code.runs.jobs.plan import Shard
from slop_code.runs.jobs.run_control import Retries, RunControl
from slop_code.runs.run_evaluation import RunSettings, open_runs
from slop_code.runs.run_layout import real_path

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence

    Runs = Path | str | Sequence[Path | str] | Sequence[Submission]
    OutcomeGenerator = Generator[SubmissionOutcome, None, None]
    StreamItem = SubmissionOutcome | BaseException | None
    """An outcome, the error that ended the evaluation, or None at its end."""

FOREIGN_STEP = "give output=, a folder for all results, or replace=True to rename these files and go on"

Options = ParamSpec("Options")


class BackgroundRun:
    """A thread that passes each outcome to `send`, then the error that ended it or None."""

    def __init__(self, outcomes: OutcomeGenerator, control: RunControl, send: Callable[[StreamItem], object]) -> None:
        self._outcomes, self._control, self._send = outcomes, control, send
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="slop-code run")
        self._thread.start()

    def _run(self) -> None:
        end: BaseException | None = None
        try:
            with contextlib.closing(self._outcomes):
                for outcome in self._outcomes:
                    self._send(outcome)
        except BaseException as error:  # noqa: BLE001  (the reader raises it)
            end = error
        self._ended = True
        self._send(end)

    def stop(self) -> None:
        """Does nothing after the end: the caller may use the control for another run."""
        if not self._ended:
            self._control.stop()

    def join(self) -> None:
        self._thread.join()


def in_background(outcomes: Callable[Options, OutcomeGenerator]) -> Callable[Options, OutcomeGenerator]:
    """Run a generator with an option `control` in a thread, so that jobs never wait for the reader."""

    @functools.wraps(outcomes)
    def read_outcomes(*args: Options.args, **options: Options.kwargs) -> OutcomeGenerator:
        control = options["control"] = _checked_control(options.get("control"))
        queue: SimpleQueue[StreamItem] = SimpleQueue()
        background = BackgroundRun(outcomes(*args, **options), control, queue.put)
        try:
            while (item := queue.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            background.stop()
            background.join()

    return read_outcomes


@in_background
def evaluate_run(
    runs: Runs,
    *,
    problems_dir: Path | str | None = None,
    problems: Collection[str] = (),
    environment: EnvironmentSpec | Path | str | None = None,
    workers: int | None = None,
    executor: str = "threads",
    address: str | None = None,
    retries: Retries | None = None,
    overwrite: bool = False,
    shard: Shard | None = None,
    output: Path | str | None = None,
    replace: bool = False,
    cache: Path | str | None = None,
    control: RunControl | None = None,
) -> Generator[SubmissionOutcome, None, None]:
    """Outcomes as they come: of run folders, whose results and summaries are written there, or of submissions.

    With `output`, nothing is written in the run folders: results go to a mirrored tree in that folder. Files of other
    programs in the place of results are a UsageError before anything is evaluated, or are renamed with `replace`.

    Never raises for what a submission does. Issues without an outcome of their own are raised as a single UsageError
    after the last outcome. Closing the generator cancels running jobs; a `RunControl` does so from outside.
    """
    given = _checked_runs(runs)
    problems_folder = check_optional_folder("problems_dir", problems_dir)
    only = check_texts("problems", problems, "a list of names of problems")
    check_type("workers", workers, (int, NoneType), "a number, or None")
    check_executor(executor)
    check_type("address", address, (str, NoneType), "the address of a cluster, or None")
    check_type("retries", retries, (Retries, NoneType), "a Retries, or None")
    check_type("overwrite", overwrite, (bool,), "True or False")
    check_type("shard", shard, (Shard, NoneType), "a Shard, or None")
    output_folder = check_optional_folder("output", output)
    check_type("replace", replace, (bool,), "True or False")
    cache_folder = check_optional_folder("cache", cache)
    control = _checked_control(control)
    settings = RunSettings(
        workers=workers,
        executor=executor,
        address=address,
        retries=retries or Retries(),
        overwrite=overwrite,
        shard=shard,
        partial=bool(only),
        foreign_step=None if replace else FOREIGN_STEP,
        output=output_folder,
    )
    discovered = _discover(given, problems_folder, only, _checked_environment(environment), output_folder)
    with open_runs(discovered, Cache.at(cache_folder) if cache_folder else Cache.default(), settings) as evaluation:
        evaluation.remember_origins(None if isinstance(environment, EnvironmentSpec | NoneType) else str(environment))
        yield from evaluation.outcomes_without_jobs()
        if evaluation.plan.jobs:
            with (
                contextlib.suppress(EvaluationCancelledError),
                evaluation.executor(control=control) as job_executor,
            ):
                for event in evaluation.events(job_executor, control):
                    if isinstance(event, SubmissionOutcome):
                        yield event
        evaluation.conclude()
        if issues := evaluation.plan.discovered_issues:
            raise UsageError("\n".join(f"{issue.label}: {issue.reason}" for issue in issues))


@same_parameters(evaluate_run)
async def evaluate_run_async(*args: Any, **options: Any) -> AsyncGenerator[SubmissionOutcome, None]:
    """As `evaluate_run`, with its options, for a program with an event loop.

    When the task that waits for an outcome is cancelled, or the generator is closed, running jobs are cancelled and
    cleaned up before the cancellation goes on.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[StreamItem] = asyncio.Queue()
    control = options["control"] = _checked_control(options.get("control"))

    def send(item: StreamItem) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, item)

    background = BackgroundRun(inspect.unwrap(evaluate_run)(*args, **options), control, send)
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        background.stop()
        await _join(background)


async def _join(background: BackgroundRun) -> None:
    """Waits for the end even if the waiting task is cancelled again and again."""
    joining = asyncio.ensure_future(asyncio.to_thread(background.join))
    cancelled: asyncio.CancelledError | None = None
    while not joining.done():
        try:
            await asyncio.shield(joining)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _checked_control(control: object) -> RunControl:
    if control is None:
        return RunControl()
    if not isinstance(control, RunControl):
        raise wrong_argument("control", control, "a RunControl, or None")
    return control


def _checked_runs(runs: Runs) -> list[Path | Submission]:
    expected = "the folder of a run, or a list of folders or of Submissions"
    given = [runs] if isinstance(runs, str | Path) else check_items("runs", runs, expected)
    return [item if isinstance(item, Submission) else check_path("runs", item, expected) for item in given]


def _checked_environment(environment: EnvironmentSpec | Path | str | None) -> EnvironmentSpec | None:
    if environment is None or isinstance(environment, EnvironmentSpec):
        return environment
    check_path("environment", environment, "a name, a path, an EnvironmentSpec or None")
    return load_environment(environment)


def _discover(
    given: Sequence[Path | Submission],
    problems_dir: Path | None,
    problems: Collection[str],
    environment: EnvironmentSpec | None,
    output: Path | None,
) -> list[DiscoveredRun]:
    folders = [item for item in given if isinstance(item, Path)]
    submissions = tuple(item for item in given if isinstance(item, Submission))
    _check_outputs(submissions)
    discovered = discover(folders, problems_dir=problems_dir, environment=environment, only=problems, output=output)
    return [*discovered, DiscoveredRun(UNNAMED_RUN, None, submissions)] if submissions else discovered


def _check_outputs(submissions: Sequence[Submission]) -> None:
    """An output inside a submission could be read by it; two results in the same output would overwrite each other."""
    paths = {real_path(submission.path): submission for submission in submissions}
    outputs: dict[Path, Submission] = {}
    for submission in submissions:
        if submission.output is None:
            continue
        output = real_path(submission.output)
        if inside := next((paths[folder] for folder in (output, *output.parents) if folder in paths), None):
            raise UsageError(f"{submission.output} lies inside the submission {inside.path}; keep them apart")
        if other := outputs.get(output):
            both = f"{other.path} and {submission.path}"
            raise UsageError(f"{submission.output}: the output of both {both}; give each its own")
        outputs[output] = submission
