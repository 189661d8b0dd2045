"""HTML page of a comparison: the tests that differ, and in parts their texts on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code._io import write_atomic
from slop_code._safe_text import decoded_name
from slop_code.comparison.diff import by_named_policies
from slop_code.comparison.load import ABSENT, LETTERS
from slop_code.comparison.records import CHANGES
from slop_code.errors import ResultError
from slop_code.reporting.compare_table import format_p_value, significance, verdict
from slop_code.reporting.failures.failure_causes import reason_of
from slop_code.reporting.html.page import MAX_PARTS_LENGTH, PageParts, render_page
from slop_code.reporting.html.page_texts import TextPool, UniqueNames, name_of, short
from slop_code.reporting.html.part_data import NO_TEXTS, smaller_versions, text_numbers
from slop_code.reporting.html.run_page import check_page
from slop_code.reporting.text import shell_word
from slop_code.reporting.word_meanings import page_meanings
from slop_code.runs.run_layout import RESULT_FILE
from slop_code.runs.scb.load_result import load_result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.comparison.load import CheckpointRuns, Side, TestKey
    from slop_code.comparison.records import CheckpointChange, Comparison, PairComparison, TestChange

SCRIPTS = ("diff.js", "expected.js", "message.js", "compare_tests.js", "compare.js")
STYLES = ("compare.css",)
MAX_REASONS = 200

ShownRuns = dict[int, tuple[int | None, int | None]]
"""For each test by number, the run of each side whose texts are shown."""


def write_comparison(
    comparison: Comparison, sides: Sequence[Side], sheets: Sequence[CheckpointRuns], path: Path
) -> None:
    check_page(path)
    data, parts = comparison_data(comparison, sides, sheets)
    title = f"Comparison: {' and '.join(name_of(side.name) for side in comparison.sides)}"
    write_atomic(path, render_page(title, scripts=SCRIPTS, styles=STYLES, data=data, parts=parts).encode("utf-8"))


def comparison_data(
    comparison: Comparison, sides: Sequence[Side], sheets: Sequence[CheckpointRuns], *, limit: int = MAX_PARTS_LENGTH
) -> tuple[dict[str, Any], dict[str, str]]:
    """Texts are read again from the results of the tests that differ, one result at a time."""
    parts = PageParts(limit)
    by_name = {(sheet.problem, sheet.checkpoint): sheet for sheet in sheets}
    for number, pair in enumerate(comparison.pairs):
        differing: dict[TestKey, dict[int, TestKey]] = {}
        for row, test in enumerate(pair.tests):
            differing.setdefault((test.problem, test.checkpoint), {})[row] = (test.file_path, test.id)
        for position, checkpoint in enumerate(pair.checkpoints):
            key = checkpoint.problem, checkpoint.checkpoint
            if key in differing:
                part = part_of(by_name[key], differing[key], (sides[0], sides[number + 1]))
                parts.add(f"{number}/{position}", smaller_versions(part))
    compared = list(by_named_policies(comparison, sides, sheets))
    return {
        "policies": [comparison.policy for comparison in compared],
        "changes": list(CHANGES),
        "sides": [{"name": name_of(side.name), "runs": [*map(name_of, side.runs)]} for side in sides],
        "warnings": [short(warning) for warning in comparison.warnings[:MAX_REASONS]],
        "pairs": [
            {**_pair_data(pair), "by_policy": [_policy_data(other, other.pairs[number]) for other in compared]}
            for number, pair in enumerate(comparison.pairs)
        ],
        "meanings": page_meanings(["policy"]),
        "slop_code": comparison.slop_code,
    }, parts.packed


def _policy_data(comparison: Comparison, pair: PairComparison) -> dict[str, Any]:
    """Sentences are those of the terminal, so that the page needs no rules."""
    return {
        "lost": pair.lost,
        "verdict": verdict(comparison, pair)[0],
        "significance": [text for text, _ in significance(comparison, pair)],
        "judge": pair.other_judge,
        "checkpoints": [_verdict_data(change) for change in pair.checkpoints],
    }


def _verdict_data(change: CheckpointChange) -> dict[str, Any]:
    p_values = None
    if change.p is not None and change.p_adjusted is not None:
        p_values = [format_p_value(change.p), format_p_value(change.p_adjusted)]
    verdicts = {"base": [change.base.passed, change.base.runs], "other": [change.other.passed, change.other.runs]}
    return {**verdicts, "change": change.change, "p": p_values}


def _pair_data(pair: PairComparison) -> dict[str, Any]:
    numbers = {(change.problem, change.checkpoint): number for number, change in enumerate(pair.checkpoints)}
    more = len(pair.no_verdicts) - MAX_REASONS
    names = [UniqueNames() for _ in pair.checkpoints]
    return {
        "base": name_of(pair.base),
        "other": name_of(pair.other),
        "several": any(max(change.base.runs, change.other.runs) > 1 for change in pair.checkpoints),
        "counts": [pair.changed_tests[kind] for kind in CHANGES],
        "only": [[*map(name_of, pair.only_base)], [*map(name_of, pair.only_other)]],
        "unknown": [
            [name_of(f"{entry.side}: {entry.run}/{entry.problem}/{entry.checkpoint}"), short(entry.reason)]
            for entry in pair.no_verdicts[:MAX_REASONS]
        ],
        "unknown_more": max(0, more),
        "checkpoints": [
            {
                "problem": name_of(change.problem),
                "name": name_of(change.checkpoint),
                "counts": [change.tests[kind] for kind in CHANGES],
            }
            for change in pair.checkpoints
        ],
        "tests": [
            _test_data(test, numbers[test.problem, test.checkpoint], number, names)
            for number, test in enumerate(pair.tests)
        ],
    }


def _test_data(test: TestChange, checkpoint: int, number: int, names: Sequence[UniqueNames]) -> list[Any]:
    """Checkpoint, name, group, change, statuses of both sides, and the name quoted for a shell."""
    name, shell_name = names[checkpoint].add(f"{test.file_path}::{test.id}", number)
    return [checkpoint, name, test.group_type.value, CHANGES.index(test.change), test.base, test.other, shell_name]


def part_of(sheet: CheckpointRuns, tests: Mapping[int, TestKey], sides: tuple[Side, Side]) -> dict[str, Any]:
    """Tests by number with the runs shown on both sides, and the numbers of their texts."""
    shown: ShownRuns = {
        number: (_run_to_show(sheet, key, sides[0]), _run_to_show(sheet, key, sides[1]))
        for number, key in tests.items()
    }
    numbers = {key: number for number, key in tests.items()}
    runs = sorted({run for both in shown.values() for run in both if run is not None})
    texts = TextPool()
    by_run = {run: _texts_of(sheet, run, numbers, shown, texts) for run in runs}
    return {
        "tests": [[number, *both] for number, both in shown.items()],
        "text_numbers": [
            [text for run in both for text in (NO_TEXTS if run is None else by_run[run].get(number, NO_TEXTS))]
            for number, both in shown.items()
        ],
        "texts": texts.all,
        "folders": dict(_folders(sheet, runs)),
    }


def _run_to_show(sheet: CheckpointRuns, key: TestKey, side: Side) -> int | None:
    """The first run of a side in which the test did not pass, else the first run that has the test."""
    letters = sheet.tests[key].decode("ascii")
    present = [run for run in side.run_numbers if letters[run] != ABSENT]
    return next((run for run in present if letters[run] != LETTERS["passed"]), present[0] if present else None)


def _texts_of(
    sheet: CheckpointRuns, run: int, numbers: Mapping[TestKey, int], shown: ShownRuns, texts: TextPool
) -> dict[int, list[int | None]]:
    """Text numbers of the tests for which this run is shown; none where the result was removed meanwhile."""
    folder = sheet.by_run[run].folder
    if folder is None:
        return {}
    try:
        results = load_result(folder / RESULT_FILE)
    except ResultError:
        return {}
    tests = [(numbers.get((test.file_path, test.id)), test) for test in results.tests]
    return {
        number: text_numbers(test, texts, None if test.status == "passed" else reason_of(test))
        for number, test in tests
        if number is not None and run in shown[number]
    }


def _folders(sheet: CheckpointRuns, runs: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Folders of the runs, quoted for a shell."""
    for run in runs:
        if (folder := sheet.by_run[run].folder) is not None:
            yield run, shell_word(decoded_name(str(folder)))
