"""Functions of the public API that belong to no layer: the evaluation of a snapshot, and loaders."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from slop_code._arguments import check_optional_folder, check_path, same_parameters
from slop_code.evaluation.evaluator.evaluator import Evaluator
from slop_code.evaluation.evaluator.evaluator_records import EvaluatorRequest
from slop_code.evaluation.problem.problem_lookup import find_problem
from slop_code.execution.environment import check_environment
from slop_code.execution.environment import load_environment as load_named_environment
from slop_code.runs.folders.result_folders import result_at
from slop_code.runs.scb.load_result import load_result

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.environment import EnvironmentSpec


def load_problem(problem: str | Path, problems_dir: str | Path | None = None) -> ProblemConfig:
    """A problem by the path of its folder, or by its name in `problems_dir`.

    The default of `problems_dir` is `$SCBENCH_PROBLEMS_DIR`, else the first of `$SCBENCH_PROBLEMS_PATH`,
    `$SCBENCH_HOME/problems` and `problems` that has the problem.
    """
    check_path("problem", problem, "the path or the name of a problem")
    folder = check_optional_folder("problems_dir", problems_dir)
    return find_problem(os.fspath(problem), folder)


def load_environment(environment: str | Path) -> EnvironmentSpec:
    """An environment that ships with the package by its name, or any other by the path of its YAML file."""
    check_environment(environment)
    return load_named_environment(environment)


def load_results(path: str | Path) -> CorrectnessResults:
    """A stored result: an `evaluation.json`, also one of the SlopCodeBench runner, or the folder that holds it."""
    file = check_path("path", path, "the path of an evaluation.json")
    return load_result(result_at(file) if file.is_dir() else file)


@same_parameters(EvaluatorRequest)
def evaluate(*arguments: Any, **options: Any) -> CorrectnessResults:
    """Evaluate a submission against a checkpoint, by default in the problem's own environment, else `local`.

    The submission is a folder, a tar archive (bytes, a path ending in .tar, .tar.gz or .tgz, or a file that is open in
    binary mode), or a mapping of names to contents.

    A failure of the submission is part of the result, never an exception. `results.passes()` answers for `policy`,
    which may be a name or an expression. With `output`, the result and its evidence are stored in that folder, where
    an infrastructure failure replaces no verdict on the same submission. An evaluation.json of another program there
    is a UsageError, or is renamed with `replace`.
    """
    with Evaluator(workers=1) as evaluator:
        return evaluator.evaluate(*arguments, **options)


@same_parameters(EvaluatorRequest)
async def evaluate_async(*arguments: Any, **options: Any) -> CorrectnessResults:
    """As `evaluate`, in a thread. When the task is cancelled, the evaluation ends and is cleaned up first."""
    async with Evaluator(workers=1) as evaluator:
        return await evaluator.evaluate_async(*arguments, **options)
