"""Lookup of problems by name or path."""

from __future__ import annotations

import os
from pathlib import Path

from slop_code.errors import UsageError
from slop_code.evaluation.config import ProblemConfig

PROBLEMS_VARIABLE = "SCBENCH_PROBLEMS_DIR"
ENVIRONMENT = "environment.yaml"
"""The environment file in a problem's folder or in the folders of a run."""

DEFAULT_ENVIRONMENT = "local"


def environment_word(problem: ProblemConfig, given: str | None) -> str:
    """The environment that the user gave, else the path of the problem's own, else the name of the default."""
    own = problem.path / ENVIRONMENT
    return given or (str(own) if os.path.lexists(own) else DEFAULT_ENVIRONMENT)


def problems_folder(given: Path | None) -> Path:
    return given or Path(os.environ.get(PROBLEMS_VARIABLE) or "problems")


def is_problems_folder_given(given: Path | None) -> bool:
    """Whether the user named the folder of problems, with an option or with the environment variable."""
    return given is not None or bool(os.environ.get(PROBLEMS_VARIABLE))


def find_problem(name_or_path: str, problems_dir: Path | None) -> ProblemConfig:
    """A folder with a config.yaml, or the name of such a folder in the problems folder."""
    given = Path(name_or_path)
    if "/" in name_or_path or os.path.exists(given / "config.yaml"):
        if not os.path.lexists(given):
            raise UsageError(f"{given}: no such folder; in {given.parent} {_list_problems(given.parent)}")
        return ProblemConfig.from_yaml(given)
    folder = problems_folder(problems_dir)
    if os.path.isdir(folder / name_or_path):
        return ProblemConfig.from_yaml(folder / name_or_path)
    raise UsageError(
        f"no problem {name_or_path!r} in {folder}: {_list_problems(folder)}; "
        f"give the path of its folder, or its parent as --problems-dir or ${PROBLEMS_VARIABLE}"
    )


def _list_problems(folder: Path) -> str:
    known = sorted(path.parent.name for path in folder.glob("*/config.yaml"))
    return f"there are {', '.join(known)}" if known else "there are none"


def problem_of(name: str, given: str | None, problems_dir: Path | None) -> ProblemConfig:
    """The problem that a stored result names; `given`: its name or path from the user."""
    if given is None and "/" in name:
        raise UsageError(f"the result names its problem {name!r}, which is no name; give -p")
    problem = find_problem(name if given is None else given, problems_dir)
    if problem.name != name:
        step = "give -p" if given is None else f"give the folder of {name!r} with -p"
        raise UsageError(f"{problem.path}: this is {problem.name!r}, and the result is of {name!r}; {step}")
    return problem
