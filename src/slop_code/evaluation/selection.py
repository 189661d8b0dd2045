"""Selection of files in a problem's tests folder: the files to copy for a checkpoint, and the test files to run."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code._suggestions import did_you_mean, near_or_known
from slop_code.errors import ConfigError, UsageError
from slop_code.execution.assets import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Selection:
    root: Path
    files: tuple[PurePosixPath, ...]
    """Everything to copy, helpers and data included."""
    run: tuple[str, ...]
    """The test files to collect, as paths inside `root`, in the order of their checkpoints."""
    unattributed: tuple[str, ...]
    """Test files of no checkpoint, next to tests or above them: copied, as others may import them, and never run."""


def is_test_file(file_name: str) -> bool:
    return file_name.startswith("test_") and file_name.endswith(".py")


def home_of(path: str, names: Iterable[str]) -> str:
    """The checkpoint that the tests of a file belong to; for a file of no checkpoint, a name that none of them has."""
    file = PurePosixPath(path)
    return checkpoint_of(file.name, names) or file.stem.removeprefix("test_")


def checkpoint_of(file_name: str, names: Iterable[str]) -> str | None:
    """The longest matching name, so that `test_a_b.py` belongs to `a_b` rather than to `a`."""
    return _checkpoint_of(file_name, tuple(names))


@functools.lru_cache(maxsize=4096)
def _checkpoint_of(file_name: str, names: tuple[str, ...]) -> str | None:
    if not is_test_file(file_name):
        return None
    stem = file_name.removeprefix("test_").removesuffix(".py")
    matching = [name for name in names if stem == name or stem.startswith(f"{name}_")]
    return max(matching, key=len, default=None)


def checkpoints_to_run(ordered: Sequence[str], current: str, *, include_prior: bool) -> list[str]:
    if current not in ordered:
        raise UsageError(f"no checkpoint {current!r}{near_or_known(current, ordered)}")
    return list(ordered[: ordered.index(current) + 1]) if include_prior else [current]


def checkpoint_files(
    tests_dir: Path,
    ordered: Sequence[str],
    current: str,
    include_prior: bool,
    files: Iterable[PurePosixPath] | None = None,
) -> list[str]:
    """The files to copy: the current checkpoint's tests, those of prior ones, then helpers and data.

    `files`: what `files_in` gave for the folder, if it was called before.
    """
    wanted = checkpoints_to_run(ordered, current, include_prior=include_prior)
    files = files_in(tests_dir) if files is None else list(files)
    homes = [(file, checkpoint_of(file.name, ordered)) for file in files]
    if all(home != current for _, home in homes):
        expected = f"{tests_dir.name}/test_{current}.py"
        others = [
            file.stem.removeprefix("test_") for file, home in homes if home is None and file.name.startswith("test_")
        ]
        near = did_you_mean(current, others)
        raise ConfigError(f"{tests_dir.parent}: no tests for {current!r}; expected {expected}{near}")
    homes_in_order = [current, *(name for name in wanted if name != current), None]
    return [str(file) for wanted_home in homes_in_order for file, home in homes if home == wanted_home]


def select(tests_dir: Path, ordered: Sequence[str], names: Iterable[str]) -> Selection:
    """The selection for these files to copy."""
    files = sorted(map(PurePosixPath, dict.fromkeys(names)), key=lambda file: file.parts)
    homes = [(file, checkpoint_of(file.name, ordered)) for file in files]
    homeless = [file for file, home in homes if home is None and file.name.startswith("test_")]
    folders = folders_of_tests(files, ordered) if homeless else set()
    return Selection(
        root=tests_dir,
        files=tuple(files),
        run=tuple(str(file) for name in ordered for file, home in homes if home == name),
        unattributed=tuple(str(file) for file in homeless if file.parent in folders),
    )


def folders_of_tests(files: Iterable[PurePosixPath], checkpoints: Iterable[str]) -> set[PurePosixPath]:
    """The folders of the checkpoints' tests and all above them; in others every file is data, whatever its name."""
    names = list(checkpoints)
    tests = [file for file in files if checkpoint_of(file.name, names) is not None]
    return {PurePosixPath(), *(folder for file in tests for folder in file.parents)}


def files_in(tests_dir: Path) -> list[PurePosixPath]:
    """All files that any checkpoint may need, helpers and data included."""
    if not tests_dir.is_dir():
        return []
    paths = walk(tests_dir, fence=tests_dir.parent, skip=_is_cache)
    return sorted(relative for relative, actual in paths if actual.is_file())


def _is_cache(name: str) -> bool:
    return name in ("__pycache__", ".pytest_cache") or name.endswith(".pyc")
