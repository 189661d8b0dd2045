"""Lines about the tests that did not pass, grouped by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from slop_code.reporting.failures.failure_causes import checkpoint_cause, failure_causes, not_passed_tests
from slop_code.reporting.text import GROUP_HEADINGS, first_line, more_line, one_line, plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.reporting.failures.failure_causes import CheckpointCause, FailureCause
    from slop_code.reporting.terminal import StyledLine

MAX_LINES = 20
SHOWN_CAUSES = 2
"""Causes in the line about a checkpoint of a run."""
MIN_NAME_WIDTH = 16
"""Columns that a name keeps beside a long reason."""
STYLES = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}


def cause_lines(results: CorrectnessResults, cause: CheckpointCause | None) -> Iterator[StyledLine]:
    """The cause of the whole checkpoint in full, then the other warnings."""
    if cause is not None:
        explained, failed = len(cause.explained), len(not_passed_tests(results))
        most = f" ({explained} of {failed} tests that did not pass)" if 0 < explained < failed else ""
        style = "magenta" if results.infrastructure_failure else "red"
        yield f"reason: {_indented(cause.text)}{most}", style
    yield from ((f"warning: {_indented(warning)}", "yellow") for warning in other_warnings(results.warnings, cause))


def other_warnings(warnings: Sequence[str], cause: CheckpointCause | None) -> list[str]:
    """Those that do not say the cause of the checkpoint."""
    return [warning for warning in warnings if cause is None or warning != cause.text]


def failure_lines(
    results: CorrectnessResults, cause: CheckpointCause | None, width: int | None, rest: str = ""
) -> Iterator[StyledLine]:
    """At most MAX_LINES: a line for each cause, and the names of its tests where there is room.

    Tests that the cause of the checkpoint explains are left out. `width` is that of the terminal in columns, or None
    if nothing is cut. `rest` says how to see the tests that are not named.
    """
    explained = cause.explained if cause is not None else frozenset()
    tests = [test for test in not_passed_tests(results) if test.nodeid not in explained]
    causes = failure_causes(tests)
    names = _shown_names(causes)
    for group, count in zip(causes, names, strict=False):
        if len(group.tests) > 1:
            yield _cut(f"{plural(len(group.tests), 'test')}: {group.text}", width), STYLES[group.tests[0].status]
            yield from ((line_of_test(test, "", width, "    "), STYLES[test.status]) for test in group.tests[:count])
        else:
            yield line_of_test(group.tests[0], group.text, width), STYLES[group.tests[0].status]
    yield from more_line(tests, sum(names), f" that did not pass{rest}")


def line_of_test(test: TestResult, reason: str, width: int | None = None, indent: str = "") -> str:
    """Status, group, name and reason of a test. A terminal has no room for the file, nor for the usual status."""
    end = " (quarantined)" if test.quarantined else ""
    end += f": {reason}" if reason not in ("", test.status) else ""
    status = f"{test.status.upper()} "
    if width is None:
        return f"{indent}{status}{test.group_type} {one_line(test.nodeid)}{end}"
    start = f"{indent}{GROUP_HEADINGS[test.group_type]:<6} {status if test.status != 'failed' else ''}"
    room = max(MIN_NAME_WIDTH, width - cell_len(start) - cell_len(end))
    return _cut(f"{start}{_cut(one_line(test.id), room)}{end}", width)


def failure_summary(results: CorrectnessResults) -> str:
    """One line: the cause of the checkpoint, or the first causes of its failures."""
    whole = checkpoint_cause(results)
    if whole is not None:
        return first_line(whole.text)
    causes = failure_causes(not_passed_tests(results))
    texts = [f"{plural(len(cause.tests), 'test')}: {cause.text}" for cause in causes[:SHOWN_CAUSES]]
    left = sum(len(cause.tests) for cause in causes[SHOWN_CAUSES:])
    return "; ".join([*texts, *([f"and {left} more"] if left else [])])


def _shown_names(causes: Sequence[FailureCause]) -> list[int]:
    """Number of tests named below each cause; causes at the end for which there is no line are left out."""
    sizes = [len(cause.tests) for cause in causes]
    needed = sum(sizes) + sum(size > 1 for size in sizes)
    lines = MAX_LINES if needed <= MAX_LINES else MAX_LINES - 1  # the last one counts those that are left out
    sizes = sizes[:lines]
    room, names = lines - len(sizes), []
    for size in sizes:
        names.append(1 if size == 1 else min(size, room))
        room -= names[-1] if size > 1 else 0
    return names


def _indented(text: str) -> str:
    """Indented from the second line on, so that no output of a submission looks like a line of ours.

    The line in which pytest counts tests is left out, since it reads like a verdict.
    """
    return "\n    ".join(line for line in printable(text).split("\n") if not _is_pytest_summary(line))


def _is_pytest_summary(line: str) -> bool:
    """True for `=== 1 failed, 10 passed in 0.86s ===`."""
    return line.startswith("=") and line.endswith("=") and any(word in line for word in (" passed", " failed"))


def _cut(text: str, width: int | None) -> str:
    if width is None or cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 3)) + "..."
