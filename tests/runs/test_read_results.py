import json
import os
from pathlib import Path

import pytest

from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.policy import parse_policy
from slop_code.quality.quality_record import QUALITY_FILE
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, write_lines
from slop_code.runs.folders.result_folders import check_output, result_at, runs_below
from slop_code.runs.read_results import read_runs
from slop_code.runs.run_layout import LINES_FILE
from tests.factories import result
from tests.run_world import interrupt_replacement

HOME = "test_checkpoint_1.py"


def stored(checkpoint, statuses, *, problem="words", reason=None, arguments=(), checkpoints=(), deselected=0):
    return result(
        statuses,
        problem_name=problem,
        checkpoint_name=checkpoint,
        infrastructure_failure_reason=reason,
        deselected=deselected,
        provenance={"pytest_args": list(arguments), "checkpoints": list(checkpoints)},
    )


@pytest.fixture
def save(tmp_path):
    def save(folder, *given, **more):
        path = tmp_path / folder / "evaluation.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        stored(*given, **more).save(path)
        return path

    return save


def entries(*paths):
    return [entry for run in read_runs(list(paths)) for entry in run.entries()]


def line(checkpoint, *, order=1, **more):
    keys = {"run": "run", "problem": "words", "checkpoint": checkpoint, "order": order}
    return CheckpointLine(**{**dict(CheckpointFacts.no_verdict("why")), **keys, **more})


def test_results_in_their_order_with_what_changed(save, tmp_path):
    save("run/words/checkpoint_10", "checkpoint_10", {"a": "passed", "b": "failed"})
    save("run/words/checkpoint_2", "checkpoint_2", {"a": "passed", "b": "passed"})
    save("run/verbs/checkpoint_1", "checkpoint_1", {"a": "failed"}, problem="verbs")
    found = entries(tmp_path / "run")
    assert [entry.line.label for entry in found] == [
        "run/verbs/checkpoint_1",
        "run/words/checkpoint_2",
        "run/words/checkpoint_10",
    ]
    assert [entry.line.order for entry in found] == [1, 1, 2]
    assert [entry.folder for entry in found] == [tmp_path / "run" / entry.line.label[4:] for entry in found]
    assert found[0].line.regressions is None
    assert found[1].line.regressions is None
    assert (found[2].line.regressions.since, found[2].line.regressions.introduced) == ("checkpoint_2", 1)
    assert found[2].results.tests[1].status == "failed"


def test_checkpoints_without_a_result_come_from_the_summary(save, tmp_path):
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    write_lines(
        tmp_path / "run" / LINES_FILE,
        [
            line("checkpoint_1", order=1, evaluation="words/checkpoint_1/evaluation.json"),
            line("checkpoint_2", order=2, reason="no snapshot"),
            line("checkpoint_3", order=3, state="infrastructure_failure", reason="the disk was full"),
        ],
    )
    first, second, third = entries(tmp_path / "run")
    assert (first.line.state, first.results is not None) == ("evaluated", True)
    assert (second.line.state, second.line.reason, second.results) == ("not_evaluated", "no snapshot", None)
    assert (third.line.state, third.line.reason) == ("infrastructure_failure", "the disk was full")


def test_a_removed_result_has_no_verdict(save, tmp_path):
    path = save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    stored = line("checkpoint_1", evaluation="words/checkpoint_1/evaluation.json", state="evaluated", reason=None)
    stored = stored.model_copy(update={"passed": dict.fromkeys(stored.passed, True)})
    write_lines(tmp_path / "run" / LINES_FILE, [stored])
    assert entries(tmp_path / "run")[0].line.passes("all-cases")
    path.unlink()
    (entry,) = entries(tmp_path / "run")
    assert entry.line.state == "not_evaluated"
    assert not any(entry.line.passed.values())
    assert "gone" in entry.line.reason


@pytest.mark.parametrize("later", [False, True])
def test_a_result_that_a_failure_left_there_is_not_its_result(save, tmp_path, later):
    path = save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    write_lines(
        tmp_path / "run" / LINES_FILE, [line("checkpoint_1", state="infrastructure_failure", reason="no space")]
    )
    os.utime(path, (4e9, 4e9) if later else (1, 1))
    (entry,) = entries(tmp_path / "run")
    assert (entry.line.state, entry.results) == ("infrastructure_failure", None)
    assert entry.line.reason.startswith(f"no space; {path} is not its result: slop-code merge")


def test_a_result_that_was_not_looked_at_again_says_so_until_it_is_replaced(save, tmp_path):
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    [entry] = entries(tmp_path / "run")
    write_lines(tmp_path / "run" / LINES_FILE, [entry.line.model_copy(update={"not_looked_at_again": "no problem"})])
    assert entries(tmp_path / "run")[0].line.not_looked_at_again == "no problem"
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "failed"})
    assert entries(tmp_path / "run")[0].line.not_looked_at_again is None


def test_a_problem_folder_that_was_renamed_has_its_results_once(save, tmp_path):
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    write_lines(tmp_path / "run" / LINES_FILE, [entry.line for entry in entries(tmp_path / "run")])
    (tmp_path / "run/words").rename(tmp_path / "run/wrods")
    [entry] = entries(tmp_path / "run")
    assert (entry.line.state, entry.line.evaluation) == ("evaluated", "wrods/checkpoint_1/evaluation.json")


def test_the_order_is_the_problems_own(save, tmp_path):
    ordered = ["setup", "extend", "cleanup"]
    save("run/words/setup", "setup", {"a": "passed"}, checkpoints=ordered)
    save("run/words/extend", "extend", {"a": "passed"}, checkpoints=ordered)
    save("run/words/cleanup", "cleanup", {"a": "failed"}, checkpoints=ordered)
    found = [entry.line for entry in entries(tmp_path / "run")]
    assert [(one.checkpoint, one.order) for one in found] == [("setup", 1), ("extend", 2), ("cleanup", 3)]
    assert [one.regressions.introduced for one in found[1:]] == [0, 1]


def test_a_result_that_is_not_in_the_summary_gets_its_number(save, tmp_path):
    names = [f"checkpoint_{number}" for number in range(1, 5)]
    for name in names:
        save(f"run/words/{name}", name, {"a": "passed"}, checkpoints=names)
    known = [line(name, order=order, evaluation=f"words/{name}/evaluation.json")
             for order, name in enumerate(names, start=1) if order != 2]  # fmt: skip
    write_lines(tmp_path / "run" / LINES_FILE, known)
    found = [entry.line for entry in entries(tmp_path / "run")]
    assert [(one.checkpoint, one.order) for one in found] == list(zip(names, range(1, 5), strict=True))
    assert [one.regressions.since for one in found[1:]] == names[:3]


@pytest.mark.parametrize(
    "given", ["run", "run/words", "run/words/checkpoint_1", "run/words/checkpoint_1/evaluation.json"]
)
def test_runs_are_found_from_every_path_that_a_user_may_give(save, tmp_path, given):
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    (entry,) = entries(tmp_path / given)
    assert (entry.line.problem, entry.line.checkpoint, entry.line.state) == ("words", "checkpoint_1", "evaluated")


def test_a_file_of_the_submission_is_no_result(save, tmp_path):
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "failed"})
    save("run/words/checkpoint_1/snapshot", "checkpoint_1", {"a": "passed"})
    save("run/words/snapshot", "checkpoint_2", {"a": "passed"})
    (entry,) = entries(tmp_path / "run" / "words")
    assert entry.results.tests[0].status == "failed"


def test_a_damaged_result_is_no_verdict_and_costs_no_other(save, tmp_path):
    path = save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    save("run/words/checkpoint_2", "checkpoint_2", {"a": "passed"})
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "pass_counts": {}}))
    first, second = entries(tmp_path / "run")
    assert (first.line.state, first.line.problem, first.line.checkpoint) == ("not_evaluated", "words", "checkpoint_1")
    assert "pass_counts" in first.line.reason
    assert second.line.state == "evaluated"
    assert second.line.regressions is None


def test_an_evaluation_of_some_tests_is_no_verdict(save, tmp_path):
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"}, arguments=["-k", "a"])
    save("run/words/checkpoint_2", "checkpoint_2", {"a": "passed"}, deselected=3)
    found = [entry.line for entry in entries(tmp_path / "run")]
    assert [one.state for one in found] == ["not_evaluated"] * 2
    assert not any(one.passes(parse_policy("core == 1")) for one in found)


def test_two_results_for_one_checkpoint_are_a_mistake(save, tmp_path):
    save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    save("run/words/copy", "checkpoint_1", {"a": "failed"})
    with pytest.raises(ResultError, match=r"two results for words checkpoint_1: .*/checkpoint_1 and .*/copy;"):
        entries(tmp_path / "run")


def test_what_was_not_evaluated_is_told_without_a_summary_too(save, tmp_path):
    save("run/words/b", "b", {"a": "passed"}, checkpoints=["a", "b", "c"])
    save("run/nouns/one", "one", {"a": "passed"}, problem="the nouns")
    for name in ("words/c", "nouns/two", "verbs/one"):
        (tmp_path / "run" / name / "snapshot").mkdir(parents=True)
    found = [(one.problem, one.checkpoint, one.order, one.state) for one in (e.line for e in entries(tmp_path / "run"))]
    assert found == [
        ("the nouns", "one", 1, "evaluated"),
        ("the nouns", "two", 2, "not_evaluated"),
        ("verbs", "one", 1, "not_evaluated"),
        ("words", "a", 1, "not_evaluated"),
        ("words", "b", 2, "evaluated"),
        ("words", "c", 3, "not_evaluated"),
    ]
    assert entries(tmp_path / "run")[1].line.reason == f"no result; evaluate it: slop-code eval {tmp_path / 'run'}"
    assert [entry.line.checkpoint for entry in entries(tmp_path / "run/words/b")] == ["b"]  # that one was asked for


def test_a_folder_without_results_is_rejected(tmp_path):
    (tmp_path / "run" / "words").mkdir(parents=True)
    with pytest.raises(
        UsageError, match=r"no evaluation\.json there, and no run that has one; give the folder of an evaluated run"
    ):
        read_runs([tmp_path / "run"])
    with pytest.raises(UsageError, match="no such folder"):
        read_runs([tmp_path / "other"])


def test_a_folder_of_runs(save, tmp_path):
    for number in (10, 9):
        save(f"agent/run_{number}/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    (tmp_path / "agent" / "logs").mkdir()
    assert runs_below(tmp_path / "agent") == [tmp_path / "agent" / "run_9", tmp_path / "agent" / "run_10"]
    assert runs_below(tmp_path / "agent" / "run_9") == [tmp_path / "agent" / "run_9"]
    assert [run.name for run in read_runs([tmp_path / "agent"])] == ["run_9", "run_10"]


def test_outputs_that_would_replace_a_result_are_rejected(save, tmp_path):
    path = save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    inside = path.parent / "snapshot"
    inside.mkdir()
    (inside / "link.csv").symlink_to(tmp_path / "elsewhere.csv")
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for refused, words in [
        (path, "a file name of runs or of the results themselves"),
        (tmp_path / "run" / "summary.json", "a file name of runs or of the results themselves"),
        (path.parent / ".scbench" / "x.csv", "a file name of runs or of the results themselves"),
        (inside / "x.csv", "lies in a snapshot"),
        (inside / "link.csv", "lies in a snapshot|not a regular file"),
        (tmp_path / "link", "not a regular file"),
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path / "run", "a folder"),
        (Path("/"), "a folder"),
        (path / "x.csv", "is not a folder"),
        (path / "new/x.csv", "is not a folder"),
        (tmp_path / "link/x.csv", "is not a folder"),
        (tmp_path / ("x" * 300), "File name too long; give another path with -o"),
        (tmp_path / "nul\0", "null byte"),
    ]:
        with pytest.raises(UsageError, match=words):
            check_output(refused)
    check_output(tmp_path / "run" / "x.csv")
    check_output(tmp_path / "new" / "folders" / "x.csv")
    (tmp_path / "run" / "x.csv").write_text("old")
    check_output(tmp_path / "run" / "x.csv")


@pytest.mark.parametrize(
    "name",
    [
        "config.yaml",
        "environment.yaml",
        "problem_catalog.json",
        "result.json",
        "inference_result.json",
        "evaluation.json",
        "checkpoint_results.jsonl",
        "summary.json",
        "stop.json",
        QUALITY_FILE,
    ],
)
def test_the_file_names_of_a_run_are_rejected(tmp_path, name):
    with pytest.raises(UsageError, match="a file name of runs or of the results themselves"):
        check_output(tmp_path / name)


def test_one_result_by_its_file_or_folder(save, tmp_path):
    path = save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    other = path.rename(path.with_name("other.json"))
    assert result_at(other) == other
    path.symlink_to("gone.json")
    assert result_at(path.parent) == result_at(path) == path
    with pytest.raises(
        UsageError, match=r"a folder around results; .* shows all of them; give one of them:\n  .*words/checkpoint_1$"
    ):
        result_at(tmp_path / "run")
    with pytest.raises(UsageError, match="give a result that was evaluated"):
        result_at(tmp_path / "nowhere")


def test_an_interrupted_replacement_is_named_and_no_verdict(save, tmp_path):
    path = save("run/words/checkpoint_1", "checkpoint_1", {"a": "passed"})
    write_lines(tmp_path / "run" / LINES_FILE, [entry.line for entry in entries(tmp_path / "run")])
    interrupt_replacement(path.parent)
    [entry] = entries(tmp_path / "run")
    assert entry.line.state == "not_evaluated"
    assert entry.error == f"{path}: its replacement was interrupted; evaluate the run again to complete it"
