"""Results of the SlopCodeBench runner, read as ours."""

import json

import pytest

import slop_code
from slop_code.errors import ResultError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.reports.raw_test import RawTest
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.result_index import ResultIndex
from slop_code.runs.scb.load_result import is_scb, load_result
from slop_code.runs.scb.scb_evaluation import MAX_KEYS, REQUIRED
from slop_code.runs.scb.scb_report import MAX_NAME_LENGTH, MAX_TESTS, ReportedTests
from tests.factories import result, statuses
from tests.scb_run import PROBLEMS, SKIP_REASON, expected_statuses, write_scb_run

pytestmark = pytest.mark.e2e

CHECKPOINTS = [(item.name, number) for item in PROBLEMS for number in range(1, len(item.checkpoints) + 1)]


@pytest.fixture
def folder(tmp_path):
    return write_scb_run(tmp_path / "run") / "ledger/checkpoint_3"


def change(folder, name="evaluation.json", **keys):
    document = {**json.loads((folder / name).read_text()), **keys}
    (folder / name).write_text(json.dumps(document))
    return folder / "evaluation.json"


def listed(passed=(), **lists):
    return {"tests": {"checkpoint_3-Core": {"passed": list(passed), "failed": [], "skipped": [], **lists}}}


@pytest.mark.parametrize("prefix", ["", "tests/", ".evaluation_tests/", "/workspace/tests/", "a/.evaluation_tests/"])
@pytest.mark.parametrize(("problem", "number"), CHECKPOINTS)
def test_tests_have_the_files_and_statuses_of_an_evaluation_here(tmp_path, problem, number, prefix):
    run = write_scb_run(tmp_path / "run", prefix=prefix)
    results = load_result(run / problem / f"checkpoint_{number}/evaluation.json")
    assert is_scb(results)
    assert statuses(results) == expected_statuses(problem, number)
    assert {test.file_path: test.checkpoint for test in results.tests} == {
        f"test_checkpoint_{home}.py": f"checkpoint_{home}" for home in range(1, number + 1)
    }


def test_groups_messages_times_and_markers_come_from_both_files(folder):
    results = load_result(folder / "evaluation.json")
    by_id = {test.id: test for test in results.tests}
    assert {name: test.group_type for name, test in by_id.items() if test.checkpoint == "checkpoint_3"} == {
        "test_closes": "Core", "test_audits": "Error",
    }  # fmt: skip
    assert "assert 'wrong" in by_id["test_closes"].failure_message
    assert by_id["test_audits"].failure_message.startswith("setup: ")
    assert by_id["test_imports"].failure_message == SKIP_REASON
    assert by_id["test_transfers"].failure_message is None
    assert by_id["test_imports"].markers == ["functionality", "skip"]
    assert by_id["test_closes"].duration_ms == pytest.approx(12)
    assert (results.duration, results.pytest_exit_code, results.infrastructure_failure) == (4.5, 1, False)
    assert results.isolation == {}
    assert results.provenance.digests.submission is None


def test_a_skipped_test_counts_as_not_passed(tmp_path):
    run = write_scb_run(tmp_path / "run")
    document = json.loads((run / "router/checkpoint_2/evaluation.json").read_text())
    assert document["pass_counts"] == document["total_counts"]
    assert not load_result(run / "router/checkpoint_2/evaluation.json").passes()


def test_a_result_of_ours_is_loaded_as_before(tmp_path):
    own = result("+-s")
    own.save(tmp_path / "evaluation.json")
    assert load_result(tmp_path / "evaluation.json") == own
    assert not is_scb(load_result(tmp_path / "evaluation.json"))


def test_the_loader_of_the_public_api_reads_both_and_the_class_only_ours(folder):
    assert is_scb(slop_code.load_results(folder))
    with pytest.raises(ResultError):
        CorrectnessResults.load(folder / "evaluation.json")


def test_without_a_report_files_follow_from_checkpoints_and_errors_are_failures(folder):
    (folder / "evaluation/report.json").unlink()
    results = load_result(folder / "evaluation.json")
    expected = {
        name: "failed" if status == "error" else status for name, status in expected_statuses("ledger", 3).items()
    }
    assert statuses(results) == expected
    assert all(test.failure_message is None for test in results.tests)
    assert any("report.json cannot be read: No such file" in warning for warning in results.warnings)


@pytest.mark.parametrize(
    ("listed_as", "reported", "status"),
    [
        ("passed", "failed", "failed"),
        ("passed", "skipped", "skipped"),
        ("passed", "error", "error"),
        ("passed", "unheard of", "error"),
        ("failed", "passed", "failed"),
        ("skipped", "passed", "skipped"),
        ("skipped", "failed", "failed"),
        ("other", "passed", "error"),
    ],
)
def test_where_the_files_differ_the_worse_status_counts(folder, listed_as, reported, status):
    stage = {"duration": 0.1, "outcome": reported if reported in ("failed", "skipped") else "passed"}
    entry = {"nodeid": "tests/test_checkpoint_3.py::test_x", "outcome": reported}
    stages = {"setup": {**stage, "outcome": "passed"}, "call": stage, "teardown": {**stage, "outcome": "passed"}}
    if reported == "error":
        stages["setup"] = {**stage, "outcome": "failed"}
    change(folder, "evaluation/report.json", tests=[{**entry, **stages}])
    results = load_result(change(folder, **listed(**{listed_as: ["test_x"]})))
    assert statuses(results) == {"test_checkpoint_3.py::test_x": status}
    assert any("the worse counts" in warning for warning in results.warnings)


@pytest.mark.parametrize(("outcome", "status"), [("xfailed", "skipped"), ("skipped", "skipped"), ("passed", "error")])
def test_a_test_of_the_report_alone_never_passes(folder, outcome, status):
    good = {"duration": 0.1, "outcome": "passed"}
    call = good if outcome == "passed" else {"duration": 0.1, "outcome": "skipped"}
    nodeid = "tests/test_checkpoint_1.py::test_x"
    entry = {"nodeid": nodeid, "outcome": outcome, "setup": good, "call": call, "teardown": good}
    change(folder, "evaluation/report.json", tests=[entry])
    tests = load_result(change(folder, tests={})).tests
    assert [(test.id, test.group_type, test.status) for test in tests] == [("test_x", "Regression", status)]


def test_the_same_id_in_two_files_of_a_checkpoint_is_matched_by_status(folder):
    good, bad = {"duration": 0.1, "outcome": "passed"}, {"duration": 0.1, "outcome": "failed"}
    tests = [
        {"nodeid": f"tests/{file}::test_x", "outcome": call["outcome"], "setup": good, "call": call, "teardown": good}
        for file, call in (("test_checkpoint_3.py", bad), ("sub/test_checkpoint_3_more.py", good))
    ]
    change(folder, "evaluation/report.json", tests=tests)
    path = change(folder, **listed(["test_x"], failed=["test_x"]))
    assert statuses(load_result(path)) == {
        "test_checkpoint_3.py::test_x": "failed", "sub/test_checkpoint_3_more.py::test_x": "passed",
    }  # fmt: skip
    (folder / "evaluation/report.json").unlink()
    with pytest.raises(ResultError, match="'test_x' of checkpoint_3 is listed twice"):
        load_result(path)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"infrastructure_failure": True, "pytest_exit_code": 2}, "recorded an infrastructure failure"),
        ({"infrastructure_failure": None}, "recorded an infrastructure failure"),
        ({"pytest_exit_code": 3}, "exit code 3"),
        ({"pytest_exit_code": None}, "exit code none"),
        ({"pytest_exit_code": 10**50}, "which is neither 0 nor 1"),
        ({"pytest_exit_code": True}, "exit code none"),
        ({"pytest_exit_code": 0}, "pytest's exit code is 0, and 1 follows from the tests"),
        ({"tests": {}}, "recorded no test"),
        ({"pytest_collected": 8}, "1 of the 8 tests that pytest collected have no result"),
        ({"pytest_collected": None}, "did not record how many tests"),
        ({"pytest_collected": 10**50}, "did not record how many tests"),
    ],
)
def test_an_infrastructure_failure_there_is_no_verdict_here(folder, keys, reason):
    if not keys.get("tests", True):
        change(folder, "evaluation/report.json", tests=[])
    results = load_result(change(folder, **keys))
    assert reason in results.infrastructure_failure_reason
    assert not results.passes("any")
    assert CheckpointFacts.of(results).state == "infrastructure_failure"


@pytest.mark.parametrize(
    ("name", "keys", "reason"),
    [
        ("evaluation.json", {"pytest_exit_code": 1}, "pytest's exit code is 1, and 0 follows from the tests"),
        ("evaluation/report.json", {"exitcode": 2}, "pytest's exit code is 0, and 2 in report.json"),
        ("evaluation/report.json", {"summary": {"failed": 3}}, "report.json: 0 total in its summary"),
        ("evaluation/report.json", {"collectors": [{"nodeid": "x", "outcome": "failed"}]}, "collection failed: x"),
        ("evaluation/report.json", {"tests": [], "summary": {}}, None),
    ],
)
def test_files_that_contradict_a_pass_are_no_pass(tmp_path, name, keys, reason):
    folder = write_scb_run(tmp_path / "run") / "calendar/checkpoint_1"
    assert load_result(folder / "evaluation.json").passes()
    change(folder, name, **keys)
    results = load_result(folder / "evaluation.json")
    assert not results.passes("any")
    assert (results.infrastructure_failure_reason or "").startswith(reason or "")


@pytest.mark.parametrize("report", [True, False])
def test_a_result_that_lost_tests_never_passes(tmp_path, report):
    folder = write_scb_run(tmp_path / "run") / "calendar/checkpoint_1"
    if not report:
        (folder / "evaluation/report.json").unlink()
    assert load_result(folder / "evaluation.json").passes()
    results = load_result(change(folder, pytest_collected=4))
    assert not results.passes()
    assert not results.passes("any")


@pytest.mark.parametrize(
    ("keys", "warning"),
    [
        ({"pytest_collected": 2}, "pytest collected 2 tests, and 7 have a result"),
        ({"pass_counts": {"Core": 50}}, "pass_counts does not follow from the tests; the tests count"),
        ({"total_counts": {}}, "total_counts does not follow from the tests; the tests count"),
    ],
)
def test_counts_are_compared_with_the_tests(folder, keys, warning):
    assert warning not in load_result(folder / "evaluation.json").warnings
    assert warning in load_result(change(folder, **keys)).warnings


class CountedStatus(str):
    """A status that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    comparisons = 0

    def __eq__(self, other):
        CountedStatus.comparisons += 1
        return str.__eq__(self, other)


def test_many_tests_of_the_same_id_are_matched_in_a_few_steps_each():
    count = 200
    reported = [RawTest("test_checkpoint_1.py::test_x", CountedStatus("failed"), 0.0) for _ in range(count)]
    pool = ReportedTests(reported, {"checkpoint_1"})
    assert all(pool.take("checkpoint_1", "test_x", "passed") for _ in range(count))
    assert pool.take("checkpoint_1", "test_x", "passed") is None
    assert CountedStatus.comparisons <= 5 * count


@pytest.mark.parametrize(
    ("keys", "fact"),
    [
        *(({name: None}, name) for name in ("tests", "pass_counts", "problem_name", "checkpoint_name")),
        ({"schema_version": 0}, "schema_version"),
        ({"schema_version": True}, "schema_version"),
        ({"problem_name": ""}, "problem_name"),
        ({"problem_name": "x" * (MAX_NAME_LENGTH + 1)}, "problem_name"),
        ({"tests": {"checkpoint_1": {}}}, "not a checkpoint and a group"),
        ({"tests": {"checkpoint_1-Cores": {}}}, "not a checkpoint and a group"),
        ({"tests": {"-Core": {}}}, "not a checkpoint and a group"),
        ({"tests": {"checkpoint_1-Core": []}}, "not an object"),
        ({"tests": {"checkpoint_1-Core": {"passed": {"a": 1}}}}, "not a list"),
        ({"tests": {"checkpoint_1-Core": {"passed": [1]}}}, "no id"),
        ({"tests": {"checkpoint_1-Core": {"passed": ["x" * (MAX_NAME_LENGTH + 1)]}}}, "no id"),
        ({"tests": {"checkpoint_1-Core": {"passed": [""] * (MAX_TESTS + 1)}}}, "more than"),
        ({"tests": {f"c{number}-Core": {} for number in range(MAX_KEYS + 1)}}, "more than"),
    ],
)  # fmt: skip
def test_a_file_of_neither_maker_is_unreadable_with_a_reason(folder, keys, fact):
    path = change(folder, **keys)
    with pytest.raises(ResultError, match=fact) as error:
        load_result(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_key_is_named(folder, name):
    document = json.loads((folder / "evaluation.json").read_text())
    del document[name]
    (folder / "evaluation.json").write_text(json.dumps(document))
    with pytest.raises(ResultError, match="tests" if name == "tests" else f"SlopCodeBench runner: {name} is missing"):
        load_result(folder / "evaluation.json")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"[" * 100_000, b'{"tests": ' * 100_000])
def test_damaged_files_are_unreadable(folder, content):
    (folder / "evaluation.json").write_bytes(content)
    with pytest.raises(ResultError):
        load_result(folder / "evaluation.json")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[" * 100_000, b"[]", b"{}", b'{"tests": {}}', b'{"tests": [1]}', b'{"tests": [{"nodeid": 1}]}',
        b'{"tests": [{"nodeid": "a::b", "outcome": "passed", "call": 1}]}', b'{"tests": [], "exitcode": "x"}',
        json.dumps({"tests": [{"nodeid": "x" * 10_000, "outcome": "passed"}]}).encode(),
    ],
)  # fmt: skip
def test_a_damaged_report_costs_messages_only(folder, content):
    before = load_result(folder / "evaluation.json")
    (folder / "evaluation/report.json").write_bytes(content)
    results = load_result(folder / "evaluation.json")
    assert [results.pass_counts, results.total_counts] == [before.pass_counts, before.total_counts]
    assert any(warning.startswith("evaluation/report.json ") for warning in results.warnings)


def test_links_are_not_followed(tmp_path, folder):
    (folder / "evaluation").rename(tmp_path / "elsewhere")
    (folder / "evaluation").symlink_to(tmp_path / "elsewhere")
    results = load_result(folder / "evaluation.json")
    assert "evaluation/report.json its folder is a link" in " ".join(results.warnings)
    (folder / "evaluation.json").rename(tmp_path / "theirs.json")
    (folder / "evaluation.json").symlink_to(tmp_path / "theirs.json")
    with pytest.raises(ResultError, match="cannot be read"):
        load_result(folder / "evaluation.json")


def test_hostile_texts_are_escaped_and_cut_and_markers_decide_nothing(folder):
    long = {"duration": -1, "outcome": "failed", "longrepr": "\x1b[2J\ud800" * 100_000}
    good = {"duration": 1e300, "outcome": "passed"}
    entry = {
        "nodeid": "tests/test_checkpoint_3.py::test_x[error]", "outcome": "failed", "setup": good, "call": long,
        "teardown": good, "keywords": ["quarantined", "error", "regression", 7, None, "x\x00"],
    }  # fmt: skip
    change(folder, "evaluation/report.json", tests=[entry])
    (test,) = load_result(change(folder, **listed(failed=["test_x[error]"]))).tests
    assert len(test.failure_message.encode()) <= 16 * 1024
    assert "\x1b" not in test.failure_message
    assert (test.markers, test.quarantined, test.group_type, test.duration_ms) == (["regression"], False, "Core", 0.0)


def test_an_evaluation_never_takes_a_result_of_the_other_maker_for_its_own(folder):
    """Neither as an earlier verdict that counts, nor as a file that it may replace."""
    index, path = ResultIndex.load(None), folder / "evaluation.json"
    facts = index.facts(path)
    assert facts is not None
    assert (facts.state, facts.is_verdict_on(None)) == ("not_evaluated", False)
    assert not index.is_current(path)
