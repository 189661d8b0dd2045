"""Damaged reports of pytest: none gives a better verdict than the tests earned."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from slop_code._safe_text import escape_control
from slop_code.evaluation.evidence import Evidence, PytestExit, read_exit
from slop_code.evaluation.grading import GradingRules, grade
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.evaluation.reports.raw_test import ReportError, status_of
from slop_code.evaluation.reports.stream import read_stream
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, EXIT, JSON_REPORT, STREAM
from slop_code.evaluation.roster import Roster, normal_nodeid
from slop_code.verification.contradictions import last_line
from tests.fuzz.odd_input import TERMINAL, as_json, damaged, edited, fuzzed, odd_text, odd_values

DATA = Path(__file__).parents[1] / "data" / "reports"
CTRF = {path.stem: path.read_bytes() for path in sorted((DATA / "pytest-json-ctrf-0.6.1").glob("*.json"))}
JSON = {path.stem: path.read_bytes() for path in sorted((DATA / "pytest-json-report-1.5.0").glob("*.json"))}
LINES = {path.stem: path.read_bytes() for path in sorted((DATA / "stream").glob("*.jsonl"))}
FORMATS = {"ctrf": (parse_ctrf, CTRF), "json-report": (parse_json_report, JSON)}


def altered(raw: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(edited(json.loads(raw)).map(as_json), damaged(raw))


def any_of(reports: dict[str, bytes]) -> st.SearchStrategy[bytes]:
    return st.one_of(
        st.sampled_from(sorted(reports)).flatmap(lambda name: altered(reports[name])), st.binary(max_size=60)
    )


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    lines = draw(st.sampled_from(sorted(LINES)).map(lambda name: LINES[name].splitlines(keepends=True)))
    for _ in range(draw(st.integers(0, 3))):
        index, kind = (
            draw(st.integers(0, len(lines) - 1)),
            draw(st.sampled_from(["drop", "double", "swap", "edit", "join"])),
        )
        if kind == "drop" and len(lines) > 1:
            del lines[index]
        elif kind == "double":
            lines.insert(draw(st.integers(0, len(lines))), lines[index])
        elif kind == "swap":
            other = draw(st.integers(0, len(lines) - 1))
            lines[index], lines[other] = lines[other], lines[index]
        elif kind == "edit":
            lines[index] = draw(damaged(lines[index])) + b"\n"
        else:
            lines[index] = lines[index].rstrip(b"\n")
    return draw(st.sampled_from([b"".join(lines)]) | damaged(b"".join(lines)))


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_is_parsed_or_a_report_error(form: str) -> None:
    parse, reports = FORMATS[form]

    @fuzzed(raw=any_of(reports))
    def check(raw: bytes) -> None:
        try:
            report = parse(raw)
        except ReportError:
            return
        ids = [test.nodeid for test in report.tests]
        assert len(ids) == len(set(ids))
        passed = sum(test.status == "passed" for test in report.tests)
        assert passed <= len(ids) == len(_listed(form, raw))
        assert Counter(_outcomes(form, raw))["passed"] >= passed

    check()


def _listed(form: str, raw: bytes) -> list[Any]:
    document = json.loads(raw)
    tests: list[Any] = (document["results"] if form == "ctrf" else document)["tests"]
    return tests


def _outcomes(form: str, raw: bytes) -> list[Any]:
    return [str(entry.get("status" if form == "ctrf" else "outcome")) for entry in _listed(form, raw)]


@pytest.mark.parametrize("form", FORMATS)
def test_cut_after_any_byte(form: str) -> None:
    """No part of a report is one; a quick run tries every seventh byte."""
    parse, reports = FORMATS[form]
    raw = reports["all-outcomes"].rstrip()
    for end in range(0, len(raw), 1 if settings.get_current_profile_name() == "long" else 7):
        with pytest.raises(ReportError):
            parse(raw[:end])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


def roster_of(folder: Path) -> Roster:
    (folder / STREAM).write_bytes(LINES["all-outcomes"])
    return Roster(read_stream(folder / STREAM).collected)


def put(folder: Path, name: str, raw: bytes | None) -> None:
    (folder / name).unlink(missing_ok=True)
    if raw is not None:
        (folder / name).write_bytes(raw)


@fuzzed(
    ctrf=st.none() | any_of(CTRF),
    report=st.none() | any_of(JSON),
    stream=st.none() | streams(),
    exit_code=st.sampled_from([0, 1, 2, 5, -9, 137, None]),
)
def test_any_evidence_gives_a_result_for_each_test(
    folder: Path, ctrf: bytes | None, report: bytes | None, stream: bytes | None, exit_code: int | None
) -> None:
    """Whatever was left, every test of the roster has one result, and the whole can be stored and loaded."""
    roster = roster_of(folder)
    put(folder, CTRF_REPORT, ctrf)
    put(folder, JSON_REPORT, report)
    put(folder, STREAM, stream)
    ended = PytestExit(pair=1, exit_code=exit_code, session_timeout=10.0, error=None)
    evidence = Evidence(roster, ended, log="printed \x1b[2J").with_reports(folder)
    rules = GradingRules.with_markers(["checkpoint_1", "checkpoint_2"], "checkpoint_2", {}, ["-k", "x"])
    graded = grade([evidence], roster, rules)
    results = CorrectnessResults.model_validate({
        "problem_name": "p", "checkpoint_name": "checkpoint_2", "duration": 1.0, "tests": graded.tests,
        "pytest_exit_code": graded.exit_code, "isolation": {},
        "infrastructure_failure_reason": graded.infrastructure_failure_reason, "phases": {},
        "deselected": graded.deselected, "evidence": graded.source,
        "provenance": {
            "digests": {"config": "c", "environment": "e"}, "test_dependencies": {}, "python": "3", "platform": "l",
            "slop_code": "0", "command": [], "pytest_args": [],
        },
    })  # fmt: skip
    results.save(folder / "evaluation.json")
    assert CorrectnessResults.load(folder / "evaluation.json") == results
    reported = {test.nodeid for test in results.tests}
    assert roster.nodeids - evidence.deselected <= reported
    assert all(not TERMINAL.search(test.failure_message or "") for test in results.tests)
    assert not TERMINAL.search(graded.infrastructure_failure_reason or "")
    if exit_code not in (0, 1):
        assert not any(results.passed.values())
    _check_passes(results, evidence)


def _check_passes(results: CorrectnessResults, evidence: Evidence) -> None:
    reported = {test.nodeid for test in evidence.tests if test.status == "passed"}
    assert {test.nodeid for test in results.tests if test.status == "passed"} <= reported


@fuzzed(raw=streams())
def test_a_stream_has_one_result_for_each_test(folder: Path, raw: bytes) -> None:
    put(folder, CTRF_REPORT, None)
    put(folder, JSON_REPORT, None)
    put(folder, STREAM, raw)
    stream = read_stream(folder / STREAM)
    ids = [test.nodeid for test in stream.results.values()]
    assert len(ids) == len(set(ids))
    assert stream.running is None or stream.running not in ids
    assert len(stream.faults) <= 20
    whole = [line for line in raw.split(b"\n")[:-1] if line]
    assert len(ids) <= len(whole)


def test_a_stream_cut_short_keeps_what_it_had(folder: Path) -> None:
    put(folder, STREAM, LINES["all-outcomes"])
    whole = read_stream(folder / STREAM)
    for end in range(0, len(LINES["all-outcomes"]), 101):
        put(folder, STREAM, LINES["all-outcomes"][:end])
        part = read_stream(folder / STREAM)
        assert list(part.results.items()) == list(whole.results.items())[: len(part.results)]
        assert part.faults == []
        assert part.finished is None


EXIT_STATUS = {"pair": 1, "exit_code": 1, "session_timeout": 10.0, "error": None}


@fuzzed(raw=st.one_of(edited(EXIT_STATUS).map(as_json), st.binary(max_size=30)))
def test_a_damaged_exit_status_has_a_reason(folder: Path, raw: bytes) -> None:
    put(folder, EXIT, raw)
    status = read_exit(folder / EXIT, 1)
    assert status if isinstance(status, str) else type(status.exit_code) in (int, type(None))
    put(folder, EXIT, None)
    assert read_exit(folder / EXIT, 1) == "is missing"


@fuzzed(raw=st.one_of(odd_values.map(as_json), edited({"tests": [{"nodeid": "a", "markers": ["b"]}]}).map(as_json)))
def test_a_roster_loads_as_it_was_stored(raw: bytes) -> None:
    try:
        roster = Roster.from_json(raw.decode())
    except ValueError:
        return
    assert Roster.from_json(roster.to_json()) == roster


@fuzzed(text=odd_text, limit=st.integers(100, 300))
def test_visible_text_is_bounded_and_without_control_characters(text: str, limit: int) -> None:
    shown = escape_control(text * 3, limit)
    assert not TERMINAL.search(shown)
    assert len(shown.encode()) <= limit
    assert escape_control(shown, limit) == shown


@fuzzed(text=odd_text)
def test_outcomes_and_node_ids(text: str) -> None:
    assert (status_of(text) == "passed") == (text == "passed")
    assert normal_nodeid(normal_nodeid(text)) == normal_nodeid(text)


@fuzzed(
    counts=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(["passed", "failed", "skipped", "odd"]))),
    text=odd_text,
)
def test_last_line_of_a_log(counts: list[tuple[int, str]], text: str) -> None:
    said = ", ".join(f"{number} {word}" for number, word in counts)
    found = last_line(f"{text}\n{said} in 3.10s")
    expected = Counter({word: sum(n for n, other in counts if other == word) for _, word in counts})
    assert found is None or +found == +expected or "odd" in expected
