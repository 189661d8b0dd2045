"""Problem folders for the arguments of a command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.problem.problem_lookup import environment_word, problems_folders
from slop_code.execution.environment import load_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec

CONFIG = "config.yaml"
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
    folders = next((inner for folder in searched if (inner := problems_in(folder))), [])
    if not folders:
        names = ", ".join(map(str, searched))
        raise UsageError(f"{names}: has no problem, and there is no {CONFIG} here; give the path of a problem's folder")
    return folders


def problems_in(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))


def _folders_for(given: str, problems_dir: Path | None) -> list[Path]:
    path = Path(given)
    if os.path.exists(path / CONFIG):
        return [path]
    named = [folder / given for folder in problems_folders(problems_dir)] if "/" not in given else []
    if existing := [folder for folder in named if os.path.exists(folder / CONFIG)]:
        return existing[:1]
    folders = problems_in(path)
    if not folders:
        fact = f"has neither a {CONFIG} nor a folder of a problem" if os.path.isdir(path) else "no such folder"
        raise UsageError(f"{given}: {fact}; give a problem's folder, or its name and --problems-dir")
    return folders
