"""Rerun of a stored result: the lookup of its submission, problem and environment, and the new evaluation."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.problem.problem_lookup import problem_of
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.evaluation.result_files.origin import origin_in
from slop_code.evaluation.result_files.stored_evaluation import evaluate_and_store
from slop_code.execution.environment import load_environment
from slop_code.runs.discover import environment_in
from slop_code.runs.folders.result_folders import LEVELS
from slop_code.runs.jobs.job_records import Submission
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SNAPSHOT, stored_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.evaluation.result_files.stored_evaluation import StoredEvaluation
    from slop_code.execution.progress_events import ProgressCallback

LIVE = ("-s",)
"""pytest prints the output of tests at once, and does not capture it for the reports."""


@dataclass(frozen=True, slots=True)
class RerunInputs:
    """Inputs that the user names, each None for the input that the result was made from."""

    snapshot: Path | None = None
    problem: str | None = None
    problems_dir: Path | None = None
    environment: str | None = None
    output: Path | None = None


def submission_of(stored: CorrectnessResults, folder: Path, given: RerunInputs) -> Submission:
    """The submission of a result in `folder`. Named inputs come before those of its origin."""
    above = folder.resolve().parent
    origin = origin_in([folder, above, above.parent])
    code = given.snapshot or (Path(origin.snapshot) if origin.snapshot else stored_snapshot(folder))
    if not os.path.isdir(code):
        step = "give --snapshot, the folder with the submission's files"
        raise UsageError(f"{code}: no such folder; {step}")
    if given.output is not None and _is_taken(given.output, folder):
        raise UsageError(f"{given.output}: a stored result or a submission lies there; give another folder with -o")
    problem, problems_dir = given.problem, given.problems_dir
    if problem is None and problems_dir is None:
        problem = origin.problem
        problems_dir = Path(origin.problems_dir) if origin.problems_dir else None
    config = problem_of(stored.problem_name, problem, problems_dir)
    named = given.environment or origin.environment
    spec = load_environment(named) if named is not None else environment_in(above, above.parent, config.path)
    if isinstance(spec, UsageError):
        raise spec
    return Submission(
        problem=config,
        checkpoint=config.checkpoint(stored.checkpoint_name),
        environment=spec,
        path=code,
        output=given.output,
    )


def _is_taken(output: Path, folder: Path) -> bool:
    """Whether the folder has this result, perhaps through a link, or is that of another checkpoint of a run."""
    return (output / RESULT_FILE).resolve() == (folder / RESULT_FILE).resolve() or os.path.lexists(output / SNAPSHOT)


def evaluate_again(
    stored: CorrectnessResults, folder: Path, submission: Submission, progress: ProgressCallback
) -> StoredEvaluation:
    """Uses the pytest arguments of the stored result. The result is stored if the submission has an output folder."""
    return evaluate_and_store(_runner(folder, submission, progress), stored.provenance.pytest_args)


def run_single_test(
    test: TestResult, folder: Path, submission: Submission, progress: ProgressCallback, follow: Callable[[bytes], None]
) -> CorrectnessResults:
    """Runs only this test. `follow` gets the output of pytest as it is printed."""
    return _runner(folder, submission, progress, only=[test.nodeid], follow=follow).run(LIVE)


def _runner(
    folder: Path,
    submission: Submission,
    progress: ProgressCallback,
    *,
    only: list[str] | None = None,
    follow: Callable[[bytes], None] | None = None,
) -> PytestRunner:
    """The submission sees no earlier result, neither its own nor another of its run."""
    results = folder.absolute()
    runs = [above for above in list(results.parents)[:LEVELS] if os.path.lexists(above / LINES_FILE)]
    return PytestRunner(
        submission.problem,
        submission.checkpoint,
        submission.environment,
        submission.path,
        output_dir=submission.output,
        progress=progress,
        hidden=[results, *runs],
        only=only,
        follow=follow,
    )
