import json
import shutil
from pathlib import Path

import pytest

from slop_code.evaluation.evidence import (
    REPORT_LIMIT,
    Evidence,
    read_evidence,
    read_roster,
    running_test,
    weakest_isolation,
)
from slop_code.evaluation.reports.stream import Stream
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, EXIT, JSON_REPORT, ROSTER, STREAM
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.usage.resources import Resources, StruckLimit
from tests.evidence_records import evidence_of, exit_of


def reported(folder):
    return Evidence(Roster(()), exit_of(1)).with_reports(folder)


DATA = Path(__file__).parents[1] / "data" / "reports"


@pytest.fixture
def folder(tmp_path):
    shutil.copy(DATA / "pytest-json-report-1.5.0" / "all-outcomes.json", tmp_path / JSON_REPORT)
    shutil.copy(DATA / "pytest-json-ctrf-0.6.1" / "all-outcomes.json", tmp_path / CTRF_REPORT)
    shutil.copy(DATA / "stream" / "all-outcomes.jsonl", tmp_path / STREAM)
    return tmp_path


def missing(path):
    path.unlink()


def truncated(path):
    path.write_bytes(path.read_bytes()[:-100])


def huge(path):
    with path.open("r+b") as file:
        file.truncate(REPORT_LIMIT + 1)


def empty(path):
    path.write_bytes(b"")


def other(path):
    path.write_text('{"tests": 3, "results": 4}')


def nested(path):
    path.write_text('{"a":' * 100_000 + "1" + "}" * 100_000)


def linked(path):
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


DAMAGES = [
    (missing, "is missing"),
    (truncated, "is cut short"),
    (huge, "is larger than 64 MiB"),
    (empty, "is cut short"),
    (other, "is malformed: "),
    (nested, "is malformed: nested too deeply"),
    (linked, "cannot be read: "),
]


@pytest.mark.parametrize(
    ("memory_limit", "expected"),
    [(None, [("out_of_memory", None), ("disk", 7)]), (1 << 30, [("memory", 1 << 30), ("disk", 7)])],
)
def test_a_process_that_the_kernel_killed_for_the_boxs_memory_limit_reached_that_limit(memory_limit, expected):
    """The spawner sees the kill, and the evaluator sees whose limit it was."""
    struck = [StruckLimit(kind="out_of_memory", limit=None, call="a"), StruckLimit(kind="disk", limit=7, call=None)]
    ended = exit_of(1).model_copy(update={"memory_limit": memory_limit})
    evidence = Evidence(Roster(()), ended, stream=Stream(resources={"a": Resources(limits=tuple(struck))}))
    limits = evidence.resources_of("a").limits
    assert [(limit.kind, limit.limit) for limit in limits] == expected
    assert [limit.call for limit in limits] == ["a", None]


def test_the_json_report_is_preferred(folder):
    evidence = reported(folder)
    assert (evidence.source, evidence.faults, evidence.reported_exit) == ("json-report", (), 1)
    assert len(evidence.tests) == 24


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_ctrf_stands_in_for_the_json_report(folder, damage, words):
    damage(folder / JSON_REPORT)
    evidence = reported(folder)
    assert (evidence.source, len(evidence.tests), evidence.reported_exit) == ("ctrf", 24, 1)
    (fault,) = evidence.faults
    assert fault.startswith(f"{JSON_REPORT} {words}")


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_the_stream_stands_in_for_both_reports(folder, damage, words):
    damage(folder / JSON_REPORT)
    damage(folder / CTRF_REPORT)
    evidence = reported(folder)
    assert (evidence.source, len(evidence.tests)) == ("stream", 24)
    assert [
        fault.startswith(f"{name} {words}")
        for name, fault in zip((JSON_REPORT, CTRF_REPORT), evidence.faults, strict=True)
    ] == [True, True]


def test_a_folder_without_reports_has_no_tests(tmp_path):
    evidence = reported(tmp_path / "nowhere")
    assert (evidence.tests, evidence.source, evidence.running) == ((), "stream", None)
    assert evidence.faults == tuple(f"{name} is missing" for name in (JSON_REPORT, CTRF_REPORT, STREAM))


def test_what_was_running_and_deselected_comes_from_the_stream(folder):
    with (folder / STREAM).open("a") as file:
        file.write(json.dumps({"kind": "deselected", "nodeids": [".evaluation_tests/test_a.py::x"]}) + "\n")
        file.write(json.dumps({"kind": "start", "nodeid": "test_a.py::y"}) + "\n")
    evidence = reported(folder)
    assert (evidence.running, evidence.deselected) == ("test_a.py::y", {"test_a.py::x"})


@pytest.mark.parametrize(
    ("started", "exit_codes", "running"),
    [
        ([], [0, 0], None),
        (["test_a.py::one", "test_a.py::two"], [137, 137], "test_a.py::one"),
        ([None, "test_a.py::two"], [0, 137], "test_a.py::two"),
        (["test_b.py::unknown"], [137, 0], None),
    ],
)
def test_the_running_test_is_that_of_the_first_pair_that_broke_off(tmp_path, started, exit_codes, running):
    entries = [RosterEntry(f"test_a.py::{name}", (), pair) for pair, name in enumerate(("one", "two"), start=1)]
    for pair, code in enumerate(exit_codes, start=1):
        folder = tmp_path / ".scbench" / str(pair)
        folder.mkdir(parents=True)
        (folder / EXIT).write_text(exit_of(code, pair=pair).model_dump_json())
        nodeids = [nodeid for nodeid in started[pair - 1 : pair] if nodeid]
        lines = [json.dumps({"kind": "start", "nodeid": nodeid}) + "\n" for nodeid in nodeids]
        (folder / STREAM).write_text("".join(lines))
    assert running_test(tmp_path) is None
    (tmp_path / ".scbench" / ROSTER).write_text(Roster(tuple(entries)).to_json())
    assert running_test(tmp_path) == running


def test_collection_errors_are_the_same_from_either_report(tmp_path):
    shutil.copy(DATA / "stream" / "collection-error.jsonl", tmp_path / STREAM)
    from_stream = reported(tmp_path).collection_errors
    shutil.copy(DATA / "pytest-json-report-1.5.0" / "collection-error.json", tmp_path / JSON_REPORT)
    assert reported(tmp_path).collection_errors == from_stream
    assert len(from_stream) == 1


def test_after_a_failure_of_the_boxes_nothing_that_was_left_counts(folder):
    broken = Evidence(Roster(()), exit_of(1, error="the engine went away")).with_reports(folder)
    assert (broken.source, broken.tests, broken.running, broken.deselected) == ("stream", (), None, frozenset())


def write_exit(folder, text):
    (folder / ".scbench" / "2").mkdir(parents=True)
    (folder / ".scbench" / "2" / EXIT).write_text(text)


@pytest.mark.parametrize(
    ("text", "exit_status"),
    [
        ('{"pair":2,"exit_code":1,"session_timeout":90.0,"error":null}', exit_of(1, pair=2)),
        ('{"pair":2,"exit_code":null,"session_timeout":null,"error":"x"}',
         exit_of(None, pair=2, session_timeout=None, error="x")),
        ('{"pair":1,"exit_code":1,"session_timeout":90.0,"error":null}', "is of pair 1"),
        ('{"pair":2,"exit_code":1,"error":null}', "is malformed: session_timeout: Field required"),
        ('{"pair":2,"exit_code":true,"session_timeout":1.0,"error":null}',
         "is malformed: exit_code: Input should be a valid integer"),
    ],
)  # fmt: skip
def test_the_exit_status_is_read_strictly(tmp_path, text, exit_status):
    write_exit(tmp_path, text)
    assert read_evidence(tmp_path, ".scbench/2", Roster(())).exit == exit_status


def test_an_exit_status_that_is_not_there_is_said_to_be_missing(tmp_path):
    assert read_evidence(tmp_path, ".scbench", Roster(())).exit == "is missing"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("[]", "is malformed: a roster is an object with a list of tests"),
        ('{"tests": [{"nodeid": "a", "markers": []}, {"nodeid": "a", "markers": []}]}',
         "is malformed: a roster holds a test twice"),
        ('{"tests": [{"nodeid": "a", "markers": [], "pair": 0}]}',
         "is malformed: a: pair needs to be a number from 1 to 1024"),
        ('{"tests": [{"nodeid": "a", "markers": [], "pair": true}]}',
         "is malformed: a: pair needs to be a number from 1 to 1024"),
    ],
)  # fmt: skip
def test_a_damaged_roster_says_what_is_wrong(tmp_path, text, fact):
    (tmp_path / ".scbench").mkdir()
    (tmp_path / ".scbench" / ROSTER).write_text(text)
    assert read_roster(tmp_path) == fact


def test_a_roster_is_read_as_it_was_written(tmp_path):
    roster = Roster((RosterEntry("a::1", ("slow",), 2), RosterEntry("a::2", (), None), RosterEntry("b::1", (), 1)))
    (tmp_path / ".scbench").mkdir()
    (tmp_path / ".scbench" / ROSTER).write_text(roster.to_json())
    assert read_roster(tmp_path) == roster
    assert (roster.pairs, [entry.nodeid for entry in roster.of_pair(2).entries]) == (2, ["a::1"])


@pytest.mark.parametrize(
    ("isolations", "weakest"),
    [
        ([{}, {}], {}),
        ([{"sandbox": "none"}], {"sandbox": "none", "pairs": 1}),
        ([{"control_groups": True}, {"control_groups": True}], {"control_groups": True, "pairs": 2}),
        ([{"control_groups": True}, {"control_groups": False, "warning": "x"}],
         {"control_groups": False, "warning": "x", "pairs": 2}),
        ([{}, {"control_groups": True}, {}], {"control_groups": True, "pairs": 3}),
    ],
)  # fmt: skip
def test_the_isolation_is_that_of_the_weakest(isolations, weakest):
    assert weakest_isolation([evidence_of(isolation=isolation) for isolation in isolations]) == weakest


def test_repetitions_count_for_the_weakest_isolation():
    whole, no_cpus = (
        {"control_groups": True, "limits": limits} for limits in ({"memory": 1, "cpus": 1}, {"memory": 1})
    )
    first, again = (evidence_of(isolation=isolation) for isolation in (whole, no_cpus))
    assert weakest_isolation([first], [first]) == {**whole, "pairs": 1}
    assert weakest_isolation([first], [again]) == {**no_cpus, "pairs": 1}
