"""One job, wherever it runs."""

from __future__ import annotations

import time
import traceback
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.cancellation import EvaluationCancelledError, check_cancelled
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.discover import RESULT_FILE
from slop_code.runs.job_records import JobResult
from slop_code.runs.result_archive import pack

if TYPE_CHECKING:
    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.runs.job_records import JobRequest


def run_job(work: JobRequest, cache: Cache, progress: ProgressCallback = lambda _: None) -> JobResult:
    """Never raises: whatever happens is an outcome, and what is no verdict has a reason."""
    began = time.monotonic()

    def failed(reason: str, *, final: bool = False) -> JobResult:
        return JobResult.failed(reason, work.attempts, final=final, duration=time.monotonic() - began)

    try:
        return _evaluated(work, cache, progress)
    except (EvaluationCancelledError, UsageError) as error:
        return failed(str(error), final=True)
    except InfrastructureError as error:
        return failed(str(error))
    except OSError as error:
        return failed(f"{error.filename or cache.root}: {error.strerror}; is the disk full, or the cache not writable?")
    except Exception:  # noqa: BLE001  (a defect of ours is no verdict, and no end of the other jobs)
        return failed(f"an error in slop-code itself\n{traceback.format_exc()}")


def _evaluated(work: JobRequest, cache: Cache, progress: ProgressCallback) -> JobResult:
    check_cancelled()
    checkpoint = work.problem.checkpoints[work.checkpoint]
    with cache.session_folder() as folder:
        output = folder / "result"
        output.mkdir()
        runner = PytestRunner(
            work.problem,
            checkpoint,
            work.environment,
            work.submission,
            output_dir=output,
            cache=cache,
            progress=progress,
            most_pairs=work.weight,
            hidden=work.hidden,
        )
        results = runner.run().model_copy(update={"attempts": list(work.attempts)})
        results.save(output / RESULT_FILE)
        return JobResult(CheckpointFacts.of(results), pack(output))
