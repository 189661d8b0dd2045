"""Files that are missing, that belong to no checkpoint, or that a tool has left behind."""

from __future__ import annotations

import fnmatch
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import in_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.data_file_rules import globs, segments
from slop_code.authoring.check.layout.name_rules import has_tests
from slop_code.authoring.check.layout.problem_files import TESTS, read_text
from slop_code.authoring.check.python_sources import PythonSource, read_source
from slop_code.authoring.check.workbench import SOLUTIONS
from slop_code.evaluation.selection import checkpoint_of, is_test_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

NO_SPEC = Rule(
    "spec-missing",
    Severity.ERROR,
    "A checkpoint has no specification",
    "Write it into CHECKPOINT.md beside config.yaml: it is all that the submission's author is told.",
    in_code=False,
)
NO_TESTS = Rule(
    "tests-missing",
    Severity.ERROR,
    "A checkpoint has no tests",
    "Write them into tests/test_CHECKPOINT.py.",
    in_code=False,
)
NO_SOLUTION = Rule(
    "solution-missing",
    Severity.ERROR,
    "A checkpoint has no reference solution",
    "Put one into solutions/CHECKPOINT: without it nobody knows whether the tests can be passed.",
    in_code=False,
)
NO_ENTRY = Rule(
    "entry-file-missing",
    Severity.ERROR,
    "A reference solution lacks the file that is started",
    "Name the file as entry_file in config.yaml and the environment say, or correct these.",
    in_code=False,
)
UNCLAIMED = Rule(
    "file-unclaimed",
    Severity.WARNING,
    "A file belongs to no checkpoint and is never used",
    "Name it after a checkpoint of config.yaml, add the checkpoint, or remove the file.",
    in_code=False,
)
LEFTOVER = Rule(
    "leftover-file",
    Severity.NOTE,
    "A tool or an editor has left a file behind",
    "Remove it, and keep it out of version control.",
    in_code=False,
)
RULES = (NO_SPEC, NO_TESTS, NO_SOLUTION, NO_ENTRY, UNCLAIMED, LEFTOVER)

MADE_AGAIN = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "*.pyc")
"""What tools make whenever they need it: nobody misses it."""
LEFT_BEHIND = (".DS_Store", "Thumbs.db", "*~", ".*.sw[op]", "*.orig", "*.rej", ".idea", ".vscode")
ENTRIES = 20_000
"""So many files and folders are looked at, at most."""


def missing(reading: ProblemFiles) -> Iterator[Finding]:
    folder, names = reading.folder, list(reading.problem.checkpoints)
    tested = {checkpoint_of(file.name, names) for file in reading.files}
    for name in names:
        if not read_text(folder / f"{name}.md").strip():
            fix = f"Write {name}.md beside config.yaml: it is all that the submission's author is told."
            yield Finding(NO_SPEC, Location(f"{name}.md"), f"no specification of {name}", fix, checkpoint=name)
        if name not in tested:
            yield _no_tests(reading, name)
        if not (folder / SOLUTIONS / name).is_dir():
            place, fix = Location(f"{SOLUTIONS}/{name}"), f"Put one into {SOLUTIONS}/{name}."
            yield Finding(NO_SOLUTION, place, f"no reference solution of {name}", fix, checkpoint=name)
        else:
            yield from _entry(reading, name)


def _no_tests(reading: ProblemFiles, name: str) -> Finding:
    place = Location(f"{TESTS}/test_{name}.py")
    if reading.failure:
        message = in_line(f"the tests folder cannot be used: {reading.failure}")
        return Finding(NO_TESTS, Location(TESTS), message, "Mend what the message names.", checkpoint=name)
    return Finding(NO_TESTS, place, f"no tests of {name}", f"Write them into {place.file}.", checkpoint=name)


def _entry(reading: ProblemFiles, name: str) -> Iterator[Finding]:
    """Where a set-up may make the file, nothing can be said."""
    setup = reading.environment.setup
    if setup.commands or setup.eval_commands:
        return
    entry = os.path.normpath(reading.environment.entry(reading.problem.entry_file)[-1])
    if not os.path.lexists(reading.folder / SOLUTIONS / name / entry):
        place = Location(f"{SOLUTIONS}/{name}/{entry}")
        message = f"the reference of {name} has no {in_line(entry)}, which is what is started"
        yield Finding(NO_ENTRY, place, message, checkpoint=name)


def unclaimed(reading: ProblemFiles) -> Iterator[Finding]:
    names = list(reading.problem.checkpoints)
    for entry in _listed(reading.folder):
        if fnmatch.fnmatchcase(entry, "checkpoint_*.md") and entry.removesuffix(".md") not in names:
            yield _unclaimed(entry, "a specification of no checkpoint")
    for entry in _listed(reading.folder / SOLUTIONS):
        if entry in names or _is_one_of(entry, (*MADE_AGAIN, *LEFT_BEHIND)):
            continue
        if (reading.folder / SOLUTIONS / entry).is_dir():
            yield _unclaimed(f"{SOLUTIONS}/{entry}", "a reference solution of no checkpoint")
    loaded = {source.file for source in reading.sources}
    imported = {file for file in loaded if not is_test_file(PurePosixPath(file).name)}
    for file in reading.files:
        name = f"{TESTS}/{file}"
        if is_test_file(file.name) and checkpoint_of(file.name, names) is None and _has_tests(reading, name):
            yield _unclaimed(name, "tests of no checkpoint, which are never run")
        elif file.name.endswith("_test.py") and name not in imported and _has_tests(reading, name):
            yield _unclaimed(name, "tests that are never run: a test file is called test_CHECKPOINT.py")


def _has_tests(reading: ProblemFiles, name: str) -> bool:
    source = read_source(reading.folder, name)
    return isinstance(source, PythonSource) and has_tests(source.tree)


def _unclaimed(file: str, what: str) -> Finding:
    return Finding(UNCLAIMED, Location(file), f"{in_line(file)}: {what}")


def leftovers(reading: ProblemFiles) -> Iterator[Finding]:
    """Except what the problem itself names."""
    assets = [os.path.normpath(asset.path) for asset in reading.problem.static_assets.values()]
    said, patterns = segments(reading), [pattern.rpartition("/")[2] for pattern in globs(reading)]
    for file in _left_behind(reading.folder):
        name = file.rpartition("/")[2]
        made_again = _is_one_of(name, MADE_AGAIN)
        if any(f"{file}/".startswith(f"{asset}/") or f"{asset}/".startswith(f"{file}/") for asset in assets):
            continue
        if not made_again and (name in said or _is_one_of(name, [one for one in patterns if one.strip("*")])):
            continue
        yield Finding(LEFTOVER, Location(file), f"{in_line(file)} was left behind by a tool")


def _left_behind(folder: Path) -> Iterator[str]:
    """A folder stands for all that is in it; links are not followed."""
    waiting, seen = [""], 0
    while waiting and seen < ENTRIES:
        inner = waiting.pop()
        for name in _listed(folder / inner):
            seen += 1
            path = f"{inner}/{name}" if inner else name
            if _is_one_of(name, (*MADE_AGAIN, *LEFT_BEHIND)):
                yield path
            elif name != ".git" and os.path.isdir(folder / path) and not os.path.islink(folder / path):
                waiting.append(path)


def _is_one_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
