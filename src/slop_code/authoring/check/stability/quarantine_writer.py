"""Additions to the ledger of flaky tests, `tests/flaky.json`, from findings of the step `stability`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from slop_code.authoring.check.failure_text import shown_test
from slop_code.authoring.check.stability.stability_rules import FLAKY, LOAD, PARALLEL
from slop_code.errors import UsageError
from slop_code.evaluation.quarantine import Ledger, Quarantined, ledger_path, read_ledger

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding
    from slop_code.authoring.check.workbench import Workbench


def add_to_ledger(bench: Workbench, findings: Iterable[Finding]) -> Path | None:
    """Adds tests that can flip in an evaluation; returns None where there is nothing to add.

    Order-dependent tests cannot, as the order of an evaluation is fixed. Parallel-dependent tests can only where the
    problem allows parallel tests.
    """
    known = read_ledger(bench.problem)
    rules = (FLAKY, LOAD, PARALLEL) if bench.problem.parallel > 1 else (FLAKY, LOAD)
    added: dict[str, Quarantined] = {}
    for finding in findings:
        test = finding.test
        if finding.rule in rules and test and not known.covers(test):
            added.setdefault(test, _entry(test, f"{finding.rule.id}: {finding.message.rpartition(': ')[2]}"))
    if not added:
        return None
    path = ledger_path(bench.problem)
    Ledger(tests=tuple(sorted((*known.tests, *added.values()), key=lambda entry: entry.test))).save(path)
    return path


def _entry(test: str, reason: str) -> Quarantined:
    try:
        return Quarantined(test=test, reason=reason)
    except ValidationError as error:
        raise UsageError(
            f"{shown_test(test)}: the ledger cannot hold this name; rename the test or its file"
        ) from error
