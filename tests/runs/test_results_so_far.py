"""Checkpoints of an evaluation that goes on, without any evaluation."""

import pytest

from slop_code.execution.cache import Cache
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.results_so_far import results_so_far, running_texts, stored_results
from slop_code.runs.run_evaluation import RunSettings, open_runs


@pytest.fixture
def evaluation(world):
    """Of three checkpoints, the first is up to date, and the second has an earlier result of another submission."""
    world.problem()
    world.run(snapshots={"words": ["a", "b", "c"], "unknown": ["d"]})
    (run,) = world.discover()
    world.finish_all(run.submissions[:2])
    world.write({"monday/words/checkpoint_2/snapshot/main.py": "changed"})
    with open_runs(world.discover(), Cache.at(world.folder / "cache"), RunSettings()) as opened:
        yield opened


def shown(runs):
    return [(entry.line.checkpoint, entry.line.state, entry.line.reason) for run in runs for entry in run.entries()]


def test_what_is_not_evaluated_yet_says_so_until_it_is(evaluation, world):
    unknown = next(line for line in shown(results_so_far(evaluation)) if "no such problem" in (line[2] or ""))
    assert shown(results_so_far(evaluation)) == [
        unknown,
        ("checkpoint_1", "evaluated", None),
        ("checkpoint_2", "not_evaluated", "not evaluated yet"),
        ("checkpoint_3", "not_evaluated", "not evaluated yet"),
    ]
    second, third = evaluation.runs[0].submissions[1:]
    world.finish(second, "-")
    evaluation.facts[second.key] = CheckpointFacts.of(world.results(second, "-"))
    evaluation.facts[third.key] = CheckpointFacts.no_verdict("no space", state="infrastructure_failure")
    entries = [entry for run in results_so_far(evaluation) for entry in run.entries()][1:]
    assert [(entry.line.state, entry.line.reason) for entry in entries] == [
        ("evaluated", None),
        ("evaluated", None),
        ("infrastructure_failure", "no space"),
    ]
    assert [entry.results is not None for entry in entries] == [True, True, False]
    assert entries[1].line.regressions.introduced == 1


def test_an_old_summary_does_not_hide_a_new_result(evaluation, world):
    evaluation.conclude()
    third = evaluation.runs[0].submissions[2]
    world.finish(third)
    evaluation.facts[third.key] = CheckpointFacts.of(world.results(third))
    assert shown(results_so_far(evaluation))[-1] == ("checkpoint_3", "evaluated", None)
    assert shown(stored_results(evaluation.runs))[-1][1] == "not_evaluated"
    evaluation.conclude()
    assert shown(stored_results(evaluation.runs))[-1] == ("checkpoint_3", "evaluated", None)


def test_the_tests_of_a_running_checkpoint_are_counted_until_it_is_finished(evaluation, world):
    second, third = evaluation.runs[0].submissions[1:]

    def run_tests(submission, **counts):
        location = str(submission.path.resolve()), submission.problem.name, submission.checkpoint.name
        evaluation.note_tests_done(ProgressEvent(ProgressKind.TESTS_DONE, *location, total=9, **counts))

    run_tests(second)
    run_tests(third, count=4, passed=3, failed=1)
    assert shown(results_so_far(evaluation))[-2:] == [
        ("checkpoint_2", "not_evaluated", "running: 9 tests"),
        ("checkpoint_3", "not_evaluated", "running: 4 of 9 tests done, 1 failed"),
    ]
    texts = running_texts(results_so_far(evaluation))
    assert [text.rpartition("/")[2] for text in texts] == [
        "checkpoint_2 9 tests",
        "checkpoint_3 4 of 9 tests done, 1 failed",
    ]
    world.finish(third)
    evaluation.facts[third.key] = CheckpointFacts.of(world.results(third))
    assert shown(results_so_far(evaluation))[-1] == ("checkpoint_3", "evaluated", None)
    assert len(running_texts(results_so_far(evaluation))) == 1
