"""Evaluation of a job, in whatever thread or process an executor runs it."""

from __future__ import annotations

import contextlib
import time
import traceback
from typing import TYPE_CHECKING

from slop_code._io import os_error_text
from slop_code._safe_text import NAME_LIMIT, escape_control
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.config import AUTO
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.evaluation.report import TestAttempt
from slop_code.evaluation.usage.starvation import is_starved, starvation_text, to_repeat
from slop_code.execution.cache import remove_tree
from slop_code.execution.cancellation import EvaluationCancelledError, check_cancelled
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.jobs.job_records import JobResult
from slop_code.runs.result_archive import pack_result
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.templates import TemplatePool
    from slop_code.runs.jobs.job_records import JobRequest


def run_job(
    request: JobRequest,
    cache: Cache,
    new_folder: Callable[[], Path],
    progress: ProgressCallback = lambda _: None,
    templates: TemplatePool | None = None,
) -> JobResult:
    """Never raises: a job without a verdict has a reason. The result is left in the folder that `new_folder` makes."""
    began = time.monotonic()

    def failed(reason: str, *, final: bool = False) -> JobResult:
        return JobResult.failed(reason, request.attempts, final=final, duration=time.monotonic() - began)

    folder = None
    try:
        check_cancelled()
        folder = new_folder()
        result = _evaluate(request, cache, folder, progress, templates)
        folder = None
        return result
    except (EvaluationCancelledError, UsageError) as error:
        return failed(str(error), final=True)
    except InfrastructureError as error:
        return failed(str(error))
    except OSError as error:
        return failed(os_error_text(error, cache.root))
    except Exception:  # noqa: BLE001  (a defect of slop-code is no verdict, and must not end the other jobs)
        return failed(f"an error in slop-code itself\n{traceback.format_exc()}")
    finally:
        if folder is not None:
            with contextlib.suppress(OSError):  # the executor removes the rest when it is closed
                remove_tree(folder)


def _evaluate(
    request: JobRequest, cache: Cache, output: Path, progress: ProgressCallback, templates: TemplatePool | None
) -> JobResult:
    results = PytestRunner(
        request.problem,
        request.problem.checkpoints[request.checkpoint],
        request.environment,
        request.submission,
        output_dir=output,
        cache=cache,
        progress=progress,
        max_pairs=request.problem.fixed_pairs if request.alone else request.weight,
        hidden=request.hidden,
        repeat_starved=request.alone,
        alone=request.alone,
        unsent=request.unsent,
        templates=templates,
    ).run(request.pytest_args)
    repeat = [] if request.alone or results.infrastructure_failure else to_repeat(results.tests)
    update = {"attempts": list(request.attempts), "tests": _with_attempts(results.tests, request.starved)}
    if repeat:
        update["infrastructure_failure_reason"] = _reason(results.tests)
    results = results.model_copy(update=update)
    results.write(output / RESULT_FILE)
    return JobResult(
        CheckpointFacts.of(results),
        pack_result(output),
        final=results.permanent_failure,
        starved={test.nodeid: TestAttempt.of(test) for test in repeat},
        serial_s=_serial_seconds(results) if request.problem.parallel == AUTO else None,
        folder=output,
    )


def _serial_seconds(results: CorrectnessResults) -> float:
    """What it took, with the tests one after the other."""
    tests = sum(test.duration_ms for test in results.tests) / 1000
    divided = results.isolation.get("pairs", 1) > 1
    return results.duration + max(0.0, tests - results.phases["tests"]) if divided else results.duration


def _reason(tests: Sequence[TestResult]) -> str:
    """The reason to evaluate again, alone, where the machine had too little for a verdict."""
    starved = [test for test in tests if is_starved(test)]
    first = f"{escape_control(starved[0].nodeid, NAME_LIMIT)} {starvation_text(starved[0])}"
    return f"{len(starved)} of {len(tests)} tests were starved, the first: {first}"


def _with_attempts(tests: Sequence[TestResult], earlier: Mapping[str, TestAttempt]) -> list[TestResult]:
    return [
        test.model_copy(update={"attempts": [earlier[test.nodeid], *test.attempts]}) if test.nodeid in earlier else test
        for test in tests
    ]
