"""Infrastructure failures: the reasons for which an evaluation has no verdict."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from slop_code._safe_text import escape_control
from slop_code.evaluation.evidence import NO_TESTS, USAGE_ERROR
from slop_code.evaluation.result_files.evidence_files import EXIT
from slop_code.execution.sandbox import SUBJECT_BOX_ENDED, TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.evidence import Evidence, PytestExit

_EXIT_CODES = {
    2: "pytest was interrupted (exit code 2)",
    3: "pytest had an internal error (exit code 3)",
    USAGE_ERROR: "pytest refused its arguments or the tests' conftest.py (exit code 4)",
    NO_TESTS: "pytest collected no tests (exit code 5)",
    SUBJECT_BOX_ENDED: "the subject's box ended before the tests did",
    125: "the boxes could not be opened",
}

_LOCATION = re.compile(rf"{re.escape(TESTS_DIR)}/([^\"\n]+?\.py)(?:\", line |:)(\d+)")
_TESTS_FOLDER = TESTS_DIR.rpartition("/")[2] + "/"
_FRAME = re.compile(r"\S.*:\d+: in ")


def infrastructure_failure(evidence: Evidence) -> str | None:
    """The reason; None only if pytest ended by itself and its report accounts for every test of the roster."""
    if isinstance(evidence.exit, str):
        return f"{EXIT} {evidence.exit}"
    if evidence.error is not None:
        return evidence.error
    if evidence.setup_failure is not None or evidence.failed_by_memory_limit:
        return None
    code = evidence.exit.exit_code
    if code == NO_TESTS and evidence.roster.nodeids and evidence.roster.nodeids <= evidence.deselected:
        return "the pytest arguments select none of the tests"
    reason = (
        _session_timeout(evidence.exit)
        or collection_failure(code, evidence.collection_errors)
        or _no_report(evidence)
        or _unaccounted(evidence)
        or _contradiction(code, evidence)
    )
    if reason is None or (code is not None and not evidence.running):
        return reason
    running = f"while running {evidence.running}" if evidence.running else "with no test running"
    return f"{reason} {running}" if code is None else f"{reason}, {running}"


def _session_timeout(ended: PytestExit) -> str | None:
    if ended.exit_code is not None:
        return None
    return f"session timeout of {ended.session_timeout:g} s" if ended.session_timeout else "pytest left no exit code"


def collection_failure(exit_code: int | None, errors: Sequence[str]) -> str | None:
    """Also used for `--collect-only`, which leaves no report."""
    if not errors:
        return _exit_failure(exit_code)
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    return "collection failed: " + "; ".join(_short_error(error) for error in errors[:3]) + more


def _short_error(error: str) -> str:
    """The location in the tests, if the error names one, and the last line that pytest marks with `E`."""
    lines = [line.strip() for line in error.splitlines() if line.strip()] or ["no message"]
    reasons = [line.removeprefix("E").strip() for line in lines[1:] if line.startswith("E ")]
    locations = [location for line in lines[1:] for location in _LOCATION.findall(line)]
    where = f"{locations[-1][0]}:{locations[-1][1]}:" if locations and reasons else lines[0]
    return escape_control(" ".join([where, *reasons[-1:]]), 500)


def collection_details(errors: Sequence[str]) -> str:
    """The first errors, without the frames of pytest and of Python's imports."""
    return "\n".join(map(_own_lines, errors[:3]))


def _own_lines(error: str) -> str:
    """Frames in the tests folder, and what pytest marks with `E`; the whole error where it has neither."""
    lines, own = [], False
    for line in error.splitlines():
        own = _TESTS_FOLDER in line if _FRAME.match(line) else own
        if own or line.startswith("E "):
            lines.append(line)
    return "\n".join(lines) or error


def _exit_failure(exit_code: int | None) -> str | None:
    if exit_code in (0, 1):
        return None
    if exit_code is None:
        return "pytest left no exit code"
    # uvx and the helper report a signal as 128 + its number, as a shell does.
    number = -exit_code if exit_code < 0 else exit_code - 128
    if number in {known.value for known in signal.Signals}:
        return f"pytest was killed by signal {number} ({signal.Signals(number).name})"
    return _EXIT_CODES.get(exit_code, f"pytest ended with {exit_code}, which is none of its exit codes")


def _no_report(evidence: Evidence) -> str | None:
    if evidence.source in ("json-report", "ctrf"):
        return None if evidence.stream.finished is not None else "our plugin in the judge did not run to its end"
    return "no usable report: " + ("; ".join(evidence.faults) or "only the stream was left")


def _unaccounted(evidence: Evidence) -> str | None:
    roster = evidence.roster.nodeids
    expected = roster - evidence.deselected
    if not expected:
        return "no tests were expected"
    reported = {test.nodeid for test in evidence.tests}
    if unknown := sorted(reported - roster):
        return f"reported but not among the tests: {len(unknown)}, the first: {escape_control(unknown[0], 500)}"
    if missing := sorted(expected - reported):
        return f"{len(missing)} of {len(expected)} tests left no result, the first: {escape_control(missing[0], 500)}"
    return None


def _contradiction(exit_code: int | None, evidence: Evidence) -> str | None:
    if evidence.reported_exit not in (None, exit_code):
        return f"pytest announced exit code {evidence.reported_exit} and ended with {exit_code}"
    failures = sum(test.status in ("failed", "error") and not test.xpassed for test in evidence.tests)
    if exit_code == 0 and failures:
        return f"pytest ended with 0 while its report has failures: {failures}"
    if exit_code == 1 and not failures:
        return "pytest ended with 1 while no test failed"
    return None
