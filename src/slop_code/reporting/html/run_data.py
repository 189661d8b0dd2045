"""What a report holds of evaluated runs: little of each test, and texts apart, in parts that have an end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code.comparison.load import ABSENT, LETTERS
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.report import MAX_DURATION
from slop_code.reporting.html.page import Packed, pack
from slop_code.reporting.html.page_texts import LEFT_OUT, SHORTER, TextPool, UniqueNames, name_of, short, shortened
from slop_code.reporting.text import format_percent, shell_word
from slop_code.runs.checkpoint_lines import regression_kind
from slop_code.runs.run_layout import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.read_results import RunResults, StoredCheckpoint

BORN, UNKNOWN = "n", "u"
TURNS = {"introduced": "b", "repaired": "r", None: ABSENT}
DECIDING_NOTHING = str.maketrans(dict.fromkeys("br", ABSENT))
"""A quarantined test neither breaks nor recovers."""
GROUPS = {group: str(number) for number, group in enumerate(GroupType)}
PARTS_LIMIT = 6_000_000
"""Characters of all parts together as they stand in the page; beyond it, texts are left out."""

WARNINGS_SHOWN = 20


@dataclass(slots=True)
class TestRow:
    """One test at the checkpoints so far, a character for each."""

    name: str
    word: str | None
    """How a shell reads it; None where the name was too long for the page."""
    home: str
    """The checkpoint that it comes from."""
    statuses: str = ""
    groups: str = ""
    quarantined: bool = False


@dataclass(slots=True)
class ProblemData:
    """A problem of a run, as it is filled checkpoint by checkpoint."""

    name: str
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[tuple[str, str], TestRow] = field(default_factory=dict)
    """In the order in which tests came: by checkpoint, then as they were collected."""
    names: UniqueNames = field(default_factory=UniqueNames)


@dataclass(slots=True)
class PageParts:
    """What a page unpacks when it is wanted, and how much of it there may be."""

    limit: int = PARTS_LIMIT
    packed: dict[str, Packed] = field(default_factory=dict)
    size: int = 0

    def add(self, name: str, part: dict[str, Any]) -> None:
        """TextPool are cut where they do not fit, and left out where that is not enough."""
        for version in smaller_and_smaller(part):
            packed = pack(version)
            if self.size + len(packed) <= self.limit:
                break
        self.packed[name] = packed
        self.size += len(packed)


def report_data(
    runs: Iterable[RunResults], policies: Sequence[Policy], *, limit: int = PARTS_LIMIT
) -> tuple[dict[str, Any], dict[str, Packed]]:
    """The data of the page and its parts; results are read one after another, and none is kept."""
    parts = PageParts(limit)
    told = [run_data(number, run, policies, parts) for number, run in enumerate(runs)]
    data = {"policies": [str(policy) for policy in policies], "groups": [group.value for group in GroupType]}
    return {**data, "runs": told}, parts.packed


def run_data(number: int, run: RunResults, policies: Sequence[Policy], parts: PageParts) -> dict[str, Any]:
    sheets: dict[str, ProblemData] = {}
    for entry in run.entries():
        sheet = sheets.setdefault(entry.line.problem, ProblemData(entry.line.problem))
        place = f"{number}/{list(sheets).index(sheet.name)}/{len(sheet.checkpoints)}"
        add_checkpoint(sheet, entry, policies)
        if entry.results is not None:
            parts.add(place, part_of(entry.results, list(sheet.rows)))
    return {"name": name_of(run.name), "problems": [sheet_data(sheet) for sheet in sheets.values()]}


def add_checkpoint(sheet: ProblemData, entry: StoredCheckpoint, policies: Sequence[Policy]) -> None:
    sheet.checkpoints.append({**checkpoint_data(entry.line, policies), "place": place_of(entry)})
    if entry.results is None:
        return
    before = len(sheet.checkpoints) - 1
    for test in entry.results.tests:
        key = test.file_path, test.id
        if key not in sheet.rows:
            name, word = sheet.names.add(f"{test.file_path}::{test.id}", len(sheet.rows))
            sheet.rows[key] = TestRow(name, word, name_of(test.checkpoint))
        row = sheet.rows[key]
        row.quarantined |= test.quarantined
        row.statuses = row.statuses.ljust(before, ABSENT) + LETTERS[test.status]
        row.groups = row.groups.ljust(before, ABSENT) + GROUPS[test.group_type]


def place_of(entry: StoredCheckpoint) -> str | None:
    """As a command of ours takes it: the path below the folder that was given."""
    if entry.folder is None:
        return None
    path = text_of(str(entry.folder))
    return shell_word(f"./{path}" if path.startswith("-") else path)


def checkpoint_data(line: CheckpointLine, policies: Sequence[Policy]) -> dict[str, Any]:
    """Verdicts and shares are found here, so that no rule has to be known to the page."""
    told = line.regressions
    passed = [line.pass_counts.get(group, 0) for group in GroupType]
    total = [line.total_counts.get(group, 0) for group in GroupType]
    more = len(line.warnings) - WARNINGS_SHOWN
    return {
        "name": name_of(line.checkpoint),
        "state": line.state,
        "reason": short(line.reason) if line.reason else None,
        "verdicts": "".join("1" if line.passes(policy) else "0" for policy in policies),
        "passed": passed,
        "total": total,
        "shares": [format_percent(good / of) if of else None for good, of in zip(passed, total, strict=True)],
        "ms": milliseconds(line.duration),
        "phases": {name_of(name): milliseconds(seconds) for name, seconds in line.phases.items()},
        "attempts": line.attempts,
        "warnings": [*map(short, line.warnings[:WARNINGS_SHOWN]), *([f"... and {more} more"] if more > 0 else [])],
        "since": name_of(told.since) if told else None,
        "introduced": told.introduced if told else 0,
        "repaired": told.repaired if told else 0,
    }


def milliseconds(seconds: float) -> int:
    return round(min(max(seconds, 0.0), MAX_DURATION) * 1000)


def sheet_data(sheet: ProblemData) -> dict[str, Any]:
    verdicts = [checkpoint["state"] == "evaluated" for checkpoint in sheet.checkpoints]
    places = {checkpoint["name"]: place for place, checkpoint in enumerate(sheet.checkpoints)}
    tests = []
    for row in sheet.rows.values():
        statuses = row.statuses.ljust(len(verdicts), ABSENT)
        home = places.get(row.home, -1)
        turns = changes(statuses, verdicts, home)
        if row.quarantined:
            turns = turns.translate(DECIDING_NOTHING)
        told = {"name": row.name, "statuses": statuses, "groups": row.groups.ljust(len(verdicts), ABSENT)}
        tests.append({**told, "changes": turns, "home": home, "word": row.word})
    return {"name": name_of(sheet.name), "checkpoints": sheet.checkpoints, "tests": tests}


def changes(statuses: str, verdicts: Sequence[bool], home: int) -> str:
    """For one test at each checkpoint: n for born, b for broke, r for recovered, u where there is nothing to compare
    with, else a dot.

    Compared is with the nearest earlier checkpoint that has a verdict. `home`: where the test comes from, -1 where
    that is before all of these; it was not born where it may have been there before.
    """
    found, before, born = "", ABSENT, home < 0
    for place, (status, verdict) in enumerate(zip(statuses, verdicts, strict=True)):
        if not verdict:
            found, born = found + ABSENT, born or place >= home
            continue
        found += _change(before, status, born)
        before, born = status, born or status != ABSENT
    return found


def _change(before: str, now: str, born: bool) -> str:
    if now == ABSENT:
        return ABSENT
    if before == ABSENT:
        return UNKNOWN if born else BORN
    return TURNS[regression_kind(before == LETTERS["passed"], now == LETTERS["passed"])]


def part_of(results: CorrectnessResults, keys: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Each test by its row, with duration and markers; `told`: of each, the texts by their places."""
    rows = {key: number for number, key in enumerate(keys)}
    markers: dict[tuple[str, ...], int] = {}
    texts = TextPool()
    tests = []
    for test in results.tests:
        number = markers.setdefault(tuple(map(name_of, test.markers)), len(markers))
        tests.append([rows[test.file_path, test.id], round(test.duration_ms), number])
    told = [text_numbers(test, texts) for test in results.tests]
    return {"tests": tests, "told": told, "markers": list(markers), "texts": texts.all}


def text_numbers(test: TestResult, texts: TextPool) -> list[int | None]:
    """Message, calls and output."""
    return [texts.add(test.failure_message), texts.add("\n".join(test.calls)), texts.add(test.output)]


def smaller_and_smaller(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield part
    for head, tail in SHORTER:
        yield with_shorter_texts(part, head, tail)
    yield without_texts(part)


def with_shorter_texts(part: dict[str, Any], head: int, tail: int) -> dict[str, Any]:
    return {**part, "texts": [shortened(text, head, tail) for text in part["texts"]]}


def without_texts(part: dict[str, Any]) -> dict[str, Any]:
    told = [[None if place is None else LEFT_OUT for place in places] for places in part["told"]]
    return {**part, "told": told, "texts": []}
