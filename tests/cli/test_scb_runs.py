"""A run that the SlopCodeBench runner evaluated, through every command that reads results."""

import csv
import json
import shutil

import pytest

from slop_code.reporting.html.run_data import report_data
from slop_code.runs.read_results import read_runs
from slop_code.runs.scb.scb_evaluation import FACTS_NOT_RECORDED
from slop_code.verification.scb_result_check import NO_EVIDENCE
from tests.scb_run import PROBLEMS, write_scb_run

pytestmark = pytest.mark.e2e

HOSTILE = "\x1b]0;owned\x07\r\u202e"
LABELS = [f"{item.name}/checkpoint_{number + 1}" for item in PROBLEMS for number in range(len(item.checkpoints))]


@pytest.fixture
def theirs(tmp_path):
    return write_scb_run(tmp_path / "theirs")


@pytest.fixture
def ours(theirs, tmp_path):
    """The same run as an evaluation here would leave it."""
    ours = tmp_path / "ours"
    for entry in read_runs([theirs])[0].entries():
        results = entry.results.model_copy(update={"evidence": "json-report", "warnings": []})
        results.save(ours / entry.line.problem / entry.line.checkpoint / "evaluation.json")
    return ours


def entries(folder):
    return list(read_runs([folder])[0].entries())


def change_lines(folder, edit):
    path = folder / "checkpoint_results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in edit(lines)))


def change(path, **keys):
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def test_show_says_what_is_not_recorded_and_what_the_agent_used(theirs, slop_code):
    status, out, _ = slop_code("show", theirs / "ledger/checkpoint_3")
    assert status == 0
    assert out.splitlines()[:8] == [
        "ledger checkpoint_3",
        "  core: 0/1",
        "  error: 0/1",
        "  regression: 2/5",
        "by: the SlopCodeBench runner; versions not recorded",
        "of: not recorded",
        "isolation: not recorded; tests read from its files; 4.5 s",
        "agent: example-model, example_agent, version 2.0.51, thinking high, prompt configs/prompts/just-solve.jinja, "
        "from example; "
        "cost $0.81, 2.7k output tokens, 3 min 30 s",
    ]
    assert "ERROR Error test_checkpoint_3.py::test_audits: assert 'wrong" in out
    assert f"warning: {FACTS_NOT_RECORDED}" in out
    _, test, _ = slop_code("show", theirs / "ledger/checkpoint_3", "test_closes")
    assert "assert 'wrong" in test
    assert "rerun" not in test


def test_show_takes_the_agents_work_from_the_lines_where_no_other_file_has_it(theirs, slop_code):
    (theirs / "ledger/checkpoint_3/inference_result.json").unlink()
    _, out, _ = slop_code("show", theirs / "ledger/checkpoint_3")
    assert "; cost $0.81, 2.7k output tokens, 3 min 30 s" in out
    (theirs / "checkpoint_results.jsonl").unlink()
    _, out, _ = slop_code("show", theirs / "ledger/checkpoint_3")
    assert "from example\n" in out


def test_show_escapes_what_the_files_say(theirs, slop_code):
    folder = theirs / "ledger/checkpoint_3"
    tests = {f"{HOSTILE}-Core": {"passed": [], "failed": [f"test_{HOSTILE}"], "skipped": []}}
    change(folder / "evaluation.json", problem_name=HOSTILE, tests=tests)
    (theirs / "config.yaml").write_text(json.dumps({"model": {"name": HOSTILE}, "prompt": HOSTILE}))
    for arguments in ((), ("-v",), ("--json",)):
        status, out, _ = slop_code("show", folder, *arguments)
        assert status == 0
        assert not set(HOSTILE) & set(out.replace("\n", "")) - set("]0;owned")


def test_verify_cannot_prove_such_a_result_and_says_what_it_checked(theirs, slop_code):
    status, out, _ = slop_code("verify", theirs)
    assert status == 2
    assert out.count("its counts follow from its tests, but there is no evidence to grade again") == len(LABELS)
    assert out.splitlines()[-1] == f"0 of {len(LABELS)} results verified"


@pytest.mark.parametrize(
    ("keys", "finding"),
    [
        ({"pass_counts": {"Core": 1, "Regression": 2}}, "pass_counts.Core: 1, but 0 follows from its tests"),
        ({"total_counts": {"Core": 1, "Regression": 5, "Error": 1}}, "total_counts.Regression: 5, but 4 follows"),
        ({"pass_counts": {"Core": False, "Regression": 2}}, "pass_counts.Core: false, but 0"),
        ({"pytest_exit_code": 0}, "pytest_exit_code: 0, but 1 follows from its tests"),
    ],
)
def test_verify_finds_counts_that_do_not_follow_from_the_tests(theirs, slop_code, keys, finding):
    change(theirs / "ledger/checkpoint_3/evaluation.json", **keys)
    status, out, _ = slop_code("verify", theirs / "ledger/checkpoint_3")
    assert status == 1
    assert finding in out
    assert f"not checked: {NO_EVIDENCE}" in out


def test_verify_finds_files_that_contradict_each_other(theirs, slop_code):
    path = theirs / "ledger/checkpoint_3/evaluation/report.json"
    path.write_text(path.read_text().replace('"failed"', '"passed"'))
    status, out, _ = slop_code("verify", theirs / "ledger/checkpoint_3")
    assert status == 1
    assert "test_checkpoint_1.py::test_books: failed in evaluation.json, but passed in report.json" in out


def test_rerun_says_that_the_inputs_are_not_recorded(theirs, slop_code):
    status, _, err = slop_code("rerun", theirs / "ledger/checkpoint_3")
    assert status == 2
    assert "evaluated by the SlopCodeBench runner, so its inputs are not recorded; evaluate its run" in err


@pytest.mark.parametrize("prefix", ["", "tests/", ".evaluation_tests/"])
def test_compare_matches_their_tests_with_ours(tmp_path, ours, slop_code, prefix):
    theirs = write_scb_run(tmp_path / "again", prefix=prefix)
    status, out, _ = slop_code("compare", theirs, ours)
    assert status == 0
    assert "warning: again: evaluated by the SlopCodeBench runner; submissions, tests, environment and" in out
    assert out.splitlines()[-1] == "ours passes as many checkpoints as again (all-cases): no test differs"


def test_compare_names_the_tests_that_differ(theirs, ours, slop_code, tmp_path):
    path = theirs / "calendar/checkpoint_2/evaluation.json"
    tests = json.loads(path.read_text())["tests"]
    tests["checkpoint_2-Core"] = {"passed": [], "failed": ["test_moves"], "skipped": []}
    change(path, tests=tests, pytest_exit_code=1)
    change(path.parent / "evaluation/report.json", exitcode=1)
    page = tmp_path / "page.html"
    status, out, _ = slop_code("compare", theirs, ours, "-o", page)
    assert status == 0
    assert "checkpoint calendar/checkpoint_2: NOT PASSED -> PASSED" in out
    assert "calendar/checkpoint_2 test_checkpoint_2.py::test_moves" in out
    assert page.exists()
    status, _, _ = slop_code("compare", ours, theirs)
    assert status == 1


@pytest.mark.parametrize("name", ["junit", "ctrf", "csv", "markdown"])
def test_every_export_has_their_tests(theirs, slop_code, tmp_path, name):
    out = tmp_path / "exported"
    status, _, _ = slop_code("export", theirs, "--format", name, "-o", out)
    text = out.read_text()
    assert status == 0
    assert "test_audits" in text
    if name == "csv":
        rows = list(csv.DictReader(text.splitlines()))
        assert {row["slop_code"] + row["evaluation_version"] + row["tests_digest"] for row in rows} == {""}
        assert {row["file"] for row in rows} == {f"test_checkpoint_{number}.py" for number in (1, 2, 3)}
    assert name == "markdown" or "not recorded" not in text.replace(FACTS_NOT_RECORDED, "")


def test_the_report_has_the_agent_and_says_what_is_not_recorded(theirs, slop_code, tmp_path):
    status, _, _ = slop_code("report", theirs, "-o", tmp_path / "report.html")
    assert status == 0
    data, _ = report_data(read_runs([theirs]), ["all-cases"])
    (shown,) = data["runs"]
    assert shown["rates"].startswith("rates: strict 2 of 7 solved (mean ")
    assert shown["agent"].startswith("example-model, example_agent, version 2.0.51, ")
    assert shown["agent"].endswith("; cost $3.46, 10.8k output tokens, 15 min 30 s")
    checkpoint = shown["problems"][1]["checkpoints"][2]
    assert checkpoint["agent"] == "cost $0.81, 2.7k output tokens, 3 min 30 s"
    assert checkpoint["not_recorded"]
    assert checkpoint["warnings"] == [FACTS_NOT_RECORDED]


def test_a_run_has_its_checkpoints_in_order_with_verdicts_and_changes(theirs):
    found = entries(theirs)
    assert [f"{entry.line.problem}/{entry.line.checkpoint}" for entry in found] == LABELS
    assert [entry.line.order for entry in found] == [1, 2, 1, 2, 3, 1, 2]
    assert {entry.line.state for entry in found} == {"evaluated"}
    assert found[4].line.regressions.introduced == 1
    assert found[0].line.agent.cost == 0.33


def test_failed_and_missing_evaluations_are_checkpoints_without_a_verdict(tmp_path, slop_code):
    folder = write_scb_run(tmp_path / "run", failed=["ledger/checkpoint_1"], unevaluated=["ledger/checkpoint_3"])
    shutil.rmtree(folder / "router/checkpoint_2")
    states = {f"{entry.line.problem}/{entry.line.checkpoint}": entry.line for entry in entries(folder)}
    assert list(states) == LABELS
    assert states["ledger/checkpoint_1"].state == "infrastructure_failure"
    assert states["ledger/checkpoint_3"].state == states["router/checkpoint_2"].state == "not_evaluated"
    assert "no evaluation.json" in states["router/checkpoint_2"].reason
    assert states["router/checkpoint_2"].agent.output == states["ledger/checkpoint_3"].agent.output - 900
    status, _, _ = slop_code("report", folder, "-o", tmp_path / "report.html")
    assert status == 0


@pytest.mark.parametrize("first", [0, 1, 7])
def test_the_lines_decide_the_order_wherever_they_start_to_count(theirs, first):
    change_lines(theirs, lambda lines: [{**line, "idx": first + 3 - line["idx"]} for line in lines])
    names = [entry.line.checkpoint for entry in entries(theirs) if entry.line.problem == "ledger"]
    assert names == ["checkpoint_3", "checkpoint_2", "checkpoint_1"]


@pytest.mark.parametrize(
    "keys",
    [
        {"idx": -1}, {"idx": "1"}, {"idx": 10**400}, {"problem": None}, {"problem": ["x"]}, {"checkpoint": {}},
        {"state": None}, {"cost": "free", "steps": -1, "output": 1e300, "duration": "x"},
    ],
)  # fmt: skip
def test_values_of_another_type_in_a_line_are_not_used(theirs, keys):
    change_lines(theirs, lambda lines: [lines[0], *({**line, **keys} for line in lines[1:])])
    assert len(entries(theirs)) == len(LABELS)


def test_names_in_lines_lead_nowhere(theirs, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(theirs / "ledger/checkpoint_1/inference_result.json", outside)
    change_lines(theirs, lambda lines: [*lines, {"problem": "..", "checkpoint": "outside", "state": "ran", "idx": 1}])
    (entry,) = [entry for entry in entries(theirs) if entry.line.problem == ".."]
    assert (entry.line.state, entry.line.agent) == ("not_evaluated", None)


@pytest.mark.parametrize("junk", ["", "{", "[]\n", "[" * 100_000, "\udcff"])
def test_lines_that_cannot_be_read_are_left_out(theirs, junk):
    path = theirs / "checkpoint_results.jsonl"
    path.write_text(path.read_text() + junk + "\n", errors="surrogateescape")
    assert [f"{entry.line.problem}/{entry.line.checkpoint}" for entry in entries(theirs)] == LABELS


def test_damaged_lines_of_ours_stay_an_error(theirs, slop_code, tmp_path):
    (theirs / "checkpoint_results.jsonl").write_text('{"run": "x", "problem": "p", "checkpoint": "c", "order": 0}\n')
    status, _, err = slop_code("report", theirs, "-o", tmp_path / "report.html")
    assert status == 2
    assert "checkpoint_results.jsonl:1:" in err


@pytest.mark.e2e
@pytest.mark.long
def test_a_run_evaluated_here_agrees_with_theirs_test_by_test(tmp_path, cache, slop_code):
    theirs = write_scb_run(tmp_path / "theirs", problems_dir=tmp_path / "problems")
    ours = shutil.copytree(theirs, tmp_path / "ours", ignore=shutil.ignore_patterns("evaluation*", "*.jsonl"))
    status, out, err = slop_code("eval", ours, "--problems-dir", tmp_path / "problems")
    assert status == 1, err
    assert "agent: example-model, example_agent, version 2.0.51, " in out
    status, out, _ = slop_code("compare", theirs, ours)
    assert (status, out.splitlines()[-1]) == (
        0,
        "ours passes as many checkpoints as theirs (all-cases): no test differs",
    )
