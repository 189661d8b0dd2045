"""Rule about files of the problem that do not have its canary."""

from __future__ import annotations

import contextlib
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import TESTS
from slop_code.authoring.problem_folders import SOLUTIONS
from slop_code.errors import SlopCodeError
from slop_code.evaluation.problem.canary import canary_of, text_files
from slop_code.evaluation.problem.dependency_lock import NAME as LOCK_NAME
from slop_code.evaluation.problem.quarantine import QUARANTINE_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles

NO_CANARY = Rule.warning(
    "canary-missing",
    "A file of a problem with a canary does not have the canary, so that copies of the file are not found",
    "Put the canary into a comment. For files without comments, a file with the canary in the same folder is enough.",
    in_code=False,
)
WITHOUT_COMMENTS = frozenset({".json", ".jsonl", ".csv", ".tsv", ".txt"})
MADE_BY_US = frozenset({QUARANTINE_FILE, LOCK_NAME})
MAX_FINDINGS = 20


def without_canary(files: ProblemFiles) -> Iterator[Finding]:
    """Files that an agent could be trained on: specifications, tests, solutions and static assets."""
    canary = canary_of(files.problem)
    if canary is None:
        return
    has_it = {path: canary in content for path, content in _texts(files) if content.strip()}
    covered = {path.parent for path, has in has_it.items() if has}
    missing = [
        path
        for path, has in has_it.items()
        if not has and not (path.suffix in WITHOUT_COMMENTS and path.parent in covered)
    ]
    for path in missing[:MAX_FINDINGS]:
        yield Finding(NO_CANARY, Location(str(path)), f"{single_line(str(path))} does not have the canary")
    if len(missing) > MAX_FINDINGS:
        message = f"{len(missing) - MAX_FINDINGS} more files do not have the canary"
        yield Finding(NO_CANARY, Location(str(missing[MAX_FINDINGS])), message)


def _texts(files: ProblemFiles) -> Iterator[tuple[PurePosixPath, bytes]]:
    assets = [os.path.normpath(asset.path) for asset in files.problem.static_assets.values()]
    parts = [TESTS, SOLUTIONS, *assets]
    specs = {f"{name}.md" for name in files.problem.checkpoints}
    with contextlib.suppress(SlopCodeError, OSError):  # other rules and steps report what cannot be read
        for name, content in text_files(files.folder):
            path = PurePosixPath(name)
            copied = name in specs or any(f"{name}/".startswith(f"{part}/") for part in parts)
            if copied and path.name not in MADE_BY_US:
                yield path, content
