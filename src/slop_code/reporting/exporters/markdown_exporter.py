"""Markdown summary for a pull request or the page of a CI job.

GitHub refuses a comment of more than 65,536 characters. Text of a submission is never markup, a link or a mention:
it is in code spans, in fences that are longer than any fence in it, or in escaped HTML.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from slop_code.evaluation.groups import GroupType
from slop_code.reporting.failures.headline import headline
from slop_code.reporting.text import (
    GROUP_HEADINGS,
    file_safe,
    format_cost,
    has_verdict,
    one_line,
    plural,
    rates_text,
    truncate,
)
from slop_code.runs.summary import totals_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import TestResult
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.read_results import StoredCheckpoint

MAX_DOCUMENT_BYTES = 60_000
MAX_TABLE_BYTES = 25_000
MAX_MESSAGE_BYTES = 2_000
MESSAGE_WIDTH = 300
"""Characters of a line."""
NAME_WIDTH = 120
REASON_WIDTH = 300
MAX_CHECKPOINT_FAILURES = 5
MAX_FAILURES = 40


class FailedTest(NamedTuple):
    line: CheckpointLine
    test: TestResult


def export(entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy) -> None:
    lines: list[CheckpointLine] = []
    failures: list[FailedTest] = []
    failed = 0
    for entry in entries:
        lines.append(entry.line)
        if entry.results and has_verdict(entry.line):
            bad = [test for test in entry.results.tests if test.status != "passed" and not test.quarantined]
            failed += len(bad)
            room = min(MAX_CHECKPOINT_FAILURES, MAX_FAILURES - len(failures))
            failures += [FailedTest(entry.line, test) for test in bad[:room]]
    out.write(document(lines, failures, failed, policy).encode())


def document(lines: Sequence[CheckpointLine], failures: Sequence[FailedTest], failed: int, policy: Policy) -> str:
    """`failures` are the first of the `failed` tests."""
    several = len({line.run for line in lines}) > 1
    above = (verdict(lines, policy), solved(lines), table(lines, policy, several=several))
    head = "\n\n".join(filter(None, above))
    blocks = [details(failure, several=several) for failure in failures]
    kept = within(blocks, MAX_DOCUMENT_BYTES - _size(head) - 500)
    parts = [head, *kept]
    if failed > len(kept):
        parts.append(f"{plural(failed - len(kept), 'more test')} did not pass.\n")
    return "\n".join(parts)


def verdict(lines: Sequence[CheckpointLine], policy: Policy) -> str:
    passed = sum(line.passes(policy) for line in lines)
    unknown = sum(not has_verdict(line) for line in lines)
    word = "NO VERDICT" if unknown or not lines else "PASSED" if passed == len(lines) else "NOT PASSED"
    text = f"**{word}** ({code(policy)}): {passed} of {plural(len(lines), 'checkpoint')} passed"
    broken = sum(line.regressions.introduced for line in lines if line.regressions)
    return text + f", {unknown} without a verdict" * bool(unknown) + f", {plural(broken, 'regression')}" * bool(broken)


def solved(lines: Sequence[CheckpointLine]) -> str:
    """Solved checkpoints and mean rates by the names of SlopCodeBench, and the cost of the agent, as far as known."""
    totals = totals_of(lines)
    cost = totals.agent.cost if totals.agent else None
    texts = [rates_text(totals), "" if cost is None else f"cost of the agent {format_cost(cost)}"]
    return "; ".join(filter(None, texts))


def table(lines: Sequence[CheckpointLine], policy: Policy, *, several: bool) -> str:
    """Where there is no room for all checkpoints, those that did not pass take precedence."""
    groups = [group for group in GroupType if any(line.total_counts.get(group) for line in lines)]
    heads = ["checkpoint", "verdict", *(GROUP_HEADINGS[group] for group in groups), "broke", "recovered"]
    shown = {id(line): row(line, policy, groups, several=several) for line in lines}
    urgent = [id(line) for line in sorted(lines, key=lambda line: line.passes(policy))]
    kept = set(urgent[: len(within([shown[key] for key in urgent], MAX_TABLE_BYTES))])
    table_lines = [_cells(heads), _cells(["---", "---", *["--:"] * (len(heads) - 2)])]
    table_lines += [text for key, text in shown.items() if key in kept]
    if len(kept) < len(lines):
        table_lines.append(f"\n{plural(len(lines) - len(kept), 'more checkpoint')}: not shown here.")
    return "\n".join(table_lines) + "\n"


def row(line: CheckpointLine, policy: Policy, groups: Sequence[GroupType], *, several: bool) -> str:
    word = "passed" if line.passes(policy) else "**not passed**"
    if not has_verdict(line):
        word = f"**no verdict**: {code(headline(line.reason or line.state), REASON_WIDTH)}"
    elif line.not_looked_at_again is not None:
        word += f" (not looked at again: {code(headline(line.not_looked_at_again), REASON_WIDTH)})"
    changes = (str(line.regressions.introduced), str(line.regressions.repaired)) if line.regressions else ("", "")
    return _cells([code(_label(line, several)), word, *(_rate(line, group) for group in groups), *changes])


def details(failure: FailedTest, *, several: bool) -> str:
    line, test = failure
    name = html.escape(brief(f"{_label(line, several)} {test.nodeid}", 2 * NAME_WIDTH))
    text = ending(file_safe(test.failure_message or "no message"))
    fence = "`" * max(3, 1 + _longest_run(text))
    title = f"<details><summary>{test.status} {test.group_type} <code>{name}</code></summary>"
    return f"{title}\n\n{fence}text\n{text}\n{fence}\n\n</details>\n"


def ending(text: str) -> str:
    """The last lines, where pytest prints the expected and the actual value."""
    lines = [truncate(line, MESSAGE_WIDTH) for line in text.split("\n")]
    kept = within(lines[::-1], MAX_MESSAGE_BYTES)[::-1]
    left_out = len(lines) - len(kept)
    return "\n".join([*([f"[{plural(left_out, 'line')} left out]"] if left_out else []), *kept])


def code(text: str, width: int = NAME_WIDTH) -> str:
    """A code span that is valid in a table cell, too, where `\\|` stands for a pipe."""
    shown = brief(text, width) or "(empty)"
    shown = re.sub(r"\\(?=\|)", r"\\ ", shown).replace("|", r"\|")
    ticks = "`" * (1 + _longest_run(shown))
    space = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def brief(text: str, width: int) -> str:
    return truncate(one_line(text).strip(), width)


def within(pieces: Sequence[str], limit: int) -> list[str]:
    """The first pieces that fit into `limit` bytes."""
    kept = []
    for piece in pieces:
        limit -= _size(piece) + 1
        if limit < 0:
            break
        kept.append(piece)
    return kept


def _label(line: CheckpointLine, several: bool) -> str:
    return line.label if several else f"{line.problem}/{line.checkpoint}"


def _rate(line: CheckpointLine, group: GroupType) -> str:
    total = line.total_counts.get(group, 0)
    return f"{line.pass_counts.get(group, 0)}/{total}" if total and has_verdict(line) else ""


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _size(text: str) -> int:
    return len(text.encode())
