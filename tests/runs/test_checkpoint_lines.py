import json

import pytest

from slop_code.errors import ResultError
from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.report import Attempt, Digests
from slop_code.runs.checkpoint_lines import (
    MAX_SETUP_FAILURE_LENGTH,
    CheckpointFacts,
    CheckpointLine,
    Regressions,
    count_regressions,
    json_line,
    passed_by_test,
    read_lines,
    write_lines,
)
from tests.factories import DIGESTS, result

HOSTILE = "\x1b[31m [red] \ud800 \x00 \u2028 \x85 \r\n \U0001f600"


def line(checkpoint="checkpoint_1", order=1, *, run="monday", problem="words", **more):
    facts = {"state": "evaluated", "passed": dict.fromkeys(PassPolicy, True), **more}
    return CheckpointLine(run=run, problem=problem, checkpoint=checkpoint, order=order, **facts)


def test_facts_of_a_verdict():
    attempts = [Attempt(reason="no room", duration=1.0)]
    facts = CheckpointFacts.of(result({"test_a": "passed", "test_b": "failed"}, attempts=attempts))
    assert (facts.state, facts.reason, facts.attempts, facts.duration) == ("evaluated", None, 2, 1.5)
    assert facts.pass_counts == {"Core": 1, "Functionality": 0, "Error": 0, "Regression": 0}
    assert facts.total_counts == {"Core": 2, "Functionality": 0, "Error": 0, "Regression": 0}
    assert (facts.passes(PassPolicy.ANY), facts.passes(PassPolicy.ALL_CASES)) == (True, False)
    assert (facts.digests, facts.evaluation_version, facts.phases) == (Digests(**DIGESTS), "1-abc", {"tests": 1.0})


def test_facts_without_a_verdict():
    facts = CheckpointFacts.of(result({"test_a": "passed"}, infrastructure_failure_reason="killed"))
    assert (facts.state, facts.reason, any(facts.passed.values())) == ("infrastructure_failure", "killed", False)


def test_part_of_the_tests_is_no_result_of_a_run():
    facts = CheckpointFacts.of(result({"test_a": "passed"}, provenance={"pytest_args": ["-k", "a"]}))
    assert (facts.state, facts.reason) == ("not_evaluated", "evaluated with pytest arguments: -k a")
    assert facts.digests is None
    arguments = {"pytest_args": ["-k", "b"]}
    empty = result("", deselected=1, infrastructure_failure_reason="none selected", provenance=arguments)
    assert (CheckpointFacts.of(empty).state, CheckpointFacts.of(empty).reason) == ("not_evaluated", "none selected")


def test_a_failed_set_up_is_one_short_line():
    failed = result({"test_a": "failed"}, setup_failure=f"set-up failed: `x` exited with 2\n\n  error: {'y' * 999}\nz")
    expected = f"set-up failed: `x` exited with 2: error: {'y' * 999}"[:MAX_SETUP_FAILURE_LENGTH]
    assert CheckpointFacts.of(failed).setup_failure == expected


@pytest.mark.parametrize("state", ["infrastructure_failure", "not_evaluated"])
def test_only_a_verdict_passes(state):
    assert not any(line(state=state).passes(policy) for policy in PassPolicy)
    assert not CheckpointFacts(state="evaluated").passes(PassPolicy.ANY)


@pytest.mark.parametrize(
    ("earlier", "later", "introduced", "repaired"),
    [
        ({}, {}, 0, 0),
        ({"a": "passed"}, {"a": "passed"}, 0, 0),
        ({"a": "passed"}, {"a": "failed"}, 1, 0),
        ({"a": "passed"}, {"a": "skipped"}, 1, 0),
        ({"a": "passed"}, {"a": "error"}, 1, 0),
        ({"a": "failed"}, {"a": "error"}, 0, 0),
        ({"a": "failed"}, {"a": "passed"}, 0, 1),
        ({"a": "skipped"}, {"a": "passed"}, 0, 1),
        ({"a": "passed"}, {"b": "failed"}, 0, 0),
        ({"a": "passed", "b": "error", "c": "passed"}, {"b": "passed", "a": "failed", "d": "failed"}, 1, 1),
    ],
)
def test_regressions_are_counted_over_tests_that_ran_at_both_checkpoints(earlier, later, introduced, repaired):
    found = count_regressions(passed_by_test(result(earlier)), passed_by_test(result(later)), since="checkpoint_1")
    assert found == Regressions(since="checkpoint_1", introduced=introduced, repaired=repaired)


def test_tests_are_known_by_file_and_id():
    assert count_regressions({("a.py", "t"): True}, {("b.py", "t"): False}, since="x").introduced == 0


def test_lines_round_trip_in_their_order(tmp_path):
    path = tmp_path / "checkpoint_results.jsonl"
    change = Regressions(since="checkpoint_1", introduced=1, repaired=2)
    full = line("checkpoint_2", 2, regressions=change, evaluation="words/checkpoint_2/evaluation.json", digests=DIGESTS)
    ordered = [
        line("z", 1, run="friday", problem="words"),
        line("b", 1, problem="anagrams"),
        line("checkpoint_1", 1, phases={"tests": 1.25}),
        full,
        line("checkpoint_10", 10, state="not_evaluated", reason="stopped"),
    ]
    write_lines(path, reversed(ordered))
    assert read_lines(path) == ordered
    assert path.read_text().count("\n") == len(ordered)


def test_hostile_text_stays_in_its_line(tmp_path):
    path = tmp_path / "lines.jsonl"
    written = [line(checkpoint=HOSTILE, reason=HOSTILE, state="not_evaluated"), line("checkpoint_2", 2)]
    write_lines(path, written)
    assert read_lines(path) == written
    raw = path.read_text()
    assert raw.isascii()
    assert len(raw.splitlines()) == 2
    assert "\x1b" not in raw


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"state": "done"}, "state"),
        ({"order": "1"}, "order"),
        ({"order": 0}, "order"),
        ({"attempts": -1}, "attempts"),
        ({"duration": -0.5}, "duration"),
        ({"passed": {"some": True}}, "passed.some"),
        ({"passed": {"any": 1}}, "passed.any"),
        ({"regressions": {"since": "x", "introduced": 1}}, "regressions.repaired"),
        ({"color": "red"}, "color"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, change, mistake):
    path = tmp_path / "lines.jsonl"
    good = json_line(line())
    path.write_text(good + json.dumps({**json.loads(good), **change}) + "\n")
    with pytest.raises(ResultError) as caught:
        read_lines(path)
    assert str(caught.value).startswith(f"{path}:2: {mistake}")


@pytest.mark.parametrize("text", ["\n", "[]\n", '{"state": "evalu', "\xff\n"])
def test_a_text_that_is_no_line_is_rejected(tmp_path, text):
    path = tmp_path / "lines.jsonl"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ResultError, match=r"lines\.jsonl:1: "):
        read_lines(path)


def test_no_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(ResultError, match=r"gone\.jsonl: cannot be read"):
        read_lines(tmp_path / "gone.jsonl")
    write_lines(tmp_path / "empty.jsonl", [])
    assert read_lines(tmp_path / "empty.jsonl") == []


def test_warnings_stand_in_the_facts(world):
    world.problem(count=1)
    world.run(snapshots={"words": ["a"]})
    [run] = world.discover()
    facts = CheckpointFacts.of(world.results(run.submissions[0], warnings=["x", "y"]))
    assert facts.warnings == ["x", "y"]
