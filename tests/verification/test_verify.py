"""Stored results against their raw reports, and every way to edit one of the two."""

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from slop_code.errors import ResultError
from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.evidence import pair_folders, read_evidence, read_roster
from slop_code.evaluation.grading import GradingRules, grade
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.raw_test import RawTest
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, EXIT, JSON_REPORT, ROSTER, STREAM
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.execution.submission import tree_digest
from slop_code.verification.contradictions import agrees_with_ctrf, last_line
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify
from tests.evidence_records import exit_of

NO_SNAPSHOT = "provenance.digests.submission: no snapshot beside the result"
GROUPS = "groups of tests marked slow: give -p PROBLEM"
DATA = Path(__file__).parents[1] / "data" / "results"
SHOUTS, SHOUTS_TWO, LATER = (
    f"test_checkpoint_2.py::{name}" for name in ("test_shouts", "test_shouts_two", "test_later")
)
REASON = "infrastructure_failure_reason"
NONE = "no infrastructure failure"
ENDED_WITH_1 = "pytest ended with 1 while no test failed"


@pytest.fixture
def result(tmp_path):
    """`result()`: the path of a stored result, to be edited."""

    def copy():
        shutil.copytree(DATA / "stored", tmp_path / "stored")
        return tmp_path / "stored" / "evaluation.json"

    return copy


def verified(path, problem=None):
    return verify(path.parent, read_document(path), problem)


def found_in(path, problem=None):
    return [(one.kind, one.location, one.stored, one.raw) for one in verified(path, problem).findings]


def not_checked(path, problem=None):
    said = verified(path, problem).unchecked
    return [one for one in said if not one.startswith("the rules of evaluation_version")]


def edit(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def in_test(name, **values):
    def change(data):
        next(test for test in data["tests"] if f"{test['file_path']}::{test['id']}" == name).update(values)

    return change


def setting(*keys, to):
    def change(data):
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = to

    return change


def all_edits(*changes):
    def change(data):
        for one in changes:
            one(data)

    return change


def remove(data):
    data["tests"] = [test for test in data["tests"] if test["id"] != "test_shouts"]


def add(data):
    data["tests"].append({**data["tests"][0], "id": "test_more"})


def double(data):
    data["tests"].append(data["tests"][0])


def test_an_untouched_result_has_no_findings(result):
    path = result()
    assert len(CorrectnessResults.load(path).tests) == 8
    assert found_in(path) == []
    assert found_in(path, ProblemConfig.from_yaml(DATA / "words")) == []


def test_what_a_result_leaves_open(result):
    path = result()
    assert not_checked(path) == [GROUPS, NO_SNAPSHOT]
    assert not_checked(path, ProblemConfig.from_yaml(DATA / "words")) == [NO_SNAPSHOT]


def consistently(path, *changes):
    """Edited by somebody who counts again, too."""
    edit(path, all_edits(*changes))
    read_document(path).results.save(path)


def test_edited_groups_are_open_without_the_problem(result):
    path = result()
    consistently(path, setting("provenance", "groups", to={"slow": "Error"}), in_test(SHOUTS_TWO, group_type="Error"))
    assert (found_in(path), GROUPS in not_checked(path)) == ([], True)
    found = found_in(path, ProblemConfig.from_yaml(DATA / "words"))
    assert found == [("digest", "provenance.groups", '{"slow": "Error"}', '{"slow": "Functionality"}')]


def test_an_ordinary_marker_that_was_made_the_problems_own(result):
    path = result()
    consistently(path, setting("provenance", "groups", to={"slow": "Functionality", "parametrize": "Error"}))
    marked = "groups of tests marked parametrize, slow: give -p PROBLEM"
    assert marked in not_checked(path)


EDITS = {
    "failed to passed": (in_test(SHOUTS_TWO, status="passed"), ("status", SHOUTS_TWO, "passed", "failed")),
    "passed to failed": (in_test(SHOUTS, status="failed"), ("status", SHOUTS, "failed", "passed")),
    "skipped to passed": (in_test(LATER, status="passed"), ("status", LATER, "passed", "skipped")),
    "test removed": (remove, ("test", SHOUTS, "no such test", "passed")),
    "test added": (add, ("test", "test_checkpoint_1.py::test_more", "passed", "no such test")),
    "test twice": (double, ("test", "test_checkpoint_1.py::test_says", "listed twice", "once")),
    "group": (in_test(SHOUTS, group_type="Error"), ("group_type", SHOUTS, "Error", "Core")),
    "own marker's group": (
        in_test(SHOUTS_TWO, group_type="Core"),
        ("group_type", SHOUTS_TWO, "Core", "Functionality"),
    ),
    "home": (in_test(SHOUTS, checkpoint="checkpoint_1"), ("checkpoint", SHOUTS, "checkpoint_1", "checkpoint_2")),
    "markers": (in_test(SHOUTS, markers=["error"]), ("markers", SHOUTS, '["error"]', "[]")),
    "duration": (in_test(SHOUTS, duration_ms=1.0), ("duration_ms", SHOUTS, "1.0", "55.04396299511427")),
    "message": (in_test(LATER, failure_message="never"), ("failure_message", LATER, "never", "not yet")),
    "calls": (in_test(SHOUTS_TWO, calls=[]), ("calls", SHOUTS_TWO, "[]", '["python main.py --loud a b"]')),
    "output": (in_test(SHOUTS, output="x"), ("output", SHOUTS, "x", "null")),
    "count of passes": (setting("pass_counts", "Error", to=1), ("pass_counts", "pass_counts.Error", "1", "0")),
    "true for 1": (setting("pass_counts", "Core", to=True), ("pass_counts", "pass_counts.Core", "true", "1")),
    "count of all": (setting("total_counts", "Core", to=2), ("total_counts", "total_counts.Core", "2", "1")),
    "count of nothing": (setting("total_counts", "X", to=0), ("total_counts", "total_counts.X", "0", "null")),
    "policy": (setting("passed", "all-cases", to=True), ("passed", "passed.all-cases", "true", "false")),
    "lost policy": (setting("passed", "core-cases", to=False), ("passed", "passed.core-cases", "false", "true")),
    "exit code": (setting("pytest_exit_code", to=0), (*["pytest_exit_code"] * 2, "0", "1")),
    "killed": (setting("pytest_exit_code", to=137), (*["pytest_exit_code"] * 2, "137", "1")),
    "flag": (setting("infrastructure_failure", to=True), (*["infrastructure_failure"] * 2, "true", "false")),
    "reason": (setting(REASON, to="no disk"), (REASON, REASON, "no disk", NONE)),
    "flag and reason": (
        all_edits(setting("infrastructure_failure", to=True), setting(REASON, to="no disk")),
        (REASON, REASON, "no disk", NONE),
    ),
    "evidence": (setting("evidence", to="ctrf"), ("evidence", "evidence", "ctrf", "json-report")),
    "pairs": (setting("isolation", "pairs", to=2), ("isolation", "isolation.pairs", "2", "1")),
    "left out": (setting("deselected", to=1), ("deselected", "deselected", "1", "0")),
}


@pytest.mark.parametrize("name", EDITS)
def test_one_edit_is_one_finding(result, name):
    change, finding = EDITS[name]
    path = result()
    edit(path, change)
    assert found_in(path) == [finding]


def test_all_that_is_wrong_is_said(result):
    path = result()
    edit(
        path,
        all_edits(
            in_test(SHOUTS_TWO, status="passed"),
            remove,
            setting("pass_counts", "Functionality", to=3),
            setting("passed", "all-cases", to=True),
        ),
    )
    assert [location for _, location, _, _ in found_in(path)] == [
        SHOUTS_TWO,
        SHOUTS,
        "pass_counts.Functionality",
        "passed.all-cases",
    ]


def test_durations_may_differ_by_rounding(result):
    path = result()
    edit(path, in_test(SHOUTS, duration_ms=55.044))
    assert found_in(path) == []


def test_an_edited_marker_of_the_problem_moves_its_tests(result):
    path = result()
    edit(path, setting("provenance", "groups", to={}))
    assert (("group_type", SHOUTS_TWO, "Functionality", "Core")) in found_in(path)


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        (JSON_REPORT, None, "is missing"),
        (JSON_REPORT, b'{"tests": [', "is cut short"),
        (JSON_REPORT, b'{"tests": 1}', "is malformed: report: tests is int, not list"),
        (CTRF_REPORT, None, "is missing"),
        (CTRF_REPORT, b"[]", "is malformed: not a JSON object"),
        (STREAM, None, "is missing"),
        (STREAM, b'{"kind": "collected", "tests": []}\n', "does not come to its end"),
        (STREAM, b'{"kind": "x"}\n', "line 1: of no known kind"),
    ],
)
def test_a_damaged_raw_report_is_one_finding(result, name, content, fact):
    path = result()
    raw = path.parent / ".scbench" / name
    raw.unlink() if content is None else raw.write_bytes(content)
    finding = ("raw report", f".scbench/{name}", "whole", fact)
    assert found_in(path) == [finding]
    edit(path, in_test(SHOUTS_TWO, status="passed"))  # the others still tell
    assert found_in(path) == [finding, ("status", SHOUTS_TWO, "passed", "failed")]


def test_an_edited_raw_report(result):
    path = result()
    raw = path.parent / ".scbench" / JSON_REPORT
    raw.write_text(raw.read_text().replace('"outcome": "failed"', '"outcome": "passed"'))
    found = found_in(path)
    assert {("status", SHOUTS_TWO, "failed", "passed"), (REASON, REASON, NONE, ENDED_WITH_1)} <= set(found)


def in_json(name, outcome, *, code=None, recount=True):
    """A test's outcome in the JSON report, with all that goes with it, or None if it is gone."""

    def change(report):
        found = next(test for test in report["tests"] if test["nodeid"].endswith(name))
        if outcome is None:
            report["tests"].remove(found)
        else:
            found["outcome"] = found["call"]["outcome"] = outcome
        counts = Counter(test["outcome"] for test in report["tests"])
        report["summary"] = {**counts, "total": counts.total(), "collected": 8} if recount else report["summary"]
        report["exitcode"] = report["exitcode"] if code is None else code

    return change


def in_ctrf(name, status):
    def change(report):
        tests = report["results"]["tests"]
        next(test for test in tests if test["name"].endswith(name))["status"] = status
        report["results"]["summary"].update(
            {"passed": 0, "failed": 0, "skipped": 0}, **Counter(test["status"] for test in tests)
        )

    return change


def no_ctrf(report):
    report["results"].update(tests=[], summary={"tests": 0})


def edit_stream(raw, change):
    lines = [json.loads(line) for line in (raw / STREAM).read_text().splitlines()]
    for line in lines:
        change(line)
    (raw / STREAM).write_text("".join(json.dumps(line) + "\n" for line in lines))


def in_stream(name, status):
    def change(line):
        if line["kind"] == "result" and line["nodeid"] == name:
            line["status"] = status

    return change


JSON, CTRF, LINES = (f".scbench/{name}" for name in (JSON_REPORT, CTRF_REPORT, STREAM))


def differ(location, one, other):
    return ("contradiction", location, one, other)


@pytest.mark.parametrize(
    ("file", "change", "finding"),
    [
        (CTRF_REPORT, in_ctrf("test_shouts", "failed"), differ(SHOUTS, f"passed in {JSON}", f"failed in {CTRF}")),
        (CTRF_REPORT, in_ctrf("_shouts_two", "passed"), differ(SHOUTS_TWO, f"failed in {JSON}", f"passed in {CTRF}")),
        (CTRF_REPORT, in_ctrf("test_later", "failed"), differ(LATER, f"skipped in {JSON}", f"failed in {CTRF}")),
        (
            CTRF_REPORT,
            no_ctrf,
            differ("number of tests", f"8 in {JSON}", f"0 in {CTRF}, without test_checkpoint_1.py::test_says"),
        ),
        (
            CTRF_REPORT,
            lambda report: report["results"]["summary"].update(passed=8, failed=0),
            differ(CTRF, "8 passed in its summary", "5 among its tests"),
        ),
        (
            JSON_REPORT,
            lambda report: report["summary"].update(passed=7, failed=0),
            differ(JSON, "7 passed in its summary", "5 among its tests"),
        ),
        (STREAM, in_stream(SHOUTS, "failed"), differ(SHOUTS, f"passed in {JSON}", f"failed in {LINES}")),
        (STREAM, in_stream(SHOUTS_TWO, "error"), differ(SHOUTS_TWO, f"failed in {JSON}", f"error in {LINES}")),
        (
            STREAM,
            lambda line: line.update(exitstatus=0) if line["kind"] == "finish" else None,
            differ("exit code", f"1 in {JSON}", f"0 in {LINES}"),
        ),
    ],
    ids=[
        "failed in CTRF", "passed in CTRF", "not skipped in CTRF", "CTRF without tests", "CTRF's summary",
        "JSON's summary", "failed in the stream", "error in the stream", "end of the stream",
    ],
)  # fmt: skip
def test_reports_that_contradict_each_other(result, file, change, finding):
    path = result()
    raw = path.parent / ".scbench"
    edit_stream(raw, change) if file == STREAM else edit(raw / file, change)
    assert found_in(path) == [finding]


def test_a_result_edited_together_with_its_report(result):
    path = result()
    raw = path.parent / ".scbench"
    names = [SHOUTS_TWO, "test_checkpoint_2.py::test_nothing"]
    for name in names:
        edit(raw / JSON_REPORT, in_json(name.partition("::")[2], "passed", code=0))
    edit(raw / EXIT, setting("exit_code", to=0))
    gone = {"status": "passed", "failure_message": None, "calls": [], "output": None}
    consistently(path, *(in_test(name, **gone) for name in names), setting("pytest_exit_code", to=0))
    assert found_in(path) == [
        *(differ(name, f"passed in {JSON}", f"failed in {CTRF} and failed in {LINES}") for name in names),
        differ("exit code", f"0 in {JSON}", f"1 in {LINES}"),
    ]
    (raw / "pytest.log").write_text("E  assert\n====== 2 failed, 5 passed, 1 skipped in 3.10s ======\n")
    assert differ("number of tests passed", f"7 in {JSON}", "5 in the last line of .scbench/pytest.log") in found_in(
        path
    )


def test_a_test_that_was_taken_out_of_nearly_everything(result):
    path = result()
    raw = path.parent / ".scbench"

    def not_collected(line):
        if line["kind"] == "collected":
            line["tests"] = [test for test in line["tests"] if test["nodeid"] != SHOUTS]

    def not_listed(roster):
        roster["tests"] = [test for test in roster["tests"] if test["nodeid"] != SHOUTS]

    edit(raw / JSON_REPORT, in_json("::test_shouts", None))
    edit(raw / ROSTER, not_listed)
    edit_stream(raw, not_collected)
    consistently(path, remove)
    assert found_in(path) == [
        differ("number of tests", f"7 in {JSON}", f"8 in {file}, with {SHOUTS}") for file in (CTRF, LINES)
    ]


def mark(nodeid, *markers):
    """Sets the markers of a test wherever a file of the evidence has them."""

    def change(data):
        tests = [*data.get("tests", []), *([data] if data.get("kind") == "result" else [])]
        for test in tests:
            if test["nodeid"] == nodeid:
                test["markers"] = list(markers)

    return change


NOTHING = "test_checkpoint_2.py::test_nothing"
NOT_PASSED = {SHOUTS_TWO: ["slow"], NOTHING: ["error"], LATER: ["skip", "functionality"]}
ROSTER_FILE = f".scbench/{ROSTER}"


def forge_quarantine(path):
    """Puts the tests that did not pass into quarantine, in the roster and the result."""
    for name, markers in NOT_PASSED.items():
        edit(path.parent / ".scbench" / ROSTER, mark(name, "quarantined", *markers))
        consistently(path, in_test(name, markers=["quarantined", *markers]))


def test_a_quarantine_that_the_judge_did_not_have_is_a_finding(result):
    path = result()
    forge_quarantine(path)
    assert read_document(path).derived["passed"]["all-cases"]
    texts = {name: ", ".join(markers) for name, markers in NOT_PASSED.items()}
    found = [
        differ(name, f"marked quarantined, {text} in {ROSTER_FILE}", f"marked {text} in {LINES}")
        for name, text in texts.items()
    ]
    assert found_in(path) == found
    assert found_in(path, ProblemConfig.from_yaml(DATA / "words")) == [
        *found,
        *(("quarantine", name, "quarantined", "not quarantined") for name in NOT_PASSED),
    ]


def test_a_forged_group_marker_is_a_finding(result):
    path = result()
    for name in (SHOUTS_TWO, LATER):
        edit(path.parent / ".scbench" / ROSTER, mark(name, "error"))
        consistently(path, in_test(name, markers=["error"], group_type="Error"))
    assert read_document(path).derived["passed"]["all-non-error-cases"]
    assert found_in(path) == [
        differ(SHOUTS_TWO, f"marked error in {ROSTER_FILE}", f"marked slow in {LINES}"),
        differ(LATER, f"marked error in {ROSTER_FILE}", f"marked skip, functionality in {LINES}"),
    ]


@pytest.mark.parametrize("kind", ["collected", "result"])
def test_both_lists_of_markers_in_the_stream_are_compared(result, kind):
    path = result()
    change = mark(SHOUTS, "error")
    edit_stream(path.parent / ".scbench", lambda line: change(line) if line["kind"] == kind else None)
    assert found_in(path) == [differ(SHOUTS, f"not marked in {ROSTER_FILE}", f"marked error in {LINES}")]


def test_markers_are_compared_in_every_pair(pair):
    evaluated_in_pairs(pair)
    for name in ("test_checkpoint_1.py::test_says", SHOUTS):
        edit(pair.parent / ".scbench" / ROSTER, mark(name, "quarantined"))
        consistently(pair, in_test(name, markers=["quarantined"]))
    assert found_in(pair) == [
        differ(name, f"marked quarantined in {ROSTER_FILE}", f"not marked in .scbench/{number}/{STREAM}")
        for number, name in enumerate(("test_checkpoint_1.py::test_says", SHOUTS), start=1)
    ]


def test_a_quarantine_in_all_evidence_is_compared_with_that_of_the_problem(result):
    path = result()
    forge_quarantine(path)
    for name, markers in NOT_PASSED.items():
        edit_stream(path.parent / ".scbench", mark(name, "quarantined", *markers))
    assert found_in(path) == []
    assert not_checked(path)[-2:] == [f"quarantine of {', '.join(NOT_PASSED)}: give -p PROBLEM", NO_SNAPSHOT]
    words = ProblemConfig.from_yaml(DATA / "words")
    assert found_in(path, words) == [("quarantine", name, "quarantined", "not quarantined") for name in NOT_PASSED]
    assert not_checked(path, words) == [NO_SNAPSHOT]


def test_a_test_that_is_in_quarantine_only_in_the_problem_is_a_finding(result, tmp_path):
    shutil.copytree(DATA / "words", tmp_path / "words")
    (tmp_path / "words" / "tests" / "flaky.json").write_text(json.dumps({"tests": [{"test": SHOUTS}]}))
    found = found_in(result(), ProblemConfig.from_yaml(tmp_path / "words"))
    assert ("quarantine", SHOUTS, "not quarantined", "quarantined") in found


def test_a_group_for_the_reserved_marker_is_a_finding(result):
    path = result()
    edit(path, setting("provenance", "groups", "quarantined", to="Error"))
    assert found_in(path) == [
        differ("provenance.groups", "a group for quarantined", "config.yaml cannot name this marker")
    ]


@pytest.mark.parametrize(
    ("log", "counts"),
    [
        ("x\n===== 12 failed, 57 passed in 3.10s =====\n", {"failed": 12, "passed": 57}),
        ("1 passed in 0.01s", {"passed": 1}),
        ("= 1 passed, 2 skipped, 3 xfailed in 0.01s =", {"passed": 1, "skipped": 5}),
        ("= 1 xpassed, 1 warning, 8 errors in 61.01s (0:01:01) =", {"xpassed": 1, "warning": 1, "error": 8}),
        ("= 1 passed in 0.01s =\nand then this", None),
        ("= no tests ran in 0.01s =", None),
        ("", None),
    ],
)
def test_what_pytest_printed_last(log, counts):
    assert last_line(log) == counts


@pytest.mark.parametrize(
    ("stream", "ctrf", "alike"),
    [
        (("error", False), ("failed", False), True),
        (("error", False), ("passed", False), False),
        (("passed", False), ("failed", True), True),
        (("passed", False), ("failed", False), False),
        (("failed", True), ("passed", False), True),
        (("failed", False), ("passed", False), False),
        (("failed", False), ("skipped", False), False),
        (("skipped", False), ("passed", False), False),
    ],
)
def test_what_ctrf_cannot_say_alike(stream, ctrf, alike):
    one, other = (RawTest("f::t", status, 0.0, xpassed=xpassed) for status, xpassed in (stream, ctrf))
    assert agrees_with_ctrf(one, other) is alike


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            setting("checkpoint_name", to="checkpoint_1"),
            differ("checkpoint_name", "checkpoint_1", "checkpoint_2 in provenance.command"),
        ),
        (
            setting("provenance", "checkpoints", to=["checkpoint_1"]),
            differ("checkpoint_name", "checkpoint_2", '["checkpoint_1"] in provenance.checkpoints'),
        ),
        (
            setting("provenance", "pytest_args", to=["-v"]),
            differ("provenance.pytest_args", '["-v"]', "[] in provenance.command"),
        ),
    ],
    ids=["name", "checkpoints", "arguments"],
)
def test_what_a_result_says_twice(result, change, finding):
    path = result()
    edit(path, change)
    assert finding in found_in(path)


def test_a_snapshot_that_was_not_evaluated(result):
    path = result()
    snapshot = path.parent / "snapshot"
    snapshot.mkdir()
    (snapshot / "main.py").write_text("print()\n")
    edit(path, setting("provenance", "digests", "submission", to=tree_digest(snapshot)))
    assert (found_in(path), not_checked(path)) == ([], [GROUPS])
    (snapshot / "main.py").write_text("print(1)\n")
    assert [(kind, location) for kind, location, _, _ in found_in(path)] == [
        ("snapshot", "provenance.digests.submission")
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"schema_version": 1}', "problem_name: Field required"),
        (b'{"schema_version": 5}', "schema_version is 5, and this slop-code reads 1 only; update slop-code"),
        (b"[" * 100_000, "not JSON"),
        (b'{"schema_version": 1, "problem_name": 1}', "problem_name: Input should be a valid string"),
    ],
)
def test_what_cannot_be_read(result, content, words):
    path = result()
    path.write_bytes(content)
    with pytest.raises(ResultError, match=words):
        read_document(path)


def test_a_format_of_the_future_says_what_to_do(result):
    path = result()
    edit(path, setting("schema_version", to=5))
    words = "schema_version is 5, and this slop-code reads 1 only; update slop-code, or evaluate"
    for read in (read_document, CorrectnessResults.load):
        with pytest.raises(ResultError, match=words):
            read(path)


def test_what_nothing_else_loads_is_not_verified(result):
    path = result()
    edit(path, setting("duration", to="1.24"))
    for read in (read_document, CorrectnessResults.load):
        with pytest.raises(ResultError, match="duration: Input should be a valid number; evaluate the snapshot again"):
            read(path)


def test_without_raw_reports_nothing_is_verified(result):
    path = result()
    shutil.rmtree(path.parent / ".scbench")
    with pytest.raises(ResultError, match=r"no raw reports in \.scbench; evaluate the snapshot again"):
        verified(path)
    edit(path, all_edits(setting("pytest_exit_code", to=-1), setting(REASON, to="set-up failed")))
    with pytest.raises(ResultError, match="pytest never ran: set-up failed"):
        verified(path)


def test_a_problem_that_is_not_the_one(result, tmp_path):
    shutil.copytree(DATA / "words", tmp_path / "words")
    path, words = result(), tmp_path / "words"
    with (words / "tests" / "test_checkpoint_1.py").open("a") as file:
        file.write("\n")
    assert [location for _, location, _, _ in found_in(path, ProblemConfig.from_yaml(words))] == [
        "provenance.digests.tests"
    ]
    config = words / "config.yaml"
    config.write_text(config.read_text().replace("timeout: 10", "timeout: 11").replace("Functionality", "Error"))
    assert [location for _, location, _, _ in found_in(path, ProblemConfig.from_yaml(words))] == [
        "provenance.digests.config",
        "provenance.digests.tests",
        "provenance.groups",
    ]


def evaluated(path, roster, exits):
    """As an evaluation stores what its pairs left, given how the pytest of each ended; its roster is written down."""
    stored, folder = CorrectnessResults.load(path), path.parent
    (folder / ".scbench" / ROSTER).write_text(roster.to_json())
    names = pair_folders(len(exits))
    for name, status in zip(names, exits, strict=True):
        (folder / name / EXIT).write_text(status.model_dump_json())
    evidence = [read_evidence(folder, name, roster.of_pair(pair)) for pair, name in enumerate(names, start=1)]
    made = stored.provenance
    graded = grade(evidence, roster, GradingRules.with_markers(made.checkpoints, "checkpoint_2", made.groups))
    again = stored.model_copy(
        update={
            "tests": graded.tests,
            "pytest_exit_code": graded.exit_code,
            REASON: graded.infrastructure_failure_reason,
            "evidence": graded.source,
            "isolation": {"pairs": len(exits)},
        }
    )
    again.save(path)
    return again


def cut(folder, lines):
    """As a kill leaves it: the first lines of the stream, and no report."""
    stream = folder / STREAM
    kept = stream.read_bytes().splitlines(keepends=True)[:lines]
    stream.write_bytes(b"".join(kept))
    for name in (JSON_REPORT, CTRF_REPORT):
        (folder / name).unlink()


KEPT_LINES = 8


@pytest.mark.parametrize(
    ("code", "lines", "reason"),
    [
        (137, KEPT_LINES, f"pytest was killed by signal 9 (SIGKILL), while running {SHOUTS_TWO}"),
        (None, KEPT_LINES, f"session timeout of 90 s while running {SHOUTS_TWO}"),
        (0, KEPT_LINES, None),
        (4, 0, "pytest refused its arguments or the tests' conftest.py (exit code 4)"),
    ],
)
def test_a_run_that_broke_off(result, code, lines, reason):
    path = result()
    raw = path.parent / ".scbench"
    cut(raw, lines)
    made = evaluated(path, read_roster(path.parent), [exit_of(code)])
    assert reason is None or made.infrastructure_failure_reason == reason
    assert found_in(path) == []

    edit(path, all_edits(setting(REASON, to=None), setting("infrastructure_failure", to=False)))
    assert (REASON, REASON, NONE, made.infrastructure_failure_reason) in found_in(path)
    if lines:
        assert len(found_in(path)) == 1


@pytest.mark.parametrize(
    ("change", "location"),
    [
        (in_test(SHOUTS, status="failed"), SHOUTS),
        (in_test(LATER, status="passed"), LATER),
        (setting("infrastructure_failure_reason", to="the dog ate it"), "infrastructure_failure_reason"),
        (setting("pytest_exit_code", to=139), "pytest_exit_code"),
    ],
    ids=["found", "not run", "reason", "exit code"],
)
def test_edits_of_a_run_that_broke_off(result, change, location):
    path = result()
    raw = path.parent / ".scbench"
    cut(raw, KEPT_LINES)
    evaluated(path, read_roster(path.parent), [exit_of(137)])
    edit(path, change)
    assert location in [found for _, found, _, _ in found_in(path)]


def test_an_end_after_the_reports_were_written(result):
    path = result()
    made = evaluated(path, read_roster(path.parent), [exit_of(None)])
    assert made.infrastructure_failure_reason == "session timeout of 90 s with no test running"
    assert (found_in(path), not_checked(path)) == ([], [GROUPS, NO_SNAPSHOT])


@pytest.mark.parametrize("code", [137, -1])
def test_a_verdict_that_was_made_a_failure_of_ours(result, code):
    path = result()
    reason = (
        "pytest was killed by signal 9 (SIGKILL)" if code == 137 else "session timeout of 90 s with no test running"
    )
    consistently(path, setting("pytest_exit_code", to=code), setting(REASON, to=reason))
    assert (REASON, REASON, reason, NONE) in found_in(path)


def test_a_failure_of_ours_that_was_made_a_verdict(result):
    path = result()
    reason = "pytest ended with 7, which is none of its exit codes"
    evaluated(path, read_roster(path.parent), [exit_of(7)])
    assert found_in(path) == []
    consistently(path, setting("pytest_exit_code", to=1), setting(REASON, to=None))
    assert found_in(path)[:2] == [("pytest_exit_code", "pytest_exit_code", "1", "7"), (REASON, REASON, NONE, reason)]


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (None, "is missing"),
        ("{}", "is malformed: pair: Field required"),
        ('{"pair":2,"exit_code":1,"session_timeout":9.0,"error":null}', "is of pair 2"),
    ],
)
def test_a_damaged_exit_status_is_one_finding(result, content, fact):
    path = result()
    file = path.parent / ".scbench" / EXIT
    file.unlink() if content is None else file.write_text(content)
    finding = ("raw report", ".scbench/exit.json", "whole", fact)
    assert found_in(path) == [finding]
    edit(path, in_test(SHOUTS_TWO, status="passed"))
    assert found_in(path) == [finding, ("status", SHOUTS_TWO, "passed", "failed")]


@pytest.mark.parametrize(
    ("content", "fact"), [(None, "is missing"), ("{}", "is malformed: a roster needs a list of tests")]
)
def test_without_the_roster_no_test_is_verified(result, content, fact):
    path = result()
    file = path.parent / ".scbench" / ROSTER
    file.unlink() if content is None else file.write_text(content)
    assert found_in(path) == [("raw report", ".scbench/roster.json", "whole", fact)]
    assert f"tests and verdict: roster.json {fact}" in not_checked(path)


def test_a_failure_of_the_boxes_is_believed(result):
    path = result()
    cut(path.parent / ".scbench", KEPT_LINES)
    failed = exit_of(None, session_timeout=None, error="the engine went away")
    made = evaluated(path, read_roster(path.parent), [failed])
    assert (made.infrastructure_failure_reason, made.pytest_exit_code) == ("the engine went away", -1)
    assert {test.failure_message for test in made.tests} == {"the engine went away"}
    assert (found_in(path), not_checked(path)) == ([], [GROUPS, NO_SNAPSHOT])
    path.write_text(path.read_text().replace("the engine went away", "the dog ate it"))
    assert found_in(path)[-1] == (REASON, REASON, "the dog ate it", "the engine went away")


def test_tests_that_the_roster_or_the_run_did_not_have(result):
    path = result()
    entries = read_roster(path.parent).entries
    roster = Roster((*entries[1:], RosterEntry("test_checkpoint_2.py::test_gone", ("error",), 1)))
    made = evaluated(path, roster, [exit_of(1)])
    assert made.infrastructure_failure_reason == (
        "reported but not among the tests: 1, the first: test_checkpoint_1.py::test_says"
    )
    assert found_in(path) == []


@pytest.fixture
def pair(result):
    """A stored result of two pairs, each with the reports of its tests, and its path."""
    path = result()
    raw = path.parent / ".scbench"
    for number in (1, 2):
        shutil.copytree(raw, path.parent / "raw" / str(number))
    shutil.rmtree(raw)
    (path.parent / "raw").rename(raw)
    for number, own in ((1, "test_checkpoint_1.py"), (2, "test_checkpoint_2.py")):
        keep_file(raw / str(number), own, 0 if number == 1 else 1)
        (raw / str(number) / ROSTER).unlink()
    return path


def keep_file(folder, file, code):
    """The reports as a pair leaves them that ran this file's tests alone."""
    report = json.loads((folder / JSON_REPORT).read_text())
    report["tests"] = [test for test in report["tests"] if file in test["nodeid"]]
    counts = Counter(test["outcome"] for test in report["tests"])
    report["summary"] = {**counts, "total": len(report["tests"]), "collected": len(report["tests"])}
    (folder / JSON_REPORT).write_text(json.dumps({**report, "exitcode": code}))
    ctrf = json.loads((folder / CTRF_REPORT).read_text())
    ctrf["results"]["tests"] = [test for test in ctrf["results"]["tests"] if file in test["name"]]
    counts = Counter(test["status"] for test in ctrf["results"]["tests"])
    ctrf["results"]["summary"] = {**counts, "tests": counts.total()}
    (folder / CTRF_REPORT).write_text(json.dumps(ctrf))
    lines = [json.loads(line) for line in (folder / STREAM).read_text().splitlines()]
    lines[0]["tests"] = [test for test in lines[0]["tests"] if file in test["nodeid"]]
    lines[-1]["exitstatus"] = code
    kept = [line for line in lines if file in line.get("nodeid", file)]
    (folder / STREAM).write_text("".join(json.dumps(line) + "\n" for line in kept))


def evaluated_in_pairs(path, codes=(0, 1)):
    """Pair 1 ran the tests of the first checkpoint."""
    tests = CorrectnessResults.load(path).tests
    entries = [RosterEntry(test.nodeid, tuple(test.markers), int(test.checkpoint[-1])) for test in tests]
    return evaluated(path, Roster(tuple(entries)), [exit_of(code, pair=pair) for pair, code in enumerate(codes, 1)])


def test_results_of_two_pairs_are_verified(pair):
    made = evaluated_in_pairs(pair)
    assert (made.pytest_exit_code, made.infrastructure_failure_reason, len(made.tests)) == (1, None, 8)
    assert found_in(pair) == []
    edit(pair, in_test(SHOUTS_TWO, status="passed"))
    assert found_in(pair) == [("status", SHOUTS_TWO, "passed", "failed")]


def test_a_pair_whose_reports_are_lost(pair):
    evaluated_in_pairs(pair)
    shutil.rmtree(pair.parent / ".scbench" / "2")
    assert found_in(pair) == [("raw report", ".scbench/2", "whole", "is missing")]
    edit(pair, in_test("test_checkpoint_1.py::test_says", status="failed"))
    assert found_in(pair)[1:] == [("status", "test_checkpoint_1.py::test_says", "failed", "passed")]


def test_a_pair_that_was_killed(pair):
    cut(pair.parent / ".scbench" / "2", 2)
    made = evaluated_in_pairs(pair, (0, 137))
    assert made.infrastructure_failure_reason == (
        f"pair 2 of 2: pytest was killed by signal 9 (SIGKILL), while running {SHOUTS}"
    )
    assert found_in(pair) == []
    edit(pair, in_test("test_checkpoint_1.py::test_says", status="failed"))
    assert found_in(pair) == [("status", "test_checkpoint_1.py::test_says", "failed", "passed")]


def test_a_pair_that_was_killed_before_it_wrote_anything(pair):
    for name in (JSON_REPORT, CTRF_REPORT, STREAM):
        (pair.parent / ".scbench" / "2" / name).unlink()
    made = evaluated_in_pairs(pair, (0, 137))
    assert made.infrastructure_failure_reason.startswith("pair 2 of 2: pytest was killed by signal 9 (SIGKILL)")
    assert found_in(pair) == []


def test_how_many_pairs_there_were_is_seen(pair):
    evaluated_in_pairs(pair)
    edit(pair, setting("isolation", "pairs", to=1))
    assert found_in(pair) == [("isolation", "isolation.pairs", "1", "2")]


def test_reports_of_a_pair_that_there_was_not(pair):
    evaluated_in_pairs(pair)
    raw = pair.parent / ".scbench"
    shutil.copytree(raw / "1", raw / "3")
    shutil.copy(raw / "1" / STREAM, raw / STREAM)
    (raw / "notes").mkdir()
    fact = "has reports of a pair beyond the 2 of the evaluation"
    assert found_in(pair) == [("raw report", name, "no such pair", fact) for name in (".scbench", ".scbench/3")]


def test_reports_of_pairs_where_there_was_one(result):
    path = result()
    raw = path.parent / ".scbench"
    (raw / "1").mkdir()
    shutil.copy(raw / STREAM, raw / "1" / STREAM)
    fact = "has reports of a pair beyond the 1 of the evaluation"
    assert found_in(path) == [("raw report", ".scbench/1", "no such pair", fact)]


def test_what_lies_there_may_be_no_file(result):
    path = result()
    raw = path.parent / ".scbench"
    for name in (JSON_REPORT, CTRF_REPORT, "pytest.log"):
        (raw / name).unlink(missing_ok=True)
    os.mkfifo(raw / "pytest.log")  # who opens it would wait for ever
    os.mkfifo(raw / JSON_REPORT)
    (raw / CTRF_REPORT).symlink_to(path)
    facts = ["cannot be read: not a regular file", "cannot be read: Too many levels of symbolic links"]
    assert [fact for _, _, _, fact in found_in(path)] == facts


def test_two_pairs_that_ended_differently(pair):
    for number in ("1", "2"):
        cut(pair.parent / ".scbench" / number, 2)
    made = evaluated_in_pairs(pair, (137, None))
    assert made.infrastructure_failure_reason == (
        "pair 1 of 2: pytest was killed by signal 9 (SIGKILL), while running test_checkpoint_1.py::test_says\n"
        f"pair 2 of 2: session timeout of 90 s while running {SHOUTS}"
    )
    assert found_in(pair) == []
    edit(pair, setting(REASON, to=made.infrastructure_failure_reason.replace("90", "60")))
    assert found_in(pair) != []
