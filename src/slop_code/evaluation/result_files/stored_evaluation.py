"""Evaluation of a submission whose result is stored in a folder, where a failure replaces no verdict."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, ResultError, UsageError
from slop_code.evaluation.pytest_arguments import parse_pytest_args, refuse_empty_selection
from slop_code.evaluation.report import RESULT_FILE, CorrectnessResults
from slop_code.evaluation.result_files.attempts import keep_attempt
from slop_code.evaluation.result_files.foreign_files import is_foreign_result, rename_or_refuse
from slop_code.evaluation.result_files.origin import keep_origin, made_result_folder
from slop_code.evaluation.result_files.replace_result import (
    OTHER_FOLDER,
    failed_path,
    finish_replacement,
    move_path,
    move_result,
    new_result,
)
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.pytest_runner import PytestRunner


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    results: CorrectnessResults
    attempt: Path | None = None
    """Folder of what this evaluation left, where the output keeps an earlier verdict on the same submission."""


class NotStoredError(InfrastructureError):
    """The output folder cannot be written."""

    def __init__(self, message: str, results: CorrectnessResults | None) -> None:
        super().__init__(message)
        self.results = results
        """It is None if the folder could not be written before the tests ran."""


def evaluate_and_store(
    runner: PytestRunner,
    pytest_args: Sequence[str],
    environment: str | None = None,
    *,
    foreign_step: str | None = OTHER_FOLDER,
    temporary: bool = False,
) -> StoredEvaluation:
    """Runs the tests; if there is an output folder, the result and its evidence are moved there at the end.

    Raises UsageError if the arguments select no test, and stores nothing then.
    `environment`: the name or the path that the user gave. `foreign_step`: see `rename_or_refuse`, for a result of
    another program in the output folder. `temporary`: the submission's folder is removed afterwards.
    """
    output = runner.output_dir
    results: CorrectnessResults | None = None
    if output is None:
        results = runner.run(pytest_args)
        refuse_empty_selection(results)
        return StoredEvaluation(results)
    runner.check_folders()
    if parse_pytest_args(pytest_args).select:
        check_replaces_no_verdict(output)
    if foreign_step is not None and is_foreign_result(output / RESULT_FILE):
        rename_or_refuse([output / RESULT_FILE], foreign_step)
    aside = copy.copy(runner)
    aside.hidden = [*runner.hidden, output]
    with made_result_folder(output):
        try:
            finish_replacement(output)
            with runner.cache.session_folder() as aside.output_dir:
                results = aside.run(pytest_args)
                refuse_empty_selection(results)
                results.write(aside.output_dir / RESULT_FILE)
                if results.infrastructure_failure and _has_verdict(output, results):
                    return StoredEvaluation(results, _keep_attempt(aside.output_dir, output))
                with new_result(output, foreign_step) as new:
                    move_result(aside.output_dir, new)
        except OSError as error:
            raise NotStoredError(f"{failed_path(error, output)}: {error.strerror}", results) from error
    keep_origin(output, runner.problem, environment, None if temporary else runner.submission_path)
    return StoredEvaluation(results)


def check_replaces_no_verdict(output: Path) -> None:
    """A part of the tests is no verdict, and must not take the place of one.

    A folder with a result of another program stays as it is: whether that is replaced is decided elsewhere.
    """
    if is_foreign_result(output / RESULT_FILE):
        return
    with contextlib.suppress(OSError):  # reported when the result is written
        finish_replacement(output)
    with contextlib.suppress(ResultError):
        stored = CorrectnessResults.load(output / RESULT_FILE)
        if not stored.infrastructure_failure and not stored.partial:
            raise UsageError(
                f"{output}: has a verdict, which a part of the tests must not replace; give another folder"
            )


def _has_verdict(output: Path, failed: CorrectnessResults) -> bool:
    """Whether the folder has a verdict on the same submission as the failed evaluation. The tests may differ."""
    try:
        stored = CorrectnessResults.load(output / RESULT_FILE)
    except ResultError:
        return False
    if stored.infrastructure_failure or stored.partial:
        return False
    if (stored.problem_name, stored.checkpoint_name) != (failed.problem_name, failed.checkpoint_name):
        return False
    return failed.provenance.digests.submission in (None, stored.provenance.digests.submission)


def _keep_attempt(source: Path, output: Path) -> Path:
    reports = [path for path in (source / REPORTS_DIR).rglob("*") if path.is_file() and not path.is_symlink()]
    names = [path.relative_to(source).as_posix() for path in (source / RESULT_FILE, *reports)]
    return keep_attempt(output, names, lambda name, path: move_path(source / name, path))
