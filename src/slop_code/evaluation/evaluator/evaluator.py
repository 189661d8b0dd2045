"""`Evaluator`: evaluations of one program, several at a time, with what stays in memory between them."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Iterable
from concurrent.futures import CancelledError, wait
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from slop_code._arguments import check_optional_folder, check_type, same_method_parameters, wrong_argument
from slop_code.errors import InfrastructureError, SlopCodeError, UsageError
from slop_code.evaluation.evaluator.evaluator_records import EvaluatorOutcome, EvaluatorRequest, request_of
from slop_code.evaluation.evaluator.loaded_inputs import LoadedInputs
from slop_code.evaluation.evaluator.submission_source import is_folder, submission_folder
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.evaluation.result_files.stored_evaluation import evaluate_and_store
from slop_code.execution.cache import Cache
from slop_code.execution.cancellation import EvaluationCancelledError, check_cancelled
from slop_code.execution.environment import EnvironmentSpec, check_environment, environment_file
from slop_code.execution.processors import available_cpus
from slop_code.execution.templates import TemplatePool
from slop_code.execution.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Generator
    from concurrent.futures import Future

    from slop_code.evaluation.report import CorrectnessResults

FOREIGN_STEP = "give another folder, or replace=True to rename it and go on"


class Evaluator:
    """At most `workers` evaluations run at a time; more wait. All methods may be called from any thread.

    It keeps no results. Leaving the `with` block waits for what runs, or cancels it where the block ends with an error.
    """

    def __init__(
        self,
        workers: int | None = None,
        environment: str | Path | EnvironmentSpec | None = None,
        *,
        problems_dir: str | Path | None = None,
        cache: str | Path | None = None,
    ) -> None:
        """`workers` is None for as many as processors. `environment` is that of requests without one of their own."""
        check_type("workers", workers, (int, type(None)), "a number, or None")
        if workers is not None and workers < 1:
            raise wrong_argument("workers", workers, "at least 1")
        environments = (str, Path, EnvironmentSpec, type(None))
        check_type("environment", environment, environments, "a name, a path or an EnvironmentSpec")
        self.workers = available_cpus() if workers is None else workers
        self._environment = environment
        self._problems_dir = check_optional_folder("problems_dir", problems_dir)
        if isinstance(environment, str | Path):
            environment_file(check_environment(environment))
        if self._problems_dir is not None and not self._problems_dir.is_dir():
            raise UsageError(f"problems_dir: {self._problems_dir}: no such folder; give the folder of the problems")
        self._cache_folder = check_optional_folder("cache", cache)
        self._cache: Cache | None = None
        self._inputs = LoadedInputs()
        self._templates = TemplatePool()
        self._threads = WorkerThreads(self.workers, "evaluation")
        self._lock = threading.Lock()
        self._closed = False

    @same_method_parameters(EvaluatorRequest)
    def evaluate(self, *arguments: Any, **options: Any) -> CorrectnessResults:
        """As `slop_code.evaluate`. An interrupt ends the evaluation and cleans up before it goes on."""
        future = self._submit(request_of("evaluate", arguments, options))
        self._threads.wait_for(future)
        return _result(future)

    @same_method_parameters(EvaluatorRequest)
    async def evaluate_async(self, *arguments: Any, **options: Any) -> CorrectnessResults:
        """When the task is cancelled, the evaluation ends and is cleaned up before the cancellation goes on."""
        future = self._submit(request_of("evaluate_async", arguments, options))
        await self._threads.wait_for_async(future)
        return _result(future)

    def map(self, requests: Iterable[EvaluatorRequest]) -> Generator[EvaluatorOutcome, None, None]:
        """Outcomes as they finish. An evaluation that fails is an outcome with an error, and ends no other.

        A request is read when a worker is free for it: at most `workers` are in flight, and outcomes that nobody reads
        hold up further requests. They are read in the thread that reads the outcomes. If reading them raises, that is
        raised after the last outcome. Closing the generator cancels what is in flight.
        """
        check_type("requests", requests, (Iterable,), "an iterable of EvaluatorRequests")
        unread = enumerate(requests)
        running: dict[Future[CorrectnessResults], tuple[int, EvaluatorRequest]] = {}
        ended: SimpleQueue[Future[CorrectnessResults]] = SimpleQueue()
        failure: Exception | None = None

        def start() -> None:
            while len(running) < self.workers and (item := next(unread, None)) is not None:
                check_type("requests", item[1], (EvaluatorRequest,), "an iterable of EvaluatorRequests")
                future = self._submit(item[1])
                running[future] = item
                future.add_done_callback(ended.put)

        try:
            while True:
                outcome = None
                if running:
                    future = ended.get()
                    outcome = _outcome(future, *running.pop(future))
                if failure is None:
                    try:
                        start()  # before the outcome is handed on, so that no worker waits for its reader
                    except Exception as error:  # noqa: BLE001  (raised after the last outcome)
                        failure = error
                if outcome is not None:
                    yield outcome
                if not running:
                    break
        finally:
            for future in running:
                self._threads.drop(future)
            wait(running)
        if failure is not None:
            raise failure

    def _submit(self, request: EvaluatorRequest) -> Future[CorrectnessResults]:
        with self._lock:
            if self._closed:
                raise UsageError("the evaluator is closed; make another one")
            return self._threads.submit(self._run, request)

    def _run(self, request: EvaluatorRequest) -> CorrectnessResults:
        check_cancelled()
        problem = self._inputs.problem(request.problem, self._problems_dir)
        checkpoint = problem.checkpoint(request.checkpoint)
        given = request.environment if request.environment is not None else self._environment
        environment, word = self._inputs.environment(problem, given)
        cache, output = self._opened_cache(), None if request.output is None else Path(request.output)
        step = None if request.replace else FOREIGN_STEP
        with submission_folder(request.submission, cache) as folder:
            runner = PytestRunner(
                problem, checkpoint, environment, folder, output_dir=output, cache=cache, templates=self._templates
            )
            temporary = not is_folder(request.submission)
            stored = evaluate_and_store(runner, request.pytest_args, word, foreign_step=step, temporary=temporary)
        return stored.results.with_policy(request.policy)

    def _opened_cache(self) -> Cache:
        """Opened at its first use, so that wrong arguments make no folder."""
        with self._lock:
            if self._cache is None:
                self._cache = Cache.at(self._cache_folder) if self._cache_folder else Cache.default()
            return self._cache

    def close(self, *, cancel: bool = False) -> None:
        """Take no more requests, and wait for those in flight, or cancel them; then free what stayed in memory.

        A cancelled evaluation raises EvaluationCancelledError where it was asked for.
        """
        with self._lock:
            self._closed = True
        if cancel:
            self._threads.drop_all()
        self._threads.close()
        self._templates.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(cancel=kind is not None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await asyncio.to_thread(self.close, cancel=kind is not None)


def _result(future: Future[CorrectnessResults]) -> CorrectnessResults:
    try:
        return future.result()
    except CancelledError:
        raise EvaluationCancelledError from None


def _outcome(future: Future[CorrectnessResults], index: int, request: EvaluatorRequest) -> EvaluatorOutcome:
    """Only a cancellation is raised: a request that fails says nothing about the others."""
    try:
        return EvaluatorOutcome(index, request, _result(future))
    except EvaluationCancelledError:
        raise
    except SlopCodeError as error:
        return EvaluatorOutcome(index, request, error=error)
    except Exception:  # noqa: BLE001  (a defect of slop-code, or of a file that was given)
        reason = f"an error in slop-code itself\n{traceback.format_exc()}"
        return EvaluatorOutcome(index, request, error=InfrastructureError(reason))
