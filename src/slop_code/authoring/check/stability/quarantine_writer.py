"""Writing the ledger of flaky tests, `tests/flaky.json`, from what the step stability found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from slop_code.authoring.check.failure_text import named
from slop_code.authoring.check.stability.stability_rules import FLAKY, LOAD, PARALLEL
from slop_code.errors import UsageError
from slop_code.evaluation.quarantine import Ledger, Quarantined, ledger_path, read_ledger

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding
    from slop_code.authoring.check.workbench import Workbench


def quarantine(bench: Workbench, findings: Iterable[Finding]) -> Path | None:
    """Adds the tests that may flip in an evaluation; what is there stays. None where there is nothing to add.

    The order of an evaluation is fixed, and its tests run side by side only where the problem says so.
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
    Ledger(tests=tuple(sorted((*known.tests, *added.values()), key=lambda one: one.test))).save(path)
    return path


def _entry(test: str, reason: str) -> Quarantined:
    try:
        return Quarantined(test=test, reason=reason)
    except ValidationError as error:
        raise UsageError(f"{named(test)}: no name that a ledger can hold; rename the test or its file") from error
