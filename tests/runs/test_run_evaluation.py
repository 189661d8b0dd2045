"""Lines and summaries of a run, from the facts of its checkpoints."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Future

import pytest

from slop_code import evaluate_run
from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.runs import discover
from slop_code.runs.checkpoint_lines import CheckpointFacts, read_lines
from slop_code.runs.jobs.job_records import JobResult, RunIssue
from slop_code.runs.jobs.plan import Shard
from slop_code.runs.jobs.run_control import RunControl
from slop_code.runs.result_index import ResultIndex
from slop_code.runs.run_evaluation import RunSettings, lines_of, open_runs
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.summary import RunSummary, summarise, write_summary
from tests.run_world import interrupt_replacement


@pytest.fixture
def finish(world):
    """`finish("++", None, "+-")`: the run with these tests passed and failed at each checkpoint, None for no result."""

    def make(*marks):
        world.problem(count=len(marks))
        world.run(snapshots={"words": [str(number) for number in range(len(marks))]})
        [run] = world.discover()
        for submission, mark in zip(run.submissions, marks, strict=True):
            if mark == "!":
                world.finish(submission, infrastructure_failure_reason="killed")
            elif mark is not None:
                world.finish(submission, mark)
        return run

    return make


def concluded(world, run, outcomes=None, **options):
    """As after a run in which nothing was evaluated but `outcomes`."""
    plan = world.plan([run], **options)
    found = {submission.key: facts for submission, facts in plan.up_to_date} | (outcomes or {})
    return lines_of(run, plan, found, ResultIndex.load(run.folder))


def test_a_line_for_each_checkpoint(world, finish):
    run = finish("++", "+-", "-+")
    first, second, third = concluded(world, run)
    assert [line.label for line in (first, second, third)] == [f"monday/words/checkpoint_{n}" for n in (1, 2, 3)]
    assert [line.order for line in (first, second, third)] == [1, 2, 3]
    assert second.evaluation == f"words/checkpoint_2/{RESULT_FILE}"
    assert (run.folder / second.evaluation).is_file()
    assert first.regressions is None
    assert (second.regressions.since, second.regressions.introduced, second.regressions.repaired) == (
        "checkpoint_1", 1, 0,
    )  # fmt: skip
    assert (third.regressions.since, third.regressions.introduced, third.regressions.repaired) == (
        "checkpoint_2", 1, 1,
    )  # fmt: skip
    assert (first.passed["all-cases"], second.passed["all-cases"]) == (True, False)


@pytest.mark.parametrize("gap", [None, "!"])
def test_regressions_are_since_the_nearest_verdict(world, finish, gap):
    first, second, third = concluded(world, finish("++", gap, "--"))
    assert (first.regressions, second.regressions) == (None, None)
    assert second.state == "not_evaluated"
    assert not any(second.passed.values())
    assert (third.regressions.since, third.regressions.introduced) == ("checkpoint_1", 2)


def test_a_line_without_a_verdict_has_a_reason(world, finish):
    _, second, third = concluded(world, finish("+", None, "!"))
    assert (second.reason, second.evaluation) == ("not evaluated: no result yet", None)
    assert third.reason == "not evaluated: an infrastructure failure last time"
    assert third.evaluation is None, "the one that lies there is not what this line tells of"


def test_regressions_do_not_cross_problems(world, finish):
    run = finish("++")
    world.problem("ants", 1)
    world.run(snapshots={"ants": ["x"]})
    [run] = world.discover()
    for submission in run.submissions:
        world.finish(submission, "--" if submission.problem.name == "ants" else "++")
    assert [(line.problem, line.regressions) for line in concluded(world, run)] == [("ants", None), ("words", None)]


def test_an_infrastructure_failure_without_a_result_leaves_an_earlier_verdict(world, finish):
    run = finish("+", "+", "!")
    first, second, third = run.submissions
    failure = CheckpointFacts.no_verdict("node lost", state="infrastructure_failure", attempts=3)
    written = CheckpointFacts.of(world.results(second, infrastructure_failure_reason="killed"))
    world.finish(second, infrastructure_failure_reason="killed")
    lines = concluded(world, run, {first.key: failure, second.key: written, third.key: failure}, overwrite=True)
    assert [(line.state, line.reason, line.not_looked_at_again) for line in lines] == [
        ("evaluated", None, "infrastructure failure: node lost"),
        ("infrastructure_failure", "killed", None),
        ("infrastructure_failure", "node lost", None),
    ]
    paths = [f"words/checkpoint_{number}/{RESULT_FILE}" for number in (1, 2)]
    assert [line.evaluation for line in lines] == [*paths, None], "the third result has the facts of another failure"


def _missing_problem(world):
    (world.problems / "words").rename(world.problems / "moved")


def _unreadable_problem(world):
    (world.problems / "words/config.yaml").write_text("checkpoints: [")


def _unreadable_tests(world):
    shutil.rmtree(world.problems / "words/tests")


def _wrong_environment(world):
    world.write({"monday/environment.yaml": "type: nonsense"})


def _misnamed_folder(world):
    (world.folder / "monday/words").rename(world.folder / "monday/wrods")


def _misnamed_checkpoints(world):
    for number in (1, 2):
        (world.folder / f"monday/words/checkpoint_{number}").rename(world.folder / f"monday/words/part_{number}")


def _missing_snapshots(world):
    for number in (1, 2):
        shutil.rmtree(world.folder / f"monday/words/checkpoint_{number}/snapshot")


CANNOT_BE_EVALUATED = [
    (_missing_problem, "no such problem"),
    (_unreadable_problem, "config.yaml"),
    (_unreadable_tests, "tests"),
    (_wrong_environment, "environment.yaml"),
    (_misnamed_folder, "no such problem"),
    (_misnamed_checkpoints, "the problem has no such checkpoint"),
    (_missing_snapshots, "no snapshot"),
]


@pytest.mark.parametrize(("damage", "reason"), CANNOT_BE_EVALUATED)
def test_a_checkpoint_that_cannot_be_evaluated_keeps_its_last_result(world, finish, damage, reason):
    before = concluded(world, finish("++", "+-"))
    damage(world)
    [run] = world.discover()
    lines = concluded(world, run)
    changed = {"not_looked_at_again": None, "evaluation": None}
    assert [line.model_copy(update=changed) for line in lines] == [line.model_copy(update=changed) for line in before]
    assert all(reason in line.not_looked_at_again for line in lines)
    assert all((run.folder / line.evaluation).is_file() for line in lines)
    summary = summarise(lines, world.plan([run]).issues)
    assert summary.totals.checkpoints.not_looked_at_again == summary.totals.checkpoints.evaluated == 2
    assert [item.label for item in summary.not_looked_at_again] == [line.label for line in before]


def test_a_result_of_another_version_counts_until_there_is_a_new_one(world, finish):
    run = finish("+")
    world.finish(run.submissions[0], version="earlier")
    [line] = concluded(world, run)
    assert (line.state, line.not_looked_at_again) == ("evaluated", "slop-code evaluates differently now")


def test_an_earlier_result_is_no_verdict_on_another_submission(world, finish):
    finish("+", "+")
    world.write({"monday/words/checkpoint_1/snapshot/main.py": "changed"})
    [run] = world.discover()
    first, second = concluded(world, run)
    assert (first.state, first.reason) == ("not_evaluated", "not evaluated: the submission changed")
    _missing_problem(world)
    [run] = world.discover()
    states = {line.checkpoint: line.state for line in concluded(world, run)}
    assert states == {"checkpoint_1": "not_evaluated", "checkpoint_2": "evaluated"}
    assert second.not_looked_at_again is None


@pytest.mark.parametrize(("number", "expected"), [(1, ["1", "3"]), (2, ["2"])])
def test_a_shard_has_its_own_lines_alone(world, finish, number, expected):
    lines = concluded(world, finish("+", None, "+"), shard=Shard(number, 2))
    assert [line.checkpoint[-1] for line in lines] == expected
    assert {line.regressions for line in lines} == {None}, "it has not seen the checkpoints between"


def test_checkpoints_that_only_issues_name_have_lines(world, finish):
    """So that the summary follows from the lines."""
    finish("+", None, None)
    (world.problems / "words/tests/test_checkpoint_2.py").unlink()
    shutil.rmtree(world.folder / "monday/words/checkpoint_3/snapshot")
    world.write({f"monday/unknown/checkpoint_{number}/snapshot/main.py": "" for number in (10, 9)})
    [run] = world.discover()
    lines = concluded(world, run)
    assert sorted((line.problem, line.order, line.checkpoint, line.state) for line in lines) == [
        ("unknown", 1, "checkpoint_9", "not_evaluated"), ("unknown", 2, "checkpoint_10", "not_evaluated"),
        ("words", 1, "checkpoint_1", "evaluated"), ("words", 2, "checkpoint_2", "not_evaluated"),
        ("words", 3, "checkpoint_3", "not_evaluated"),
    ]  # fmt: skip
    assert next(line.reason for line in lines if line.checkpoint == "checkpoint_3").endswith("no snapshot")
    assert not any(line.not_looked_at_again for line in lines)
    assert summarise(lines, []).totals == summarise(lines, world.plan([run]).issues).totals


def test_the_written_summary_is_read_back(world, finish):
    run = finish("++", "+-", None)
    lines = concluded(world, run)
    issues = [RunIssue("monday", "other", None, "no such problem")]
    summary = write_summary(world.folder / "new" / "deep", lines, issues)
    assert read_lines(world.folder / "new/deep" / LINES_FILE) == lines
    assert RunSummary.load(world.folder / "new/deep" / SUMMARY_FILE) == summary
    assert summary.totals.checkpoints.planned == 3
    assert [failure.label for failure in summary.issues] == ["monday/other"]


@pytest.mark.parametrize(("problems", "written"), [((), True), (("words",), False)])
def test_a_part_of_a_run_does_not_replace_its_summary(world, finish, problems, written):
    run = finish("+", "-")
    options = {"problems_dir": world.problems, "problems": problems, "cache": world.folder / "cache"}
    assert [outcome.source for outcome in evaluate_run(run.folder, **options)] == ["up_to_date", "up_to_date"]
    assert [(run.folder / name).exists() for name in (LINES_FILE, SUMMARY_FILE)] == [written, written]


@pytest.mark.parametrize("problem", ["there", "missing"])
def test_an_interrupted_replacement_is_completed_before_anything_is_planned(world, finish, problem):
    run = finish("+", "-")
    for submission in run.submissions:
        interrupt_replacement(submission.output)
    if problem == "missing":
        _missing_problem(world)
    with open_runs(world.discover(), Cache(world.folder / "cache"), RunSettings()) as evaluation:
        assert evaluation.plan.jobs == ()
        evaluation.conclude()
    lines = read_lines(run.folder / LINES_FILE)
    assert [(line.state, line.passed["all-cases"]) for line in lines] == [("evaluated", True), ("evaluated", False)]


def test_a_shard_leaves_the_folders_of_others_alone(world, finish):
    run = finish("+", "-")
    for submission in run.submissions:
        interrupt_replacement(submission.output)
    with open_runs([run], Cache(world.folder / "cache"), RunSettings(shard=Shard(2, 2))):
        pass
    assert [(submission.output / RESULT_FILE).exists() for submission in run.submissions] == [False, True]


class Elsewhere:
    """An executor whose machines have a Python that this one lacks."""

    slots = 2

    def __init__(self, world, submissions):
        self.world, self.targets = world, {submission.path: submission for submission in submissions}

    def submit(self, request):
        results = self.world.results(self.targets[request.submission], python="3.99.1")
        future = Future()
        future.set_result(JobResult(CheckpointFacts.of(results), self.world.archive(results)))
        return future


def test_a_run_on_a_cluster_needs_no_python_here(world):
    world.problem(count=2, requires_python=">=3.99")
    world.run(snapshots={"words": ["a", "b"]})
    for overwritten in ("", "the results are gone"):
        runs, settings = world.discover(), RunSettings(executor="ray")
        with open_runs(runs, Cache(world.folder / "cache"), settings) as evaluation:
            assert [job.cached for job in evaluation.plan.jobs] == [bool(overwritten)] * 2
            list(evaluation.events(Elsewhere(world, runs[0].submissions), RunControl()))
        for submission in runs[0].submissions:
            (submission.output / RESULT_FILE).unlink()


def test_the_release_of_the_problems_is_read_once(world, finish, monkeypatch):
    calls = []
    monkeypatch.setattr(discover, "catalog_warnings", lambda *given: calls.append(given) or ["another release"])
    with open_runs([finish("+")], Cache(world.folder / "cache"), RunSettings()) as evaluation:
        for _ in range(3):
            assert evaluation.conclude()[1].warnings == ["another release"]
    assert len(calls) == 1


def test_a_summary_that_cannot_be_written(world, finish):
    lines = concluded(world, finish("+"))
    (world.folder / "file").write_text("")
    (world.folder / "taken" / SUMMARY_FILE).mkdir(parents=True)
    for name in ("file", "taken"):
        with pytest.raises(InfrastructureError, match=rf"{name}: the summary cannot be written: .*is whole"):
            write_summary(world.folder / name, lines, [])
    assert [name for name in os.listdir(world.folder / "taken") if name.startswith(".")] == []
