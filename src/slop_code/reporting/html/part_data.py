"""Part of the report with the tests of a checkpoint: their texts, and those that did not pass grouped by cause."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from slop_code.reporting.failures.failure_causes import failure_causes, not_passed_tests
from slop_code.reporting.html.page_texts import LEFT_OUT, SHORTER, TextPool, name_of, short, shortened
from slop_code.reporting.html.pytest_text import pytest_text
from slop_code.reporting.resource_text import resource_text
from slop_code.reporting.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.evaluation.report import CorrectnessResults, TestResult
    from slop_code.reporting.evaluated_problem import EvaluatedProblem
    from slop_code.reporting.failures.failure_causes import CheckpointCause, FailureCause

NO_TEXTS: list[int | None] = [None] * 6
"""Numbers of the texts of a test that has none."""

MAX_CAUSES = 200
MAX_BARE_CAUSES = 20
"""Causes that are kept where all texts are left out."""

Causes = list[tuple[int | str, list[int]]]
"""Of each cause the number of its text, or the text itself, and the numbers of its tests."""


def part_of(
    problem: EvaluatedProblem, keys: Sequence[tuple[str, str]], cause: CheckpointCause | None
) -> dict[str, Any]:
    """Duration, markers and row of each test, the numbers of its texts, and the causes of failures.

    `cause` is that of the whole checkpoint. `explained` has the numbers of the tests that need no other cause. The page
    completes the part: null stands for a test without texts, and a row that is the next one is not written.
    """
    results = problem.results
    markers: dict[tuple[str, ...], int] = {}
    facts = [[round(test.duration_ms), markers.setdefault(tuple(test.markers), len(markers))] for test in results.tests]
    tests = [fact + row for fact, row in zip(facts, _row_numbers(results, keys), strict=True)]
    causes = failure_causes(not_passed_tests(results))
    explained = cause.explained if cause is not None else frozenset()
    reasons = {id(test): cause.text for cause in causes for test in cause.tests}
    texts = TextPool()
    numbers = [text_numbers(test, texts, reasons.get(id(test)), problem) for test in results.tests]
    return {
        "tests": tests,
        "causes": causes_data(results, causes, texts),
        "explained": [number for number, test in enumerate(results.tests) if test.nodeid in explained],
        "text_numbers": [None if test == NO_TEXTS else test for test in numbers],
        "markers": [list(map(name_of, names)) for names in markers],
        "texts": texts.all,
    }


def _row_numbers(results: CorrectnessResults, keys: Sequence[tuple[str, str]]) -> list[list[int]]:
    """Row of each test; nothing where it is the one after that of the test before, as nearly always."""
    rows = {key: number for number, key in enumerate(keys)}
    numbers = [rows[test.file_path, test.id] for test in results.tests]
    return [[] if row == last + 1 else [row] for last, row in zip([-1, *numbers], numbers, strict=False)]


def causes_data(results: CorrectnessResults, causes: Sequence[FailureCause], texts: TextPool) -> Causes:
    """Those beyond the limit are together in the last one."""
    positions = {id(test): number for number, test in enumerate(results.tests)}
    shown: Causes = []
    for cause in causes[:MAX_CAUSES]:
        number = texts.add(cause.text)
        text = short(cause.text) if number in (None, LEFT_OUT) else number
        shown.append((text, [positions[id(test)] for test in cause.tests]))
    return [*shown, *_together([[positions[id(test)] for test in cause.tests] for cause in causes[MAX_CAUSES:]])]


def _together(groups: Sequence[list[int]]) -> Causes:
    """One cause for the tests of all groups, if any."""
    text = f"… and {plural(len(groups), 'more cause')}"
    return [(text, sorted(itertools.chain.from_iterable(groups)))] if groups else []


def text_numbers(
    test: TestResult, texts: TextPool, reason: str | None, problem: EvaluatedProblem | None = None
) -> list[int | None]:
    """Numbers of the texts: failure message, calls, output, resources, the reason in a line, source of the test."""
    if test.status == "passed" and not (test.failure_message or test.calls or test.output or test.attempts):
        return NO_TEXTS  # as of nearly every test
    shown = (
        pytest_text(test.failure_message) if test.failure_message else None,
        "\n".join(test.calls),
        test.output,
        resource_text(test),
        reason,
        problem.source(test) if problem and test.status != "passed" else None,
    )
    return [texts.add(text) for text in shown]


def smaller_versions(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The part itself, with shorter texts, and without texts."""
    yield part
    for head, tail in SHORTER:
        yield {**part, "texts": [shortened(text, head, tail) for text in part["texts"]]}
    numbers = [test and [None if number is None else LEFT_OUT for number in test] for test in part["text_numbers"]]
    yield {**part, **_bare_causes(part), "text_numbers": numbers, "texts": []}


def _bare_causes(part: dict[str, Any]) -> dict[str, Causes]:
    """The first causes, each with its text; nothing where the part has no causes."""
    if "causes" not in part:
        return {}
    causes = [(part["texts"][text] if isinstance(text, int) else text, tests) for text, tests in part["causes"]]
    return {"causes": [*causes[:MAX_BARE_CAUSES], *_together([tests for _, tests in causes[MAX_BARE_CAUSES:]])]}
