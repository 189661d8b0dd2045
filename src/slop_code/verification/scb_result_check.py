"""Check of a result of the SlopCodeBench runner: its counts against its tests, its two files against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation.groups import GroupType
from slop_code.runs.scb.scb_evaluation import RUNNER
from slop_code.verification.contradictions import CONTRADICTION, Discrepancy
from slop_code.verification.inputs import as_text
from slop_code.verification.verify import Verification

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.runs.scb.scb_evaluation import ScbResult

NO_EVIDENCE = "tests and verdict: the SlopCodeBench runner leaves no evidence that could be graded again"


def check_scb_result(result: ScbResult) -> Verification:
    """Raises ResultError where nothing differs, since nothing proves such a result either."""
    findings = [*_contradictions(result), *_exit_code(result), *_counts(result)]
    if not findings:
        agree = "its counts follow from its tests, but there is no evidence to grade again"
        step = "slop-code eval with -o OUT evaluates its snapshot anew"
        raise ResultError(f"evaluated by {RUNNER}: {agree}; {step}")
    return Verification(result.results, findings, [NO_EVIDENCE])


def _contradictions(result: ScbResult) -> Iterator[Discrepancy]:
    for name, listed, reported in result.contradictions:
        yield Discrepancy(CONTRADICTION, name, f"{listed} in evaluation.json", f"{reported} in report.json")


def _exit_code(result: ScbResult) -> Iterator[Discrepancy]:
    code, expected = result.results.pytest_exit_code, result.expected_exit_code
    if code in (0, 1) and code != expected:
        yield Discrepancy(CONTRADICTION, "pytest_exit_code", str(code), f"{expected} follows from its tests")


def _counts(result: ScbResult) -> Iterator[Discrepancy]:
    """Skipped tests are left out of the counts of that runner. A count of an unknown group is ignored."""
    if result.contradictions:
        return  # the counts follow from statuses that are in doubt
    tests = [test for test in result.results.tests if test.status != "skipped"]
    for field, stored in (("pass_counts", result.pass_counts), ("total_counts", result.total_counts)):
        for group in GroupType:
            counted = [test for test in tests if test.group_type == group]
            count = sum(test.status == "passed" or field == "total_counts" for test in counted)
            if type(stored.get(group, 0)) is not int or stored.get(group, 0) != count:
                yield Discrepancy(
                    CONTRADICTION, f"{field}.{group}", as_text(stored.get(group)), f"{count} follows from its tests"
                )
