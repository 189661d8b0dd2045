"""Problem folders for the arguments of a command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.problem.problem_lookup import (
    CONFIG,
    environment_word,
    find_folder,
    problem_folder,
    problems_folders,
    problems_in,
    shown_folders,
    without_config,
)
from slop_code.execution.environment import load_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec

SOLUTIONS = "solutions"


def environment_for(problem: ProblemConfig, given: str | None) -> EnvironmentSpec:
    """The environment that the user named, otherwise the problem's own, otherwise `local`."""
    return load_environment(environment_word(problem, given))


def problem_folders(given: Sequence[str], problems_dir: Path | None) -> list[Path]:
    """Arguments are folders of problems, parents of such folders, or names.

    No arguments stand for the current folder, if it is a problem, and otherwise for all of the first problems folder
    that has any.
    """
    if given:
        return list(dict.fromkeys(folder for argument in given for folder in _folders_for(argument, problems_dir)))
    if os.path.exists(CONFIG):
        return [Path()]
    searched = problems_folders(problems_dir)
    folders = next((list(inner.values()) for folder in searched if (inner := problems_in(folder))), [])
    if not folders:
        fact = f"{shown_folders(searched)}: has no problem, and {without_config(Path())}"
        raise UsageError(f"{fact}; give the path of a problem's folder")
    return folders


def _folders_for(given: str, problems_dir: Path | None) -> list[Path]:
    path = Path(given)
    if os.path.exists(path / CONFIG):
        return [path]
    if "/" not in given and (named := find_folder(given, problems_folders(problems_dir))) is not None:
        return [named]
    folders = list(problems_in(path).values())
    if folders:
        return folders
    if not os.path.isdir(path):
        return [problem_folder(given, problems_dir)]
    raise UsageError(without_config(path))
