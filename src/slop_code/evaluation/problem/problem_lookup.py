"""Lookup of problems by name or path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._suggestions import SHOWN_NAMES, did_you_mean, first_names, known_names, nearest
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.config import ProblemConfig

PROBLEMS_VARIABLE = "SCBENCH_PROBLEMS_DIR"
PATH_VARIABLE = "SCBENCH_PROBLEMS_PATH"
"""The folder of problems that SlopCodeBench uses; it comes after the folder that a run remembers."""

HOME_VARIABLE = "SCBENCH_HOME"
DEFAULT_HOME = "~/.cache/scbench"
DEFAULT_PROBLEMS = Path("problems")
CONFIG = "config.yaml"
"""The file that makes a folder the folder of a problem."""

ENVIRONMENT = "environment.yaml"
"""The environment file in a problem's folder or in the folders of a run."""

DEFAULT_ENVIRONMENT = "local"


def environment_word(problem: ProblemConfig, given: str | None) -> str:
    """The environment that the user gave, else the path of the problem's own, else the name of the default."""
    own = problem.path / ENVIRONMENT
    return given or (str(own) if os.path.lexists(own) else DEFAULT_ENVIRONMENT)


def named_problems_folder(given: Path | None) -> Path | None:
    """The folder of problems that the user named, with an option or with the environment variable."""
    variable = os.environ.get(PROBLEMS_VARIABLE)
    return given or (Path(variable) if variable else None)


def problems_folders(given: Path | None) -> list[Path]:
    """Folders in which a problem is looked up by its name, in this order: the named one alone, or all others.

    The folder that a run remembers comes between the two.
    """
    named = named_problems_folder(given)
    if named is not None:
        return [named]
    path = os.environ.get(PATH_VARIABLE)
    home = Path(os.environ.get(HOME_VARIABLE) or os.path.expanduser(DEFAULT_HOME)) / "problems"
    return [*([Path(path)] if path else []), *([home] if home.is_dir() else []), DEFAULT_PROBLEMS]


def find_folder(name: str, folders: Sequence[Path]) -> Path | None:
    """The folder of the problem with this name, in the first of these folders that has it."""
    return next((folder / name for folder in folders if os.path.exists(folder / name / CONFIG)), None)


def problems_in(*folders: Path) -> dict[str, Path]:
    """Folders of problems by their names, in order; of two with one name, the one that `find_folder` takes."""
    by_name = {path.parent.name: path.parent for folder in reversed(folders) for path in folder.glob(f"*/{CONFIG}")}
    return dict(sorted(by_name.items()))


def find_problem(name_or_path: str, problems_dir: Path | None) -> ProblemConfig:
    """A folder with a config.yaml, or the name of such a folder in the problems folder."""
    from slop_code.evaluation.config import ProblemConfig  # late: the options of commands need only the names above

    return ProblemConfig.from_yaml(problem_folder(name_or_path, problems_dir))


def problem_folder(name_or_path: str, problems_dir: Path | None) -> Path:
    """The folder of the problem; a UsageError where there is none."""
    given = Path(name_or_path)
    if given == Path() and not os.path.lexists(CONFIG):
        known = list(problems_in(*problems_folders(problems_dir)))
        raise UsageError(f"{without_config(given)}; give the name or the path of a problem: {known_names(known)}")
    if "/" in name_or_path or os.path.exists(given / CONFIG):
        if not os.path.lexists(given):
            known = list(problems_in(given.parent))
            near = did_you_mean(given.name, known) or f"; in {given.parent} {known_names(known)}"
            raise UsageError(f"{given}: no such folder{near}")
        if given.is_file():
            raise UsageError(f"{given}: a file; give the folder of the problem")
        if not os.path.exists(given / CONFIG) and (known := list(problems_in(given))):
            raise UsageError(f"{given}: a folder of problems; give one of them: {first_names(known, SHOWN_NAMES)}")
        if not os.path.lexists(given / CONFIG):
            raise UsageError(without_config(given))
        return given
    folders = problems_folders(problems_dir)
    if (folder := find_folder(name_or_path, folders)) is not None:
        return folder
    unusable = [without_config(folder / name_or_path) for folder in folders if os.path.isdir(folder / name_or_path)]
    if unusable:
        raise UsageError("\n".join(unusable))
    known = list(problems_in(*folders))
    step = f"give the path of its folder, or its parent as --problems-dir or ${PROBLEMS_VARIABLE}"
    near = did_you_mean(name_or_path, known) or f": {known_names(known)}; {step}"
    raise UsageError(f"no problem {name_or_path!r} in {shown_folders(folders)}{near}")


def without_config(folder: Path) -> str:
    """A message about a folder in which no config.yaml was found."""
    name = "the current folder" if folder == Path() else str(folder)
    try:
        entries = os.listdir(folder)
    except OSError as error:
        return f"{name}: cannot be read: {error.strerror}"
    if (folder / CONFIG).is_symlink():
        return f"{name}: its {CONFIG} is a broken link"
    if CONFIG in entries:
        return f"{name}: its {CONFIG} cannot be read; let this user enter the folder"
    near = nearest(CONFIG, entries)
    return f"{name} has no {CONFIG}{f' (there is {near})' if near else ''}"


def shown_folders(folders: Sequence[Path]) -> str:
    return ", ".join(str(folder) if folder.is_dir() else f"{folder} (no such folder)" for folder in folders)


def problem_of(name: str, given: str | None, problems_dir: Path | None) -> ProblemConfig:
    """The problem that a stored result names. `given` is its name or path from the user."""
    if given is None and "/" in name:
        raise UsageError(f"the result names its problem {name!r}, which is no name; give -p")
    problem = find_problem(name if given is None else given, problems_dir)
    if problem.name != name:
        step = "give -p" if given is None else f"give the folder of {name!r} with -p"
        raise UsageError(f"{problem.path}: this is {problem.name!r}, and the result is of {name!r}; {step}")
    return problem
