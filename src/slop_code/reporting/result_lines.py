"""One result on standard output: a table and colours on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from slop_code._safe_text import decoded_name, shortened
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy, has_tests
from slop_code.reporting.failures.failure_causes import checkpoint_cause, not_passed_tests, syntax_error
from slop_code.reporting.failures.failure_lines import STYLES, cause_lines, failure_lines, line_of_test
from slop_code.reporting.provenance_text import python_text, sandbox_text, short_digest
from slop_code.reporting.resource_text import attempt_lines, limit_lines, usage_text
from slop_code.reporting.terminal import ResultConsole, print_lines
from slop_code.reporting.text import (
    NOT_RECORDED,
    first_line,
    format_duration,
    one_line,
    plural,
    printable,
    shell_word,
    truncate,
)
from slop_code.runs.scb.load_result import is_scb
from slop_code.runs.scb.scb_evaluation import RUNNER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rich.console import Console

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.reporting.terminal import StyledLine

MAX_MESSAGE_LINES = 40
MAX_TEXT_LENGTH = 1 << 20


def show_result(
    results: CorrectnessResults,
    policy: Policy,
    hint: str | None = None,
    *,
    verbose: bool = False,
) -> None:
    """A new result. `hint` says how to see a failure in full. `verbose` shows all tests with their messages."""
    console = ResultConsole()
    _show(console, results, (), _chosen_lines(console, results, policy, hint, verbose=verbose))


def show_after_pytest(results: CorrectnessResults, policy: Policy) -> None:
    """A new result, below pytest's own output."""
    _show(ResultConsole(), results, (), lines_after_pytest(results, policy))


def show_stored(
    results: CorrectnessResults, policy: Policy, path: Path | None, agent: str | None = None, *, verbose: bool = False
) -> None:
    """A stored result with its provenance. `verbose` shows all tests with their messages.

    `path` is as the user gave it, None for the last result. `agent` is text about the agent and its work, if recorded.
    """
    console = ResultConsole()
    facts = [*provenance_lines(results), *([f"agent: {agent}"] if agent else [])]
    _show(console, results, facts, _chosen_lines(console, results, policy, show_hint(path), verbose=verbose))


def _chosen_lines(
    console: Console, results: CorrectnessResults, policy: Policy, hint: str | None, *, verbose: bool
) -> Iterator[StyledLine]:
    return every_test_lines(results, policy) if verbose else result_lines(results, policy, hint, _width(console))


def _show(console: Console, results: CorrectnessResults, facts: Iterable[str], lines: Iterable[StyledLine]) -> None:
    """Counts are left out after an infrastructure failure, since they read like a verdict."""
    console.print(Text(printable(f"{results.problem_name} {results.checkpoint_name}"), "bold"))
    if console.is_terminal and not results.infrastructure_failure:
        console.print(group_table(results))
    elif not results.infrastructure_failure:
        for name, passed, total in group_rows(results):
            console.print(f"  {name.lower()}: {passed}/{total}")
    print_lines(console, [(text, "dim") for text in facts])
    print_lines(console, lines)


def _width(console: Console) -> int | None:
    """None where lines are not cut: a name in a file or a pipe can be copied."""
    return console.width if console.is_terminal else None


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
    results: CorrectnessResults, policy: Policy, hint: str | None = None, width: int | None = None
) -> Iterator[StyledLine]:
    """The lines below the counts: the cause of the checkpoint, the failures by cause, the verdict."""
    cause = checkpoint_cause(results)
    yield from cause_lines(results, cause)
    if not results.infrastructure_failure:
        yield from failure_lines(results, cause, width, "; -v shows all")
        if hint is not None and not_passed_tests(results):
            yield hint, "dim"
    yield from _ending(results, policy, verbose=False)


def show_hint(path: Path | None) -> str:
    """`path` is that of a result, or None for the last one."""
    words = ["slop-code show", *([] if path is None else [shell_word(decoded_name(str(path)))]), "TEST"]
    return f"a test in full: {' '.join(words)}"


def lines_after_pytest(results: CorrectnessResults, policy: Policy) -> Iterator[StyledLine]:
    """All that pytest's own output does not have: of its failures, only the limits that struck."""
    yield from cause_lines(results, checkpoint_cause(results))
    for test in not_passed_tests(results):
        if limits := limit_lines(test):
            yield line_of_test(test, limits[0]), STYLES[test.status]
    yield from _ending(results, policy, verbose=True)


def every_test_lines(results: CorrectnessResults, policy: Policy) -> Iterator[StyledLine]:
    """The long form: all tests with their messages, and the times of the phases."""
    yield from cause_lines(results, checkpoint_cause(results))
    for test in results.tests:
        yield line_of_test(test, ""), STYLES[test.status]
        yield from ((f"    {line}", "yellow") for line in limit_lines(test))
        if not _has_common_message(test, results):
            yield from ((f"    {line}", "") for line in message_lines(test))
    yield from _ending(results, policy, verbose=True)


def _has_common_message(test: TestResult, results: CorrectnessResults) -> bool:
    """True if its message is the cause of the checkpoint, which is shown once."""
    message = test.failure_message
    return message is not None and message in (results.infrastructure_failure_reason, results.setup_failure)


def _ending(results: CorrectnessResults, policy: Policy, *, verbose: bool) -> Iterator[StyledLine]:
    # A submission for a newer Python fails with a syntax error.
    python, is_syntax = results.provenance.digests.python, any(map(syntax_error, not_passed_tests(results)))
    if python and (verbose or is_syntax):
        step = "; `python` in the environment chooses another" if is_syntax else ""
        yield one_line(f"the submission ran on Python {python}{step}"), "yellow" if is_syntax else "dim"
    if verbose:
        yield "  ".join(f"{one_line(name)} {seconds:.2f} s" for name, seconds in results.phases.items()), "dim"
    if quarantined := [test for test in results.tests if test.quarantined]:
        bad = sum(test.status != "passed" for test in quarantined)
        count = plural(len(quarantined), "test")
        yield f"quarantined, without effect on the verdict: {count}, {bad} did not pass", "yellow"
    yield verdict(results, policy)


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
    """A part of the tests of a checkpoint in a run. `reason` says why there are no results."""
    if results is None:
        yield f"{one_line(label)}: no verdict: {first_line(reason or 'not evaluated')}", "magenta"
        return
    text, style = verdict(results, PassPolicy.ALL_CASES)
    yield f"{one_line(label)}: {text}", style
    cause = checkpoint_cause(results)
    lines = [*cause_lines(results, cause), *failure_lines(results, cause, None)]
    yield from ((f"  {line}", style) for line, style in lines)


def provenance_lines(results: CorrectnessResults) -> Iterator[str]:
    source = results.provenance
    if is_scb(results):
        yield f"by: {RUNNER}; versions {NOT_RECORDED}"
        yield f"of: {NOT_RECORDED}"
        yield f"isolation: {NOT_RECORDED}; tests read from its files; {format_duration(results.duration)}"
        return
    pytest = source.test_dependencies.get("pytest", "of an unknown version")
    rules = f" (rules {source.evaluation_version})" if source.evaluation_version else ""
    versions = f"slop-code {source.slop_code}{rules}, pytest {pytest}, Python {python_text(results)}, {source.platform}"
    yield one_line(f"by: {versions}")
    digests = {name: digest for name, digest in source.digests.model_dump(exclude={"python"}).items() if digest}
    yield one_line(f"of: {', '.join(f'{name} {short_digest(digest)}' for name, digest in digests.items())}")
    ran = f"isolation: {sandbox_text(results) or 'none'}; tests read from {results.evidence}"
    if results.evidence == "setup":  # pytest never ran
        ran = "no test ran, since the submission could not be set up"
    yield one_line(f"{ran}; {format_duration(results.duration)}")
    if source.pytest_args:
        yield one_line(f"pytest arguments: {shlex.join(source.pytest_args)}")
    for attempt in results.attempts:
        yield f"tried before: {first_line(attempt.reason)}"


def show_test(results: CorrectnessResults, test: TestResult, path: Path) -> None:
    """`path` is that of the result, as the user gave it."""
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
        yield f"again: slop-code rerun {shell_word(decoded_name(str(path)))} {shell_word(test.nodeid)}", "dim"
