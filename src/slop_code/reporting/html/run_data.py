"""What a report holds of evaluated runs: little of each test, and texts apart, in parts that have an end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code.evaluation.groups import GroupType
from slop_code.reporting.html.page import Packed, pack
from slop_code.reporting.html.texts import LEFT_OUT, NAME_LIMIT, Texts, name_of, shell_word, short
from slop_code.runs.layout import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.runs.lines import CheckpointLine
    from slop_code.runs.results import Entry, RunResults

ABSENT = "."
STATUS = {"passed": "p", "failed": "f", "error": "e", "skipped": "s"}
GROUPS = {group: str(number) for number, group in enumerate(GroupType)}
PARTS_LIMIT = 6_000_000
"""Characters of all parts together as they stand in the page; beyond it, texts are left out."""

WARNINGS_SHOWN = 20


@dataclass(slots=True)
class Row:
    """One test at the checkpoints so far, a character for each."""

    name: str
    word: str | None
    """How a shell reads it; None where the name was too long for the page."""
    statuses: str = ""
    groups: str = ""


@dataclass(slots=True)
class Sheet:
    """A problem of a run, as it is filled checkpoint by checkpoint."""

    name: str
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    """In the order in which tests came: by checkpoint, then as they were collected."""


@dataclass(slots=True)
class Parts:
    """What a page unpacks when it is wanted, and how much of it there may be."""

    limit: int = PARTS_LIMIT
    packed: dict[str, Packed] = field(default_factory=dict)
    size: int = 0

    def add(self, name: str, part: dict[str, Any]) -> None:
        packed = pack(part)
        if self.size + len(packed) > self.limit:
            packed = pack(without_texts(part))
        self.packed[name] = packed
        self.size += len(packed)


def report_data(
    runs: Iterable[RunResults], policies: Sequence[Policy], *, limit: int = PARTS_LIMIT
) -> tuple[dict[str, Any], dict[str, Packed]]:
    """The data of the page and its parts; one result is in memory at a time."""
    parts = Parts(limit)
    told = [run_data(number, run, policies, parts) for number, run in enumerate(runs)]
    data = {"policies": [str(policy) for policy in policies], "groups": [group.value for group in GroupType]}
    return {**data, "runs": told}, parts.packed


def run_data(number: int, run: RunResults, policies: Sequence[Policy], parts: Parts) -> dict[str, Any]:
    sheets: dict[str, Sheet] = {}
    for entry in run.entries():
        sheet = sheets.setdefault(entry.line.problem, Sheet(entry.line.problem))
        place = f"{number}/{list(sheets).index(sheet.name)}/{len(sheet.checkpoints)}"
        add_checkpoint(sheet, entry, policies)
        if entry.results is not None:
            parts.add(place, part_of(entry.results, list(sheet.rows)))
    return {
        "name": name_of(run.name),
        "path": name_of(text_of(str(run.folder))),
        "problems": [sheet_data(sheet) for sheet in sheets.values()],
    }


def add_checkpoint(sheet: Sheet, entry: Entry, policies: Sequence[Policy]) -> None:
    sheet.checkpoints.append({**checkpoint_data(entry.line, policies), "place": place_of(entry)})
    if entry.results is None:
        return
    before = len(sheet.checkpoints) - 1
    for test in entry.results.tests:
        key = test.file_path, test.id
        if key not in sheet.rows:
            sheet.rows[key] = new_row(test, len(sheet.rows))
        row = sheet.rows[key]
        row.statuses = row.statuses.ljust(before, ABSENT) + STATUS[test.status]
        row.groups = row.groups.ljust(before, ABSENT) + GROUPS[test.group_type]


def place_of(entry: Entry) -> str | None:
    """As a command of ours takes it: the path below the folder that was given."""
    if entry.folder is None:
        return None
    path = text_of(str(entry.folder))
    return shell_word(f"./{path}" if path.startswith("-") else path)


def new_row(test: TestResult, number: int) -> Row:
    """A name that is cut still tells tests apart."""
    whole = f"{test.file_path}::{test.id}"
    if len(whole) <= NAME_LIMIT:
        return Row(name_of(whole), shell_word(whole))
    return Row(f"{name_of(whole)} (test {number + 1})", None)


def checkpoint_data(line: CheckpointLine, policies: Sequence[Policy]) -> dict[str, Any]:
    """Verdicts are found here, so that no rule has to be known to the page."""
    told = line.regressions
    more = len(line.warnings) - WARNINGS_SHOWN
    return {
        "name": name_of(line.checkpoint),
        "state": line.state,
        "reason": short(line.reason) if line.reason else None,
        "verdicts": "".join("1" if line.passes(policy) else "0" for policy in policies),
        "passed": [line.pass_counts.get(group, 0) for group in GroupType],
        "total": [line.total_counts.get(group, 0) for group in GroupType],
        "ms": round(line.duration * 1000),
        "phases": {name_of(name): round(seconds * 1000) for name, seconds in line.phases.items()},
        "attempts": line.attempts,
        "warnings": [*map(short, line.warnings[:WARNINGS_SHOWN]), *([f"... and {more} more"] if more > 0 else [])],
        "since": name_of(told.since) if told else None,
        "introduced": told.introduced if told else 0,
        "repaired": told.repaired if told else 0,
    }


def sheet_data(sheet: Sheet) -> dict[str, Any]:
    verdicts = [checkpoint["state"] == "evaluated" for checkpoint in sheet.checkpoints]
    tests = []
    for row in sheet.rows.values():
        statuses = row.statuses.ljust(len(verdicts), ABSENT)
        told = {"name": row.name, "statuses": statuses, "groups": row.groups.ljust(len(verdicts), ABSENT)}
        tests.append({**told, "changes": changes(statuses, verdicts), "word": row.word})
    return {"name": name_of(sheet.name), "checkpoints": sheet.checkpoints, "tests": tests}


def changes(statuses: str, verdicts: Sequence[bool]) -> str:
    """For one test at each checkpoint: n for born, b for broke, r for recovered, else a dot.

    By the rule that regressions are counted by: with the nearest earlier checkpoint that has a verdict,
    where the test ran at both.
    """
    found, before, born = "", ABSENT, False
    for status, verdict in zip(statuses, verdicts, strict=True):
        if not verdict:
            found += ABSENT
            continue
        found += _change(before, status, born)
        before, born = status, born or status != ABSENT
    return found


def _change(before: str, now: str, born: bool) -> str:
    if now == ABSENT:
        return ABSENT
    if not born:
        return "n"
    if before == ABSENT or (before == "p") == (now == "p"):
        return ABSENT
    return "r" if now == "p" else "b"


def part_of(results: CorrectnessResults, keys: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Each test by its row: duration, markers, and message, calls and output by their place among the texts."""
    rows = {key: number for number, key in enumerate(keys)}
    markers: dict[tuple[str, ...], int] = {}
    texts = Texts()
    tests = []
    for test in results.tests:
        told: list[int | None] = [rows[test.file_path, test.id], round(test.duration_ms)]
        told.append(markers.setdefault(tuple(map(name_of, test.markers)), len(markers)))
        told += [texts.add(test.failure_message), texts.add("\n".join(test.calls)), texts.add(test.output)]
        tests.append(told)
    return {"tests": tests, "markers": list(markers), "texts": texts.all}


def without_texts(part: dict[str, Any]) -> dict[str, Any]:
    tests = [[*test[:3], *(LEFT_OUT if place is not None else None for place in test[3:])] for test in part["tests"]]
    return {**part, "tests": tests, "texts": []}
