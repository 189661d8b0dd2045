"""A whole run, from its folders to its outcomes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.boxes import sandbox_for
from slop_code.execution.cache import Cache
from slop_code.execution.spec import EnvironmentSpec, load_environment
from slop_code.runs.conclude import lines_of, write_summary
from slop_code.runs.control import Control, Retries
from slop_code.runs.discover import LOOSE, Run, discover
from slop_code.runs.executors import Executor, executor_class
from slop_code.runs.folder import holding
from slop_code.runs.index import Index
from slop_code.runs.lines import Facts
from slop_code.runs.plan import Plan, Shard, make_plan
from slop_code.runs.records import Event, Outcome, Submission
from slop_code.runs.schedule import drive
from slop_code.runs.store import Store
from slop_code.runs.summary import RunSummary, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from slop_code.execution.boxes import Progress
    from slop_code.runs.lines import CheckpointLine

    Runs = Path | str | Sequence[Path | str] | Sequence[Submission]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How runs are evaluated; nothing here changes a verdict."""

    workers: int | None = None
    """At a time; None: as many as there are processors."""

    executor: str = "threads"
    address: str | None = None
    """Of the executor's cluster."""

    retries: Retries = field(default_factory=Retries)
    overwrite: bool = False
    shard: Shard | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Runs that are held by us, and what is left to do in them."""

    runs: Sequence[Run]
    plan: Plan
    settings: Settings
    cache: Cache
    store: Store
    indexes: dict[str, Index]
    outcomes: dict[int, Facts] = field(default_factory=dict)
    """By the identity of the submission: two may be equal."""

    @contextlib.contextmanager
    def executor(self, progress: Progress = lambda _: None) -> Iterator[Executor]:
        settings = self.settings
        if settings.executor == "threads":
            self._check_sandboxes(progress)
        executor = executor_class(settings.executor)(settings.workers, settings.address, progress, self.cache)
        try:
            yield executor
        finally:
            executor.close()
            self.store.trim()

    def _check_sandboxes(self, progress: Progress) -> None:
        """A machine that cannot evaluate anything says so once, and an image is fetched once."""
        specs = {job.targets[0].environment.digest(): job.targets[0].environment for job in self.plan.jobs}
        failures = []
        for spec in specs.values():
            try:
                sandbox_for(spec, self.cache, progress)
            except InfrastructureError as error:
                failures.append(error)
        if failures and len(failures) == len(specs):
            raise failures[0]

    def keep(self) -> list[Outcome]:
        """What is up to date counts as an outcome."""
        self.outcomes.update({id(submission): facts for submission, facts in self.plan.kept})
        return [Outcome(submission, facts, "kept") for submission, facts in self.plan.kept]

    def refuse(self) -> list[Outcome]:
        """For whoever waits for one outcome for each submission; in a summary they are troubles."""
        return [Outcome(submission, Facts.none(reason), "evaluated") for submission, reason in self.plan.refused]

    def events(self, executor: Executor, control: Control) -> Iterator[Event]:
        """What happens, as it happens; when this is closed, what runs is ended."""
        settings = self.settings
        driving = drive(
            self.plan.jobs,
            executor,
            self.store,
            retries=settings.retries,
            control=control,
            overwrite=settings.overwrite,
            hidden=[run.folder for run in self.runs if run.folder],
        )
        with contextlib.closing(driving):
            for event in driving:
                if isinstance(event, Outcome):
                    self.outcomes[id(event.submission)] = event.facts
                yield event

    def conclude(self) -> tuple[list[CheckpointLine], RunSummary]:
        """The lines of all runs; each run's own are written into its folder, unless this is a shard of it."""
        every: list[CheckpointLine] = []
        written: list[RunSummary] = []
        for run in self.runs:
            if run.folder is None:
                continue
            lines = lines_of(run, self.plan, self.outcomes, self.indexes[run.name])
            every += lines
            if self.settings.shard is None and (run.submissions or not run.troubles):
                troubles = [one for one in self.plan.troubles if one.run == run.name]
                written.append(write_summary(run.folder, lines, troubles))
            with contextlib.suppress(OSError):  # it only speeds up the next time
                self.indexes[run.name].save()
        alone = len(self.runs) == 1 and len(written) == 1
        return every, written[0] if alone else summarise(every, self.plan.troubles)


@contextlib.contextmanager
def opened(
    runs: Sequence[Run],
    cache: Cache,
    settings: Settings,
    *,
    hold: bool = True,
    first: Callable[[Run], Run] = lambda run: run,
) -> Iterator[Evaluation]:
    """`hold`: nobody else evaluates these folders meanwhile; only a look at the plan needs no such thing.

    `first` is done with each run once it is held, before anything is planned.
    """
    store = Store(cache)
    with holding(runs, settings.shard) if hold else contextlib.nullcontext(list(runs)) as held:
        held = [first(run) for run in held]
        indexes = {run.name: Index.load(run.folder) for run in held}
        plan = make_plan(held, store, indexes, overwrite=settings.overwrite, shard=settings.shard)
        yield Evaluation(held, plan, settings, cache, store, indexes)


def evaluate_run(
    runs: Runs,
    *,
    problems_dir: Path | str | None = None,
    problems: Collection[str] = (),
    environment: EnvironmentSpec | str | None = None,
    workers: int | None = None,
    executor: str = "threads",
    address: str | None = None,
    retries: Retries | None = None,
    overwrite: bool = False,
    shard: Shard | None = None,
    cache: Cache | None = None,
    control: Control | None = None,
    progress: Progress = lambda _: None,
) -> Iterator[Outcome]:
    """Outcomes as they come: of run folders, whose results and summaries are written there, or of submissions.

    Never raises for what a submission does. Closing the generator ends what runs; a `Control` does so from outside.
    """
    settings = Settings(
        workers=workers,
        executor=executor,
        address=address,
        retries=retries or Retries(),
        overwrite=overwrite,
        shard=shard,
    )
    found = _runs(runs, problems_dir, problems, environment)
    with opened(found, cache or Cache.default(), settings) as evaluation:
        yield from evaluation.refuse()
        yield from evaluation.keep()
        if evaluation.plan.jobs:
            with evaluation.executor(progress) as where:
                for event in evaluation.events(where, control or Control()):
                    if isinstance(event, Outcome):
                        yield event
        evaluation.conclude()


def _runs(
    runs: Runs,
    problems_dir: Path | str | None,
    problems: Collection[str],
    environment: EnvironmentSpec | str | None,
) -> list[Run]:
    given: Iterable[Path | str | Submission] = [runs] if isinstance(runs, str | Path) else runs
    folders = [Path(one) for one in given if not isinstance(one, Submission)]
    loose = tuple(one for one in given if isinstance(one, Submission))
    spec = load_environment(environment) if isinstance(environment, str) else environment
    where = Path(problems_dir) if problems_dir is not None else None
    found = discover(folders, problems_dir=where, environment=spec, only=problems)
    return [*found, Run(LOOSE, None, loose)] if loose else found
