"""Static assets of a problem: copies of them, and the variables that name their paths."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from slop_code._io import unreadable_text
from slop_code.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

ASSETS_DIR_VARIABLE = "SCBENCH_ASSETS_DIR"


def asset_variable(name: str) -> str:
    return "SCBENCH_ASSET_" + re.sub(r"[^A-Z0-9_]", "_", name.upper())


def asset_environment(names: Iterable[str], assets_dir: str) -> dict[str, str]:
    folder = assets_dir.rstrip("/")
    return {ASSETS_DIR_VARIABLE: assets_dir, **{asset_variable(name): f"{folder}/{name}" for name in names}}


def copy_assets(assets: Mapping[str, Path], destination: Path) -> None:
    """Copy each asset, a file or a folder, to `destination/<name>`; files there are replaced."""
    for name, path in assets.items():
        source = _resolved(path)
        if not source.is_dir():
            _copy_file(source, destination / name)
            continue
        (destination / name).mkdir(parents=True, exist_ok=True)
        for relative, actual in walk(source, fence=source):
            target = destination / name / relative
            if actual.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                _copy_file(actual, target)


def walk(
    root: Path, *, fence: Path, skip: Callable[[str], bool] = lambda _: False
) -> Iterator[tuple[PurePosixPath, Path]]:
    """Everything below `root`, sorted, with its resolved path.

    Links are followed inside `fence`. A link that leaves it, that leads nowhere or that leads to a folder
    above it is a `ConfigError`. `skip` decides by the bare name.
    """
    return _walk(root, PurePosixPath(), _resolved(fence), (_resolved(root),), skip)


def regular_files(root: Path) -> Iterator[tuple[PurePosixPath, Path]]:
    """The files below a folder, or a file itself under an empty path, each with its resolved path."""
    real = _resolved(root)
    if real.is_file():
        yield PurePosixPath(), real
    else:
        yield from (pair for pair in walk(real, fence=real) if pair[1].is_file())


def _walk(
    folder: Path, prefix: PurePosixPath, fence: Path, above: tuple[Path, ...], skip: Callable[[str], bool]
) -> Iterator[tuple[PurePosixPath, Path]]:
    for entry in _entries(folder):
        if skip(entry.name):
            continue
        actual, relative = Path(entry.path), prefix / entry.name
        if entry.is_symlink():
            actual = _resolved(actual)
            if not actual.is_relative_to(fence):
                raise ConfigError(f"{entry.path}: a link that leaves {fence}; replace it by a copy of what it leads to")
            if actual in above:
                raise ConfigError(f"{entry.path}: a link to a folder that it lies in; remove it")
        yield relative, actual
        if entry.is_dir():
            yield from _walk(actual, relative, fence, (*above, _resolved(actual)), skip)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise ConfigError(unreadable_text(error, folder)) from error


def _resolved(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path}: leads nowhere; expected a file or a folder") from error


def _copy_file(source: Path, target: Path) -> None:
    if not source.is_file():
        raise ConfigError(f"{source}: neither a file nor a folder; remove it")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
