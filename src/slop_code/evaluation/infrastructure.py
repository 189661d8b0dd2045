"""Whether a run says anything about the submission at all."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from slop_code.evaluation.reports.raw_test import visible
from slop_code.evaluation.roster import TESTS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from slop_code.evaluation.evidence import Evidence

_EXIT_CODES = {
    2: "pytest was interrupted (exit code 2)",
    3: "pytest had an internal error (exit code 3)",
    4: "pytest refused its arguments or the tests' conftest.py (exit code 4)",
    5: "pytest collected no tests (exit code 5)",
    124: "the subject's box ended before the tests did",
    125: "the boxes could not be opened",
}

_PLACE = re.compile(rf"{re.escape(TESTS_FOLDER)}/([^\"\n]+?\.py)(?:\", line |:)(\d+)")


def infrastructure_failure(
    exit_code: int | None, *, evidence: Evidence, expected: Collection[str], ended: str | None
) -> str | None:
    """None only for a run that ended by itself and whose report accounts for every expected test."""
    return (
        ended
        or collection_failure(exit_code, evidence.collection_errors)
        or _no_report(evidence)
        or _unaccounted(evidence, frozenset(expected))
        or _contradiction(exit_code, evidence)
    )


def collection_failure(exit_code: int | None, errors: Sequence[str]) -> str | None:
    """Also for a run that only collects, which has no report."""
    if not errors:
        return _exit_failure(exit_code)
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    return "collection failed: " + "; ".join(_in_short(error) for error in errors[:3]) + more


def _in_short(error: str) -> str:
    """Where in the tests, as far as it says; the last line that pytest marks as the error says why."""
    lines = [line.strip() for line in error.splitlines() if line.strip()] or ["no message"]
    why = [line.removeprefix("E").strip() for line in lines[1:] if line.startswith("E ")]
    places = [place for line in lines[1:] for place in _PLACE.findall(line)]
    where = f"{places[-1][0]}:{places[-1][1]}:" if places and why else lines[0]
    return visible(" ".join([where, *why[-1:]]), 500)


def _exit_failure(exit_code: int | None) -> str | None:
    if exit_code in (0, 1):
        return None
    if exit_code is None:
        return "pytest left no exit code"
    # What stands between us and pytest says 128 and the number of the signal, as a shell does.
    number = -exit_code if exit_code < 0 else exit_code - 128
    if number in {one.value for one in signal.Signals}:
        return f"pytest was killed by signal {number} ({signal.Signals(number).name})"
    return _EXIT_CODES.get(exit_code, f"pytest ended with {exit_code}, which is none of its exit codes")


def _no_report(evidence: Evidence) -> str | None:
    if evidence.source in ("json-report", "ctrf"):
        return None if evidence.announced is not None else "our plugin in the judge did not run to its end"
    return "no usable report: " + ("; ".join(evidence.problems) or "only the stream was left")


def _unaccounted(evidence: Evidence, roster: frozenset[str]) -> str | None:
    expected = roster - evidence.deselected
    if not expected:
        return "no tests were expected"
    reported = {test.nodeid for test in evidence.tests}
    if unknown := sorted(reported - roster):
        return f"reported but not among the tests: {len(unknown)}, the first: {visible(unknown[0], 500)}"
    if missing := sorted(expected - reported):
        return f"{len(missing)} of {len(expected)} tests left no result, the first: {visible(missing[0], 500)}"
    return None


def _contradiction(exit_code: int | None, evidence: Evidence) -> str | None:
    if evidence.reported_exit not in (None, exit_code):
        return f"pytest announced exit code {evidence.reported_exit} and ended with {exit_code}"
    bad = sum(test.status in ("failed", "error") and not test.xpassed for test in evidence.tests)
    if exit_code == 0 and bad:
        return f"pytest ended with 0 while its report has failures: {bad}"
    if exit_code == 1 and not bad:
        return "pytest ended with 1 while no test failed"
    return None
