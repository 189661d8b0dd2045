"""What the page of a comparison holds: little of each test that differs, and its texts apart, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from slop_code._io import write_atomic
from slop_code.comparison.load import ABSENT, LETTERS
from slop_code.comparison.records import Change
from slop_code.errors import ResultError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.reporting.compare_table import format_p_value, significance, verdict
from slop_code.reporting.html.page import render_page
from slop_code.reporting.html.page_texts import TextPool, UniqueNames, name_of, short
from slop_code.reporting.html.run_data import PARTS_LIMIT, PageParts, text_numbers
from slop_code.reporting.html.run_page import check_page
from slop_code.reporting.text import shell_word
from slop_code.runs.discover import RESULT_FILE
from slop_code.runs.run_layout import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.comparison.load import CheckpointRuns, Key, Side
    from slop_code.comparison.records import CheckpointChange, Comparison, Pair, TestChange
    from slop_code.reporting.html.page import Packed

SCRIPTS = ("diff.js", "expected.js", "message.js", "compare_tests.js", "compare.js")
STYLES = ("compare.css",)
ORDER: tuple[Change, ...] = get_args(Change)
SHOWN_REASONS = 200

Chosen = dict[int, tuple[int | None, int | None]]
"""By the number of a test: the run of each side whose texts are shown."""


def write_comparison(
    comparison: Comparison, sides: Sequence[Side], sheets: Sequence[CheckpointRuns], path: Path
) -> None:
    check_page(path)
    data, parts = comparison_data(comparison, sides, sheets)
    title = f"Comparison: {' and '.join(name_of(side.name) for side in comparison.sides)}"
    write_atomic(path, render_page(title, scripts=SCRIPTS, styles=STYLES, data=data, parts=parts).encode("utf-8"))


def comparison_data(
    comparison: Comparison, sides: Sequence[Side], sheets: Sequence[CheckpointRuns], *, limit: int = PARTS_LIMIT
) -> tuple[dict[str, Any], dict[str, Packed]]:
    """TextPool are read anew, one result at a time, and only of tests that differ."""
    parts = PageParts(limit)
    by_place = {(sheet.problem, sheet.checkpoint): sheet for sheet in sheets}
    for number, pair in enumerate(comparison.pairs):
        differing: dict[Key, dict[int, Key]] = {}
        for row, test in enumerate(pair.tests):
            differing.setdefault((test.problem, test.checkpoint), {})[row] = (test.file_path, test.id)
        for place, checkpoint in enumerate(pair.checkpoints):
            where = checkpoint.problem, checkpoint.checkpoint
            if where in differing:
                part = part_of(by_place[where], differing[where], (sides[0], sides[number + 1]))
                parts.add(f"{number}/{place}", part)
    return {
        "policy": comparison.policy,
        "changes": list(ORDER),
        "sides": [{"name": name_of(one.name), "runs": [*map(name_of, one.runs)]} for one in sides],
        "warnings": [short(warning) for warning in comparison.warnings[:SHOWN_REASONS]],
        "pairs": [_pair_data(comparison, pair) for pair in comparison.pairs],
        "slop_code": comparison.slop_code,
    }, parts.packed


def _pair_data(comparison: Comparison, pair: Pair) -> dict[str, Any]:
    """Sentences are the terminal's, so that no rule has to be known to the page."""
    places = {(one.problem, one.checkpoint): number for number, one in enumerate(pair.checkpoints)}
    more = len(pair.no_verdicts) - SHOWN_REASONS
    names = [UniqueNames() for _ in pair.checkpoints]
    return {
        "base": name_of(pair.base),
        "other": name_of(pair.other),
        "lost": pair.lost,
        "several": any(max(one.base.runs, one.other.runs) > 1 for one in pair.checkpoints),
        "verdict": verdict(comparison, pair)[0],
        "significance": [text for text, _ in significance(comparison, pair)],
        "counts": [pair.changed_tests[kind] for kind in ORDER],
        "judge": pair.other_judge,
        "only": [[*map(name_of, pair.only_base)], [*map(name_of, pair.only_other)]],
        "unknown": [
            [name_of(f"{one.side}: {one.run}/{one.problem}/{one.checkpoint}"), short(one.reason)]
            for one in pair.no_verdicts[:SHOWN_REASONS]
        ],
        "unknown_more": max(0, more),
        "checkpoints": [_checkpoint_data(one) for one in pair.checkpoints],
        "tests": [
            _test_data(test, places[test.problem, test.checkpoint], number, names)
            for number, test in enumerate(pair.tests)
        ],
    }


def _checkpoint_data(one: CheckpointChange) -> dict[str, Any]:
    return {
        "problem": name_of(one.problem),
        "name": name_of(one.checkpoint),
        "base": [one.base.passed, one.base.runs],
        "other": [one.other.passed, one.other.runs],
        "change": one.change,
        "counts": [one.tests[kind] for kind in ORDER],
        "p": None
        if one.p is None or one.p_adjusted is None
        else [format_p_value(one.p), format_p_value(one.p_adjusted)],
    }


def _test_data(test: TestChange, place: int, number: int, names: Sequence[UniqueNames]) -> list[Any]:
    """Checkpoint, name, group, change, statuses of both sides, and the name as a shell reads it."""
    name, word = names[place].add(f"{test.file_path}::{test.id}", number)
    return [place, name, test.group_type.value, ORDER.index(test.change), test.base, test.other, word]


def part_of(sheet: CheckpointRuns, tests: Mapping[int, Key], sides: tuple[Side, Side]) -> dict[str, Any]:
    """Tests by number, each with the runs shown; `told`: of each, the texts of both sides by their places."""
    chosen: Chosen = {row: (_worst(sheet, key, sides[0]), _worst(sheet, key, sides[1])) for row, key in tests.items()}
    rows = {key: row for row, key in tests.items()}
    places = sorted({place for both in chosen.values() for place in both if place is not None})
    texts = TextPool()
    told = {place: _texts_of(sheet, place, rows, chosen, texts) for place in places}
    nothing = [None, None, None]
    found = {
        row: [told[place].get(row, nothing) if place is not None else nothing for place in both]
        for row, both in chosen.items()
    }
    return {
        "tests": [[row, *both] for row, both in chosen.items()],
        "told": [[*found[row][0], *found[row][1]] for row in chosen],
        "texts": texts.all,
        "folders": dict(_folders(sheet, places)),
    }


def _worst(sheet: CheckpointRuns, key: Key, side: Side) -> int | None:
    """The first run of a side in which it did not pass, else the first that has it."""
    letters = sheet.tests[key].decode("ascii")
    there = [place for place in side.places if letters[place] != ABSENT]
    return next((place for place in there if letters[place] != LETTERS["passed"]), there[0] if there else None)


def _texts_of(
    sheet: CheckpointRuns, place: int, rows: Mapping[Key, int], chosen: Chosen, texts: TextPool
) -> dict[int, list[int | None]]:
    """Of the tests for which this run is shown. A result that is gone meanwhile has none."""
    folder = sheet.seen[place].folder
    if folder is None:
        return {}
    try:
        results = CorrectnessResults.load(folder / RESULT_FILE)
    except ResultError:
        return {}
    wanted = [(rows.get((test.file_path, test.id)), test) for test in results.tests]
    return {row: text_numbers(test, texts) for row, test in wanted if row is not None and place in chosen[row]}


def _folders(sheet: CheckpointRuns, places: Sequence[int]) -> Iterator[tuple[int, str]]:
    """As a shell reads them."""
    for place in places:
        if (folder := sheet.seen[place].folder) is not None:
            yield place, shell_word(text_of(str(folder)))
