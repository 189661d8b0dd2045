"""Kinds of folders that a user may give to a command, and the command that takes each."""

from __future__ import annotations

import os
import shlex
from enum import Enum, auto
from itertools import islice
from typing import TYPE_CHECKING

from slop_code._suggestions import first_names
from slop_code._yaml_parser import parse_yaml, read_yaml
from slop_code.errors import ConfigError, UsageError
from slop_code.evaluation.problem.problem_lookup import CONFIG
from slop_code.runs.run_layout import SNAPSHOT, names_or_none, natural_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_FOLDERS = 2000
"""Folders that are looked into at each level."""

SHOWN_RUNS = 10


class FolderKind(Enum):
    CHECKPOINT = auto()
    """Of a run."""

    PROBLEM_OF_RUN = auto()
    RUN = auto()
    RUNS = auto()
    PROBLEM = auto()
    """With its tests."""

    PROBLEMS = auto()


def kind_of(folder: Path, snapshot_dir: str = SNAPSHOT) -> FolderKind | None:
    """By the depth of the first snapshot; None for any other folder, also one of results alone."""
    level = [folder]
    for kind in (FolderKind.CHECKPOINT, FolderKind.PROBLEM_OF_RUN, FolderKind.RUN, FolderKind.RUNS):
        if any(os.path.isdir(path / snapshot_dir) for path in level):
            return kind
        if kind is FolderKind.PROBLEM_OF_RUN and (own := _problem_kind(folder, level)):
            return own
        level = list(islice(_subfolders(level, snapshot_dir), MAX_FOLDERS))
    return None


def folder_advice(folder: Path, snapshot_dir: str = SNAPSHOT, *, taken: FolderKind | None = None) -> str:
    """The end of a message about a folder of the wrong kind, with the command that evaluates what is there.

    Empty where the kind is unknown, or `taken`: the one that the command takes.
    """
    kind = kind_of(folder, snapshot_dir)
    if kind is None or kind is taken:
        return ""
    given, real = shlex.quote(str(folder)), folder.resolve()
    match kind:
        case FolderKind.CHECKPOINT:
            fact, names = "a checkpoint of a run", f"-p {shlex.quote(real.parent.name)} -c {shlex.quote(real.name)}"
            step = f"evaluate it with `slop-code eval-snapshot {shlex.quote(str(folder / snapshot_dir))} {names}`"
        case FolderKind.PROBLEM_OF_RUN:
            fact = "a problem of a run"
            step = f"evaluate it with `slop-code eval-problem {given}`, or give the run {real.parent}"
        case FolderKind.RUN:
            fact, step = "a run", f"evaluate it with `slop-code eval {given}`"
        case FolderKind.RUNS:
            fact = f"a folder of runs ({_runs_in(folder, snapshot_dir)})"
            step = f"evaluate all of them with `slop-code eval {given}/*/`"
        case FolderKind.PROBLEM:
            fact, submission = "a problem, with its tests", f"`slop-code eval-snapshot DIR -p {given} -c CHECKPOINT`"
            step = f"evaluate a submission with {submission}, its reference with `slop-code problems run {given}`"
        case FolderKind.PROBLEMS:
            fact, step = "a folder of problems", f"evaluate a run with `slop-code eval RUN_DIR --problems-dir {given}`"
    return f"; this is {fact}: {step}"


def check_problem_of_run(folder: Path, snapshot_dir: str = SNAPSHOT) -> None:
    """Raises UsageError for a folder of another kind. An unknown one may be empty still."""
    inner = islice(_subfolders([folder], snapshot_dir), MAX_FOLDERS)
    if any(os.path.isdir(path / snapshot_dir) for path in inner):
        return
    if advice := folder_advice(folder, snapshot_dir):
        raise UsageError(f"{folder}: nothing to evaluate; expected <checkpoint>/{snapshot_dir}{advice}")


def _problem_kind(folder: Path, inner: Iterable[Path]) -> FolderKind | None:
    if _is_problem(folder):
        return FolderKind.PROBLEM
    return FolderKind.PROBLEMS if any(map(_is_problem, inner)) else None


def _is_problem(folder: Path) -> bool:
    """A run folder may have a config.yaml, too, which names no checkpoints."""
    path = folder / CONFIG
    try:
        return isinstance(parse_yaml(read_yaml(path), path).get("checkpoints"), dict)
    except ConfigError:
        return False


def _subfolders(folders: Iterable[Path], snapshot_dir: str) -> Iterator[Path]:
    for folder in folders:
        names = sorted(names_or_none(folder), key=natural_order)
        yield from (folder / name for name in names if name != snapshot_dir and os.path.isdir(folder / name))


def _runs_in(folder: Path, snapshot_dir: str) -> str:
    """Names of the runs, on one line whatever they are."""
    inner = islice(_subfolders([folder], snapshot_dir), MAX_FOLDERS)
    runs = [path.name for path in inner if kind_of(path, snapshot_dir) is FolderKind.RUN]
    return first_names([name if name.isprintable() else repr(name) for name in runs], SHOWN_RUNS)
