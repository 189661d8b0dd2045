"""Whole runs from Python: folders and submissions, in a thread and in an event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from slop_code import RunControl, Submission, SubmissionOutcome, evaluate_run, evaluate_run_async
from slop_code.errors import UsageError
from slop_code.evaluation import CorrectnessResults, ProblemConfig

PATIENCE_S = 600


@pytest.fixture
def boxes(cache, need_bubblewrap):
    need_bubblewrap()
    return cache


@pytest.fixture
def submission(sums, environment_spec, tmp_path):
    """One of the first checkpoint. `environment` has keys over those of a plain one."""
    problem = ProblemConfig.from_yaml(sums.problems / sums.problem)

    def make(name, *, kind="good", first="", environment=None):
        path = tmp_path / name
        path.mkdir()
        (path / "main.py").write_text(sums.main(str(path), kind, first))
        spec = environment_spec(environment)
        return Submission(
            problem=problem,
            checkpoint=problem.checkpoint(1),
            environment=spec,
            path=path,
            output=tmp_path / "out" / name,
        )

    return make


@pytest.fixture
def four(submission, staying):
    """They stay as long as they may."""
    return [submission(f"stays {number}", first=staying.first) for number in range(4)]


async def collect(runs, **options):
    return [outcome async for outcome in evaluate_run_async(runs, **options)]


def test_folders_of_runs_are_evaluated(boxes, sums):
    folders = [sums.run("one"), sums.run("two")]
    found = list(evaluate_run(folders, problems_dir=sums.problems, workers=2))
    assert {outcome.submission.label for outcome in found} == {
        f"{run}/sums/{checkpoint}" for run in ("one", "two") for checkpoint in sums.checkpoints
    }
    assert {outcome.source for outcome in found} == {"evaluated"}
    assert all(outcome.facts.passed["all-cases"] for outcome in found)
    assert all((folder / "summary.json").exists() for folder in folders)
    again = list(evaluate_run(folders[0], problems_dir=str(sums.problems)))
    assert [outcome.source for outcome in again] == ["up_to_date"] * 3


def test_submissions_without_a_run_are_evaluated(boxes, submission):
    given = [submission("good"), submission("wrong", kind="wrong")]
    found = {outcome.submission.path.name: outcome.facts for outcome in evaluate_run(given, workers=2)}
    assert {name: (facts.state, sum(facts.pass_counts.values())) for name, facts in found.items()} == {
        "good": ("evaluated", 2),
        "wrong": ("evaluated", 1),
    }
    result = CorrectnessResults.load(given[1].output / "evaluation.json")
    assert [test.status for test in result.tests] == ["failed", "passed"]


def test_closed_in_the_middle(boxes, four, staying):
    control, running = RunControl(), []

    def stop():
        try:
            running.extend(staying.arrived(2))
        finally:
            control.stop()

    watcher = threading.Thread(target=stop)
    watcher.start()
    found = list(evaluate_run(four, workers=2, control=control))
    watcher.join()
    assert (found, len(running), staying.alive()) == ([], 2, [])


def test_two_calls_in_one_event_loop_have_their_own_results(boxes, submission):
    one, two = [submission("a")], [submission("b", kind="wrong")]

    async def both():
        return await asyncio.gather(collect(one, workers=1), collect(two, workers=1))

    found = asyncio.run(both())
    assert [{outcome.submission.path.name for outcome in outcomes} for outcomes in found] == [{"a"}, {"b"}]
    assert [all(outcome.facts.passed["all-cases"] for outcome in outcomes) for outcomes in found] == [True, False]


@pytest.mark.parametrize("how", ["cancelled", "closed"])
def test_ended_in_the_middle(boxes, four, staying, submission, how):
    """When whoever waits is told of the end, the boxes are gone."""
    first = submission("quick")

    async def main():
        outcomes = evaluate_run_async([first, *four], workers=2)
        assert isinstance(await anext(outcomes), SubmissionOutcome)
        waiting = asyncio.create_task(anext(outcomes)) if how == "cancelled" else None
        await asyncio.to_thread(staying.arrived, 2)
        if waiting is not None:
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            await outcomes.aclose()
        return [thread.name for thread in threading.enumerate()]

    threads = asyncio.run(main())
    assert [name for name in threads if name.startswith(("job", "slop-code run"))] == []
    assert staying.alive() == []


@pytest.mark.long
def test_the_example_of_a_training_loop(boxes):
    example = Path(__file__).parents[2] / "examples/score_many.py"
    argv = [sys.executable, example, "--count", "6", "--workers", "2"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:7] == [
        "right          1 with 1.0",
        "no negatives   1 with 0.75",
        "no errors      1 with 0.75",
        "nothing        1 with 0.0",
        "no Python      1 with 0.0",
        "no package     1 with 0.0",
        "6 rewards, 0 without a verdict, mean 0.417",
    ]


def test_wrong_arguments_raise_usage_errors(boxes, sums):
    with pytest.raises(UsageError, match="no-such-run"):
        asyncio.run(collect(Path("no-such-run"), problems_dir=sums.problems))
    with pytest.raises(UsageError, match="no-such-environment"):
        list(evaluate_run(sums.run("run"), environment="no-such-environment"))
