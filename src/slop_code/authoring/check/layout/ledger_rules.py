"""tests/flaky.json: readable, and about tests that are there."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import in_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.problem_files import TESTS
from slop_code.authoring.check.python_sources import definitions
from slop_code.errors import ConfigError
from slop_code.evaluation.quarantine import EXPECTED, LEDGER, ledger_path, line_in_ledger, read_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.authoring.check.python_sources import PythonSource

UNREADABLE = Rule(
    "ledger-unreadable",
    Severity.ERROR,
    "The ledger of flaky tests cannot be read",
    f"Write {EXPECTED} into tests/flaky.json, or remove it.",
    in_code=False,
)
UNKNOWN_TEST = Rule(
    "ledger-test-unknown",
    Severity.WARNING,
    "The ledger of flaky tests names a test that is not there",
    "Take the entry out of tests/flaky.json, or write the id of the test as it is now.",
    in_code=False,
)
RULES = (UNREADABLE, UNKNOWN_TEST)

FILE = f"{TESTS}/{LEDGER}"


def ledger(reading: ProblemFiles) -> Iterator[Finding]:
    path = ledger_path(reading.problem)
    try:
        entries = read_ledger(reading.problem).tests
    except ConfigError as error:
        message = in_line(str(error).removeprefix(f"{path}: "))
        yield Finding(UNREADABLE, Location(FILE), message)
        return
    sources = {source.file: source for source in reading.sources}
    files = {f"{TESTS}/{file}" for file in reading.files}
    for entry in entries:
        file = f"{TESTS}/{entry.test.partition('::')[0]}"
        if file not in files or (file in sources and not _has(sources[file], entry.test)):
            message = f"there is no test {in_line(entry.test)}"
            line = line_in_ledger(reading.problem, entry.test)
            yield Finding(UNKNOWN_TEST, Location(FILE, line), message, test=entry.test)


def _has(source: PythonSource, test: str) -> bool:
    """A class with a base may have its tests from there; a name that is only mentioned may be bound in any way."""
    body: list[ast.stmt] = source.tree.body
    inherits = "import *" in source.text
    for part in test.partition("::")[2].partition("[")[0].split("::"):
        node = next((one for one in definitions(body) if one.name == part), None)
        if node is None:
            return inherits or (body is source.tree.body and bool(re.search(rf"\b{re.escape(part)}\b", source.text)))
        body = node.body
        inherits = isinstance(node, ast.ClassDef) and bool(node.bases)
    return True
