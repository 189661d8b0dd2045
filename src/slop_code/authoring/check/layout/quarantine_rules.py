"""Rules about the quarantine of flaky tests, tests/flaky.json."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import TESTS
from slop_code.authoring.check.python_sources import definitions_of_test
from slop_code.errors import ConfigError
from slop_code.evaluation.problem.quarantine import EXPECTED, QUARANTINE_FILE, line_in_quarantine, read_quarantine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.authoring.check.python_sources import PythonSource

UNREADABLE = Rule.error(
    "quarantine-unreadable",
    "The quarantine is invalid",
    f"Write {EXPECTED} into tests/flaky.json, or remove it.",
    in_code=False,
)
UNKNOWN_TEST = Rule.warning(
    "quarantine-test-unknown",
    "The quarantine names a test that does not exist",
    "Remove the entry from tests/flaky.json, or correct the id of the test.",
    in_code=False,
)
FILE = f"{TESTS}/{QUARANTINE_FILE}"


def quarantine(files: ProblemFiles) -> Iterator[Finding]:
    """Nothing is reported where the tests folder cannot be used, which is a finding of its own."""
    if files.failure:
        return
    try:
        entries = read_quarantine(files.problem).tests
    except ConfigError as error:
        cause = error.__cause__
        for mistake in error.mistakes:
            fix = "Make it a file that this user may read, or remove it." if isinstance(cause, OSError) else ""
            yield Finding(UNREADABLE, Location(FILE), single_line(mistake.message), fix)
        return
    sources = {source.file: source for source in files.sources}
    paths = {f"{TESTS}/{file}" for file in files.files}
    for entry in entries:
        file = f"{TESTS}/{entry.test.partition('::')[0]}"
        if file not in paths or (file in sources and not _has(sources[file], entry.test)):
            message = f"there is no test {single_line(entry.test)}"
            line = line_in_quarantine(files.problem, entry.test)
            yield Finding(UNKNOWN_TEST, Location(FILE, line), message, test=entry.test)


def _has(source: PythonSource, test: str) -> bool:
    """True also where the test may be inherited from a base class, or is mentioned by name."""
    inherits = "import *" in source.text
    for depth, (name, node) in enumerate(definitions_of_test(source.tree, test)):
        if node is None:
            return inherits or (depth == 0 and bool(re.search(rf"\b{re.escape(name)}\b", source.text)))
        inherits = isinstance(node, ast.ClassDef) and bool(node.bases)
    return True
