"""Rules about missing files, files of no checkpoint, and leftovers of tools."""

from __future__ import annotations

import fnmatch
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.data_file_rules import globs, segments
from slop_code.authoring.check.layout.name_rules import has_tests, may_have_tests
from slop_code.authoring.check.layout.problem_files import TESTS, names_in, read_text
from slop_code.authoring.check.python_sources import PythonSource, read_source
from slop_code.authoring.problem_folders import SOLUTIONS
from slop_code.evaluation.selection import checkpoint_of, is_test_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

NO_SPEC = Rule.error(
    "spec-missing",
    "A checkpoint has no specification",
    "Write CHECKPOINT.md next to config.yaml: the agent is told nothing else.",
    in_code=False,
)
NO_TESTS = Rule.error(
    "tests-missing", "A checkpoint has no tests", "Write them into tests/test_CHECKPOINT.py.", in_code=False
)
NO_SOLUTION = Rule.error(
    "solution-missing",
    "A checkpoint has no reference solution",
    "Put one into solutions/CHECKPOINT: without it, nobody knows whether the tests can be passed.",
    in_code=False,
)
NO_ENTRY = Rule.error(
    "entry-file-missing",
    "A reference solution has no entry file",
    "Name the file as entry_file in config.yaml and the environment say, or correct these.",
    in_code=False,
)
UNCLAIMED = Rule.warning(
    "file-unclaimed",
    "A file belongs to no checkpoint and is never used",
    "Name it after a checkpoint of config.yaml, add the checkpoint, or remove the file.",
    in_code=False,
)
LEFTOVER = Rule.note(
    "leftover-file",
    "A tool or an editor has left a file behind",
    "Remove it, and keep it out of version control.",
    in_code=False,
)
MADE_AGAIN = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "*.pyc")
"""Files that tools create again whenever they need them."""
LEFT_BEHIND = (".DS_Store", "Thumbs.db", "*~", ".*.sw[op]", "*.orig", "*.rej", ".idea", ".vscode")
MAX_ENTRIES = 20_000
"""Files and folders that are listed."""


def missing(files: ProblemFiles) -> Iterator[Finding]:
    folder, names = files.folder, list(files.problem.checkpoints)
    if files.failure:
        message = single_line(f"the tests folder cannot be used: {files.failure}")
        yield Finding(NO_TESTS, Location(TESTS), message, "Fix what the message names.")
    for name in names:
        if not read_text(folder / f"{name}.md").strip():
            fix = f"Write {name}.md next to config.yaml: the agent is told nothing else."
            yield Finding(NO_SPEC, Location(f"{name}.md"), f"no specification of {name}", fix, checkpoint=name)
        if not files.failure:
            yield from _no_tests(files, name)
        if not (folder / SOLUTIONS / name).is_dir():
            location, fix = Location(f"{SOLUTIONS}/{name}"), f"Put one into {SOLUTIONS}/{name}."
            yield Finding(NO_SOLUTION, location, f"no reference solution of {name}", fix, checkpoint=name)
        else:
            yield from _entry(files, name)


def _no_tests(files: ProblemFiles, name: str) -> Iterator[Finding]:
    own = [f"{TESTS}/{file}" for file in files.files if checkpoint_of(file.name, files.problem.checkpoints) == name]
    if not own:
        file = f"{TESTS}/test_{name}.py"
        yield Finding(NO_TESTS, Location(file), f"no tests of {name}", f"Write them into {file}.", checkpoint=name)
        return
    parsed = {source.file: source for source in files.sources}
    if all(file in parsed and not may_have_tests(parsed[file].tree) for file in own):
        message = f"no tests of {name}: nothing in {single_line(own[0])} is a test"
        fix = "Write functions whose names begin with test_ into it."
        yield Finding(NO_TESTS, Location(own[0]), message, fix, checkpoint=name)


def _entry(files: ProblemFiles, name: str) -> Iterator[Finding]:
    """Nothing is reported where set-up commands may create the file."""
    setup = files.environment.setup
    if setup.commands or setup.eval_commands:
        return
    entry = os.path.normpath(files.environment.entry(files.problem.entry_file)[-1])
    if not os.path.lexists(files.folder / SOLUTIONS / name / entry):
        location = Location(f"{SOLUTIONS}/{name}/{entry}")
        message = f"the reference of {name} has no {single_line(entry)}, its entry file"
        yield Finding(NO_ENTRY, location, message, checkpoint=name)


def unclaimed(files: ProblemFiles) -> Iterator[Finding]:
    names = list(files.problem.checkpoints)
    for entry in names_in(files.folder):
        if fnmatch.fnmatchcase(entry, "checkpoint_*.md") and entry.removesuffix(".md") not in names:
            yield _unclaimed(entry, "a specification of no checkpoint")
    for entry in names_in(files.folder / SOLUTIONS):
        if entry in names or _matches_any(entry, (*MADE_AGAIN, *LEFT_BEHIND)):
            continue
        if (files.folder / SOLUTIONS / entry).is_dir():
            yield _unclaimed(f"{SOLUTIONS}/{entry}", "a reference solution of no checkpoint")
    loaded = {source.file for source in files.sources}
    named = segments(files)  # a test names the folder of these: they are data
    imported = {file for file in loaded if not is_test_file(PurePosixPath(file).name)}
    for file in files.files:
        name = f"{TESTS}/{file}"
        if not named.isdisjoint(file.parts[:-1]):
            continue
        if is_test_file(file.name) and checkpoint_of(file.name, names) is None and _has_tests(files, name):
            yield _unclaimed(name, "tests of no checkpoint, which are never run")
        elif file.name.endswith("_test.py") and name not in imported and _has_tests(files, name):
            yield _unclaimed(name, "tests that are never run: a test file is called test_CHECKPOINT.py")


def _has_tests(files: ProblemFiles, name: str) -> bool:
    source = read_source(files.folder, name)
    return isinstance(source, PythonSource) and has_tests(source.tree)


def _unclaimed(file: str, what: str) -> Finding:
    return Finding(UNCLAIMED, Location(file), f"{single_line(file)}: {what}")


def leftovers(files: ProblemFiles) -> Iterator[Finding]:
    """Files that the problem itself names do not count."""
    assets = [os.path.normpath(asset.path) for asset in files.problem.static_assets.values()]
    names, globbed = segments(files), [pattern.rpartition("/")[2] for pattern in globs(files)]
    patterns = [pattern for pattern in globbed if pattern.strip("*")]
    for file in _left_behind(files.folder):
        name = file.rpartition("/")[2]
        if any(f"{file}/".startswith(f"{asset}/") or f"{asset}/".startswith(f"{file}/") for asset in assets):
            continue
        if not _matches_any(name, MADE_AGAIN) and (name in names or _matches_any(name, patterns)):
            continue
        yield Finding(LEFTOVER, Location(file), f"{single_line(file)} was left behind by a tool")


def _left_behind(folder: Path) -> Iterator[str]:
    """A folder stands for its content; links are not followed."""
    waiting, seen = [""], 0
    while waiting and seen < MAX_ENTRIES:
        inner = waiting.pop()
        for name in names_in(folder / inner):
            seen += 1
            path = f"{inner}/{name}" if inner else name
            if _matches_any(name, (*MADE_AGAIN, *LEFT_BEHIND)):
                yield path
            elif name != ".git" and os.path.isdir(folder / path) and not os.path.islink(folder / path):
                waiting.append(path)


def _matches_any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
