import json
from pathlib import Path

import pytest

from slop_code._safe_text import escape_control, shortened
from slop_code.evaluation.reports import stream as stream_module
from slop_code.evaluation.reports.ctrf_report import parse_ctrf
from slop_code.evaluation.reports.json_report import parse_json_report
from slop_code.evaluation.reports.raw_test import (
    XPASSED,
    CutShortError,
    ReportError,
    status_of,
)
from slop_code.evaluation.reports.stream import read_stream
from slop_code.evaluation.roster import Roster, RosterEntry, normal_nodeid

DATA = Path(__file__).parents[1] / "data" / "reports"
JSON_REPORTS = DATA / "pytest-json-report-1.5.0"
CTRF_REPORTS = DATA / "pytest-json-ctrf-0.6.1"
STREAMS = DATA / "stream"

OUTCOMES = {
    "test_checkpoint_1.py::test_old": "passed",
    "test_checkpoint_1.py::test_old_error": "failed",
    "test_checkpoint_2.py::test_core": "passed",
    "test_checkpoint_2.py::test_wrong": "failed",
    "test_checkpoint_2.py::TestGroup::test_each[plain]": "failed",
    "test_checkpoint_2.py::TestGroup::test_each[a::b.py::c]": "passed",
    "test_checkpoint_2.py::TestGroup::test_each[\\x1b[31m]": "passed",
    "test_checkpoint_2.py::TestGroup::test_each[nan]": "passed",
    "test_checkpoint_2.py::TestGroup::test_custom": "passed",
    "test_checkpoint_2.py::test_marked_regression": "passed",
    "test_checkpoint_2.py::test_skipped": "skipped",
    "test_checkpoint_2.py::test_skips_itself": "skipped",
    "test_checkpoint_2.py::test_xfailed": "skipped",
    "test_checkpoint_2.py::test_xfail_not_run": "skipped",
    "test_checkpoint_2.py::test_xpassed": "failed",
    "test_checkpoint_2.py::test_xpassed_strict": "failed",
    "test_checkpoint_2.py::test_setup_error": "error",
    "test_checkpoint_2.py::test_teardown_error": "error",
    "test_checkpoint_2.py::test_fails_and_teardown_error": "error",
    "test_checkpoint_2.py::test_subtests": "passed",
    "test_checkpoint_2.py::test_subtest_fails_first": "failed",
    "test_checkpoint_2.py::TestCase::test_parts": "failed",
    "test_checkpoint_2.py::test_hangs": "failed",
    "test_checkpoint_2.py::test_hostile_output": "failed",
}
# CTRF keeps what failed first, and that was the call.
CTRF_OUTCOMES = OUTCOMES | {"test_checkpoint_2.py::test_fails_and_teardown_error": "failed"}


def recorded(kind, name="all-outcomes"):
    if kind == "json-report":
        return parse_json_report((JSON_REPORTS / f"{name}.json").read_bytes()).tests
    if kind == "ctrf":
        return parse_ctrf((CTRF_REPORTS / f"{name}.json").read_bytes()).tests
    return read_stream(STREAMS / f"{name}.jsonl").results.values()


def by_name(tests):
    return {test.nodeid.rpartition("::")[2]: test for test in tests}


@pytest.mark.parametrize(
    ("kind", "expected"), [("json-report", OUTCOMES), ("ctrf", CTRF_OUTCOMES), ("stream", OUTCOMES)]
)
def test_outcomes_of_a_real_run(kind, expected):
    assert {test.nodeid: test.status for test in recorded(kind)} == expected


@pytest.mark.parametrize("kind", ["json-report", "ctrf", "stream"])
def test_messages_of_a_real_run(kind):
    tests = by_name(recorded(kind))
    assert tests["test_core"].message is None
    assert tests["test_skipped"].message == "not today"
    assert tests["test_skips_itself"].message == "not here"
    assert tests["test_xpassed"].message == XPASSED
    assert [name for name, test in tests.items() if test.xpassed] == ["test_xpassed"]
    assert "the fixture is broken" in tests["test_setup_error"].message
    assert "41" in tests["test_wrong"].message
    assert "Timeout" in tests["test_hangs"].message
    assert 150 < tests["test_hangs"].duration_ms < 20_000


@pytest.mark.parametrize(
    ("parse", "folder", "name", "exit_code"),
    [
        (parse_json_report, JSON_REPORTS, "all-outcomes", 1),
        (parse_json_report, JSON_REPORTS, "deselected", 1),
        (parse_json_report, JSON_REPORTS, "no-tests", 5),
        (parse_json_report, JSON_REPORTS, "collection-error", 2),
        (parse_ctrf, CTRF_REPORTS, "all-outcomes", None),
        (parse_ctrf, CTRF_REPORTS, "no-tests", None),
    ],
)
def test_exit_codes_of_real_runs(parse, folder, name, exit_code):
    assert parse((folder / f"{name}.json").read_bytes()).exit_code == exit_code


def test_collection_errors_of_a_real_run():
    (error,) = parse_json_report((JSON_REPORTS / "collection-error.json").read_bytes()).collection_errors
    assert error.startswith("test_checkpoint_1.py: ")
    assert "No module named 'not_there'" in error
    assert read_stream(STREAMS / "collection-error.jsonl").collection_errors == [error]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("passed", "passed"),
        ("failed", "failed"),
        ("error", "error"),
        ("skipped", "skipped"),
        ("xfailed", "skipped"),
        ("xpassed", "failed"),
        ("rerun", "error"),
        ("subtests passed", "error"),
        ("PASSED", "error"),
        ("", "error"),
    ],
)
def test_outcomes_have_a_status_and_unknown_ones_are_errors(outcome, expected):
    assert status_of(outcome) == expected


def entry(outcome, setup="passed", call="passed", teardown="passed", **more):
    stages = {"setup": setup, "call": call, "teardown": teardown}
    reported = {name: {"outcome": word, "duration": 0.5} for name, word in stages.items() if word}
    return {"nodeid": "test_a.py::test_b", "outcome": outcome, **reported, **more}


def json_report(*tests, **more):
    return json.dumps({"exitcode": 0, "tests": list(tests), **more}).encode()


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (entry("passed"), "passed"),
        (entry("failed", call="failed"), "failed"),
        (entry("failed"), "failed"),
        (entry("error", setup="failed", call=None), "error"),
        (entry("passed", teardown="failed"), "error"),
        (entry("xpassed", teardown="failed"), "error"),
        (entry("passed", call=None), "error"),
        (entry("passed", teardown=None), "error"),
        (entry("passed", call="failed"), "error"),
        (entry("passed", call="skipped"), "error"),
        (entry("skipped", setup="skipped", call=None), "skipped"),
        (entry("xfailed", call="skipped"), "skipped"),
        (entry("xpassed"), "failed"),
        (entry("subtests passed"), "error"),
    ],
)
def test_a_test_of_a_json_report_passes_only_with_all_stages(test, expected):
    (parsed,) = parse_json_report(json_report(test)).tests
    assert parsed.status == expected
    assert parsed.message is None or expected != "passed"
    assert parsed.xpassed is (test["outcome"] == "xpassed" and expected == "failed")


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(0.25, 250.0), (2, 2000.0), (-1, 0.0), (None, 0.0), (1e308 * 10, 0.0), (10**400, 0.0)],
)
def test_odd_durations_in_a_json_report_count_as_zero(duration, expected):
    test = entry("skipped", setup=None, call=None, teardown=None, duration=duration)
    assert parse_json_report(json_report(test)).tests[0].duration_ms == expected


def test_shapes_of_the_reference_documents():
    ctrf = {
        "results": {
            "tool": {"name": "pytest"},
            "tests": [
                {
                    "name": "test_basic[a.py::b]",
                    "status": "passed",
                    "duration": 500,
                    "filePath": ".evaluation_tests/test_checkpoint_1.py",
                    "tags": ["error"],
                    "message": None,
                }
            ],
        }
    }
    (test,) = parse_ctrf(json.dumps(ctrf).encode()).tests
    assert (test.nodeid, test.status) == ("test_checkpoint_1.py::test_basic[a.py::b]", "passed")
    assert (test.duration_ms, test.markers) == (500.0, ("error",))


@pytest.mark.parametrize(
    ("status", "raw", "tags", "expected"),
    [
        ("passed", None, [], "passed"),
        ("passed", None, ["xfail"], "failed"),
        ("passed", None, ["xfail::reason_known"], "failed"),
        ("passed", None, ["xfail::False::reason_other"], "passed"),
        ("failed", "call_failed", [], "failed"),
        ("failed", "setup_failed", [], "error"),
        ("failed", "teardown_failed", [], "error"),
        ("skipped", "xfailed", ["xfail"], "skipped"),
        ("pending", None, [], "error"),
        ("other", None, [], "error"),
    ],
)
def test_statuses_of_a_ctrf_report_follow_from_raw_status_and_tags(status, raw, tags, expected):
    test = {"name": "test_a.py::test_b", "status": status, "rawStatus": raw, "tags": tags, "duration": -3}
    (parsed,) = parse_ctrf(json.dumps({"results": {"tests": [test]}}).encode()).tests
    assert (parsed.status, parsed.duration_ms) == (expected, 0.0)


@pytest.mark.parametrize("parse", [parse_json_report, parse_ctrf])
@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"null",
        b"{}",
        b'{"tests": {}, "results": []}',
        b'{"tests": [1], "results": {"tests": [1]}}',
        b'{"tests": [{}], "results": {"tests": [{}]}}',
        b'{"tests": [{"nodeid": 1}], "results": {"tests": [{"status": []}]}}',
        b'{"tests": [], "exitcode": "0", "results": {}}',
        b'{"tests": [], "exitcode": true, "results": {"tests": null}}',
        b'{"tests": [}, "results": {}}',
        b"\xff\xfe{}",
        b"[" * 1_000_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b'{"tests": [{"nodeid": "a", "outcome": "passed", "setup": 3}], "results": 1}',
        b'{"exitcode": ' + b"9" * 5000 + b"}",
    ],
)
def test_malformed_reports_are_report_errors(parse, data):
    with pytest.raises(ReportError):
        parse(data)


@pytest.mark.parametrize("parse", [parse_json_report, parse_ctrf])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_reports_are_cut_short(parse, share):
    folder = JSON_REPORTS if parse is parse_json_report else CTRF_REPORTS
    whole = (folder / "all-outcomes.json").read_bytes().rstrip()
    with pytest.raises(CutShortError):
        parse(whole[: int(len(whole) * share)])


@pytest.mark.parametrize("parse", [parse_json_report, parse_ctrf])
def test_a_test_reported_twice_is_refused(parse):
    test = {**entry("passed"), "name": "test_a.py::test_b", "status": "passed"}
    data = {"exitcode": 0, "tests": [test, test], "results": {"tests": [test, test]}}
    with pytest.raises(ReportError, match="twice"):
        parse(json.dumps(data).encode())


def test_stream_of_a_real_run():
    stream = read_stream(STREAMS / "all-outcomes.jsonl")
    assert [test.nodeid for test in stream.collected] == list(OUTCOMES)
    markers = {test.nodeid.rpartition("::")[2]: test.markers for test in stream.collected}
    assert markers["test_custom"] == ("slow", "functionality")
    assert markers["test_each[nan]"] == ("parametrize", "error", "functionality")
    assert (stream.finished, stream.running, stream.faults) == (1, None, [])
    narrowed = read_stream(STREAMS / "deselected.jsonl")
    assert narrowed.deselected == set(OUTCOMES) - {test.nodeid for test in narrowed.collected}


def line(**values):
    return json.dumps(values).encode() + b"\n"


def result(nodeid, **values):
    return line(kind="result", nodeid=nodeid, **{"status": "passed", "duration_ms": 1.0, **values})


def test_stream_of_a_killed_run(tmp_path):
    path = tmp_path / "stream.jsonl"
    torn = result("test_a.py::two")[:-20]
    starts = [line(kind="start", nodeid=f"test_a.py::{name}") for name in ("one", "two")]
    path.write_bytes(starts[0] + result("test_a.py::one") + starts[1] + torn)
    stream = read_stream(path)
    assert [test.nodeid for test in stream.results.values()] == ["test_a.py::one"]
    assert (stream.running, stream.finished, stream.faults) == ("test_a.py::two", None, [])


def test_loaded_files_and_refused_paths(tmp_path):
    path = tmp_path / "stream.jsonl"
    refused = line(kind="refused", nodeid="test_a.py::one", paths=[{"path": "a.py", "reason": "why"}])
    path.write_bytes(line(kind="loaded", files=["a.py"], import_roots=["."]) + refused + result("test_a.py::one"))
    stream = read_stream(path)
    assert (stream.loaded, stream.import_roots, stream.faults) == (("a.py",), (".",), [])
    assert stream.refused == {"test_a.py::one": (("a.py", "why"),)}


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"garbage\n", "line 2"),
        (b"\xff\xff}\n", "not UTF-8"),
        (b"[" * 100_000 + b"\n", "line 2"),
        (line(kind="unknown"), "no known kind"),
        (line(kind=["result"]), "no known kind"),
        (line(kind="result", nodeid="test_a.py::x"), "status is missing"),
        (line(kind="collected", tests=[{"nodeid": 1}]), "nodeid"),
        (line(kind="deselected", nodeids=[1]), "nodeids"),
        (line(kind="finish", exitstatus="0"), "exitstatus"),
        (line(kind="result", nodeid="test_a.py::x", status="failed", markers=5), "markers is not a list"),
        (line(kind="result", nodeid="test_a.py::x", status="failed", calls={"a": 1}), "calls is not a list"),
        (line(kind="result", nodeid="test_a.py::x", status="failed", calls=[1]), "calls is not a list"),
        (line(kind="loaded", files=["a.py"], import_roots="."), "import_roots is not a list"),
        (line(kind="refused", nodeid="test_a.py::x", paths=["a.py"]), "paths[0] is str"),
        (line(kind="refused", nodeid="test_a.py::x", paths=[{"path": "a.py"}]), "reason is missing"),
        (result("test_a.py::one", status="failed"), "twice"),
        (b"x" * (stream_module.LINE_LIMIT + 10) + b"\n", "longer than"),
    ],
)
def test_a_bad_line_is_noted_and_the_rest_is_read(tmp_path, bad, problem):
    path = tmp_path / "stream.jsonl"
    path.write_bytes(result("test_a.py::one") + bad + result("test_a.py::last"))
    stream = read_stream(path)
    assert [(test.nodeid, test.status) for test in stream.results.values()] == [
        ("test_a.py::one", "passed"),
        ("test_a.py::last", "passed"),
    ]
    (said,) = stream.faults
    assert problem in said


@pytest.mark.parametrize("content", [b"x" * 1000, b"x" * 400 + b"\n" + b"y" * 400 + b"\n"])
def test_a_stream_that_never_ends_is_left(tmp_path, monkeypatch, content):
    monkeypatch.setattr(stream_module, "LINE_LIMIT", 100)
    monkeypatch.setattr(stream_module, "TOTAL_LIMIT", 500)
    path = tmp_path / "stream.jsonl"
    path.write_bytes(result("test_a.py::one") + content)
    assert "larger than 500 bytes" in read_stream(path).faults[-1]


def test_a_stream_that_is_not_there_or_not_a_file(tmp_path):
    assert read_stream(tmp_path / "stream.jsonl").faults == ["is missing"]
    (tmp_path / "real").write_bytes(result("test_a.py::one"))
    (tmp_path / "link").symlink_to("real")
    assert read_stream(tmp_path / "link").results == {}
    assert "cannot be read" in read_stream(tmp_path).faults[0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("test_a.py::test_b", "test_a.py::test_b"),
        ("./test_a.py::test_b", "test_a.py::test_b"),
        (".evaluation_tests/test_a.py::TestX::test_y[p]", "test_a.py::TestX::test_y[p]"),
        ("/workspace/.evaluation_tests/sub/test_a.py::t", "sub/test_a.py::t"),
        ("test_a.py::t[/.evaluation_tests/x]", "test_a.py::t[/.evaluation_tests/x]"),
        ("my.evaluation_tests/test_a.py::t", "my.evaluation_tests/test_a.py::t"),
    ],
)
def test_node_ids_are_relative_to_the_tests_folder(given, expected):
    assert normal_nodeid(given) == expected


def test_a_stored_roster_loads_as_it_was():
    roster = Roster((RosterEntry("test_a.py::t[é]", ("error", "slow")), RosterEntry("test_a.py::u", ())))
    assert Roster.from_json(roster.to_json()) == roster
    assert roster.nodeids == {"test_a.py::t[é]", "test_a.py::u"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"tests": [1]}',
        '{"tests": [{"nodeid": "a"}]}',
        '{"tests": [{"nodeid": "a", "markers": [1]}]}',
        '{"tests": [{"nodeid": "a", "markers": []}, {"nodeid": "a", "markers": []}]}',
        "[" * 200_000,
    ],
)
def test_a_damaged_roster_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        Roster.from_json(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n\ttext é", "plain\n\ttext é"),
        ("\x1b[2J\r\x00\x7f\x9b", "\\x1b[2J\\x0d\\x00\\x7f\\x9b"),
        ("\ud800 \u202e", "\\ud800 \\u202e"),
    ],
)
def test_visible_text_escapes_control_characters(text, expected):
    assert escape_control(text, 100) == expected


@pytest.mark.parametrize("text", ["a" * 10_000, "é" * 10_000, "\x1b" * 10_000, "\U0001f600" * 300, "a" * 501])
def test_visible_keeps_head_and_tail_within_its_limit(text):
    shown = escape_control(f"HEAD{text}TAIL", 500)
    assert len(shown.encode()) <= 500
    assert shown.startswith("HEAD")
    assert shown.endswith("TAIL")
    assert "left out" in shown


def test_shortened_leaves_short_text_alone():
    assert shortened("a" * 100, 100) == "a" * 100
