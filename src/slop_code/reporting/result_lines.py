"""One result on standard output: a table and colours on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy, has_tests
from slop_code.evaluation.reports.raw_test import shortened
from slop_code.reporting.headline import headline
from slop_code.reporting.resource_text import attempt_lines, limit_lines, usage_text
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import (
    NOT_RECORDED,
    first_line,
    format_duration,
    more_line,
    one_line,
    plural,
    printable,
    shell_word,
    truncate,
)
from slop_code.runs.run_layout import text_of
from slop_code.runs.scb.load_result import is_scb
from slop_code.runs.scb.scb_evaluation import RUNNER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.reporting.terminal import StyledLine

MAX_FAILURES = 10
"""Failures that are shown with their messages."""
MAX_LISTED_FAILURES = 50
"""Failures that are shown with a line each."""
HEADLINE_WIDTH = 160
"""Characters of that line after the name."""
MAX_MESSAGE_LINES = 40
MAX_TEXT_LENGTH = 1 << 20
DIGEST_LENGTH = 12
STYLES = {"passed": "green", "failed": "red", "error": "magenta", "skipped": "yellow"}


def show_result(results: CorrectnessResults, policy: Policy, *, every: bool = False, messages: bool = True) -> None:
    """A new result. Messages are left out where pytest's output, which has them, was shown."""
    _show(results, (), result_lines(results, policy, every=every, messages=messages))


def show_stored(
    results: CorrectnessResults, policy: Policy, path: Path, agent: str | None = None, *, every: bool = False
) -> None:
    """A stored result with its provenance and a line for each test; `path`: as the user gave it.

    `agent`: text about the agent and its work, where that is recorded.
    """
    facts = [*provenance_lines(results), *([f"agent: {agent}"] if agent else [])]
    _show(results, facts, listed_lines(results, policy, path, every=every))


def _show(results: CorrectnessResults, facts: Iterable[str], lines: Iterable[StyledLine]) -> None:
    console = ResultConsole()
    console.print(Text(printable(f"{results.problem_name} {results.checkpoint_name}"), "bold"))
    if console.is_terminal:
        console.print(group_table(results))
    else:
        for name, passed, total in group_rows(results):
            console.print(f"  {name.lower()}: {passed}/{total}")
    print_lines(console, [(text, "dim") for text in facts])
    print_lines(console, lines)


def group_rows(results: CorrectnessResults) -> list[tuple[str, int, int]]:
    counts = [(group.value, results.pass_counts[group], results.total_counts[group]) for group in GroupType]
    return [row for row in counts if row[2]]


def group_table(results: CorrectnessResults) -> Table:
    table = Table("group")
    table.add_column("passed", justify="right")
    table.add_column("total", justify="right")
    for name, passed, total in group_rows(results):
        table.add_row(name, str(passed), str(total), style="green" if passed == total else "red")
    return table


def result_lines(
    results: CorrectnessResults, policy: Policy, *, every: bool, messages: bool = True
) -> Iterator[StyledLine]:
    """The lines below the counts. `every`: all tests, and the times of the phases."""
    yield from _reason(results)
    failures = _failures(results)
    for test in results.tests if every else failures[:MAX_FAILURES]:
        yield _test_title(test), STYLES[test.status]
        yield from ((f"    {line}", "yellow") for line in limit_lines(test))
        if messages and test.failure_message not in _reasons(results):
            yield from ((f"    {line}", "") for line in message_lines(test))
    if not every:
        yield from more_line(failures, MAX_FAILURES, " that did not pass; -v shows all")
    yield from _ending(results, policy, every=every)


def listed_lines(
    results: CorrectnessResults, policy: Policy, path: Path, *, every: bool = False
) -> Iterator[StyledLine]:
    """The same with a line for each test: its status, group and name, and the headline of its message."""
    yield from _reason(results)
    failures = _failures(results)
    for test in results.tests if every else failures[:MAX_LISTED_FAILURES]:
        message = test.failure_message if test.failure_message not in _reasons(results) else None
        yield _test_title(test) + (f": {headline(message, HEADLINE_WIDTH)}" if message else ""), STYLES[test.status]
        yield from ((f"    {line}", "yellow") for line in limit_lines(test))
    if not every:
        yield from more_line(failures, MAX_LISTED_FAILURES, " that did not pass; -v shows all")
    if failures:
        yield f"a test in full: slop-code show {shell_word(text_of(str(path)))} TEST", "dim"
    yield from _ending(results, policy, every=every)


def _failures(results: CorrectnessResults) -> list[TestResult]:
    return [test for test in results.tests if test.status != "passed"]


def _test_title(test: TestResult) -> str:
    note = " (quarantined)" if test.quarantined else ""
    return f"{test.status.upper()} {test.group_type} {one_line(test.nodeid)}{note}"


def _reasons(results: CorrectnessResults) -> tuple[str | None, str | None]:
    """Texts that all tests share; they are shown once."""
    return results.infrastructure_failure_reason, results.setup_failure


def _reason(results: CorrectnessResults) -> Iterator[StyledLine]:
    if results.infrastructure_failure_reason:
        yield f"reason: {printable(results.infrastructure_failure_reason)}", "magenta"
    elif results.setup_failure:
        yield f"reason: {printable(results.setup_failure)}", "red"


def _ending(results: CorrectnessResults, policy: Policy, *, every: bool) -> Iterator[StyledLine]:
    for warning in results.warnings:
        yield f"warning: {printable(warning)}", "yellow"
    python, is_syntax = results.provenance.digests.python, any(map(_is_syntax_error, results.tests))
    if python and (every or is_syntax):
        step = "; `python` in the environment chooses another" if is_syntax else ""
        yield one_line(f"the submission ran on Python {python}{step}"), "yellow" if is_syntax else "dim"
    if every:
        yield "  ".join(f"{one_line(name)} {seconds:.2f} s" for name, seconds in results.phases.items()), "dim"
    if quarantined := [test for test in results.tests if test.quarantined]:
        bad = sum(test.status != "passed" for test in quarantined)
        count = plural(len(quarantined), "test")
        yield f"quarantined, without effect on the verdict: {count}, {bad} did not pass", "yellow"
    yield verdict(results, policy)


def _is_syntax_error(test: TestResult) -> bool:
    """A submission for a newer Python fails like that."""
    return test.status != "passed" and "SyntaxError" in (test.failure_message or "")


def message_lines(test: TestResult) -> list[str]:
    """The end of a failure message, where pytest prints the expected and the actual value."""
    lines = [truncate(line) for line in printable(test.failure_message or "").splitlines()]
    left_out = len(lines) - MAX_MESSAGE_LINES
    return lines if left_out <= 0 else [f"[{left_out} lines left out]", *lines[-MAX_MESSAGE_LINES:]]


def verdict(results: CorrectnessResults, policy: Policy) -> StyledLine:
    if results.infrastructure_failure:
        return "INFRASTRUCTURE FAILURE: no verdict", "bold magenta"
    passed, total = sum(results.pass_counts.values()), sum(results.total_counts.values())
    if results.partial:
        return f"PART ONLY, no verdict: {passed} of {total} chosen tests passed, {results.deselected} left out", "bold"
    good = results.passes(policy)
    word = "PASSED" if good else "NOT PASSED"
    none = "" if not total or has_tests(policy, results.total_counts) else "no tests of this policy; "
    return f"{word} ({policy}): {none}{passed} of {total} tests passed", "bold green" if good else "bold red"


def part_lines(label: str, results: CorrectnessResults | None, reason: str | None) -> Iterator[StyledLine]:
    """A part of the tests of a checkpoint in a run; `reason`: why there are no results."""
    if results is None:
        yield f"{one_line(label)}: no verdict: {first_line(reason or 'not evaluated')}", "magenta"
        return
    text, style = verdict(results, PassPolicy.ALL_CASES)
    yield f"{one_line(label)}: {text}", style
    yield from ((f"  {line}", style) for line, style in _reason(results))
    failures = _failures(results)
    for test in failures[:MAX_LISTED_FAILURES]:
        yield f"  {_test_title(test)}", STYLES[test.status]
    yield from more_line(failures, MAX_LISTED_FAILURES, " that did not pass")


def provenance_lines(results: CorrectnessResults) -> Iterator[str]:
    source, isolation = results.provenance, results.isolation
    if is_scb(results):
        yield f"by: {RUNNER}; versions {NOT_RECORDED}"
        yield f"of: {NOT_RECORDED}"
        yield f"isolation: {NOT_RECORDED}; tests read from its files; {format_duration(results.duration)}"
        return
    pytest = source.test_dependencies.get("pytest", "of an unknown version")
    rules = f" (rules {source.evaluation_version})" if source.evaluation_version else ""
    python = f"Python {source.python}" + (f" (submission: {own})" if (own := source.digests.python) else "")
    versions = f"slop-code {source.slop_code}{rules}, pytest {pytest}, {python}, {source.platform}"
    yield one_line(f"by: {versions}")
    digests = {name: digest for name, digest in source.digests.model_dump(exclude={"python"}).items() if digest}
    yield one_line(f"of: {', '.join(f'{name} {short_digest(digest)}' for name, digest in digests.items())}")
    box = f"{isolation['sandbox']}, network {isolation.get('network', 'unknown')}" if "sandbox" in isolation else "none"
    ran = f"isolation: {box}; tests read from {results.evidence}"
    if results.evidence == "setup":  # pytest never ran
        ran = "no test ran, since the submission could not be set up"
    yield one_line(f"{ran}; {format_duration(results.duration)}")
    if source.pytest_args:
        yield one_line(f"pytest arguments: {shlex.join(source.pytest_args)}")
    for attempt in results.attempts:
        yield f"tried before: {first_line(attempt.reason)}"


def short_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")[:DIGEST_LENGTH]


def show_test(results: CorrectnessResults, test: TestResult, path: Path) -> None:
    """`path`: the result, as the user gave it."""
    print_lines(ResultConsole(), lines_of_test(results, test, path))


def lines_of_test(results: CorrectnessResults, test: TestResult, path: Path) -> Iterator[StyledLine]:
    """A test in full."""
    yield printable(f"{test.status.upper()} {test.group_type} {test.nodeid}"), f"bold {STYLES[test.status]}"
    facts = [f"{results.problem_name} {results.checkpoint_name}", f"test of {test.checkpoint}"]
    facts += [f"{test.duration_ms:.0f} ms", f"markers: {', '.join(test.markers) or 'none'}"]
    yield one_line("; ".join(facts)), "dim"
    if test.usage is not None:
        yield usage_text(test.usage), "dim"
    yield from ((line, "yellow") for line in (*attempt_lines(test), *limit_lines(test)))
    if results.infrastructure_failure_reason:
        yield f"no verdict on the checkpoint: {first_line(results.infrastructure_failure_reason)}", "magenta"
    for title, text in (("message", test.failure_message), ("ran", "\n".join(test.calls)), ("printed", test.output)):
        if text:
            yield f"{title}:", "bold"
            shown = printable(shortened(text, MAX_TEXT_LENGTH)).rstrip("\n")
            yield from ((f"    {line}", "") for line in shown.split("\n"))
    if not is_scb(results):
        yield f"again: slop-code rerun {shell_word(text_of(str(path)))} {shell_word(test.nodeid)}", "dim"
