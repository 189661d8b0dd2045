"""Reasons of checkpoints that did not pass, from their stored results."""

from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.failures.checkpoint_reasons import MAX_READ_RESULTS, checkpoint_reasons
from slop_code.runs.checkpoint_lines import CheckpointLine
from tests.factories import cases
from tests.reporting.html_runs import store


def line(number, **facts):
    given = {"run": "run", "state": "evaluated", "passed": {PassPolicy.ALL_CASES: False}, **facts}
    return CheckpointLine(problem="words", checkpoint=f"checkpoint_{number}", order=number, **given)


def reasons(folder, lines):
    return checkpoint_reasons(
        lines, PassPolicy.ALL_CASES, {each.label: folder / "words" / each.checkpoint for each in lines}
    )


def test_only_checkpoints_that_did_not_pass_have_a_reason(tmp_path):
    store(tmp_path, [cases("+-")] * 3)
    lines = [line(1), line(2, passed={PassPolicy.ALL_CASES: True}), line(3, state="infrastructure_failure"), line(4)]
    (tmp_path / "words/checkpoint_4").mkdir()
    (tmp_path / "words/checkpoint_4/evaluation.json").write_text("{}")
    found = reasons(tmp_path, lines)
    assert list(found) == [lines[0].label]
    assert found[lines[0].label].startswith("1 test: ")


def test_more_checkpoints_with_one_reason_have_it_than_reasons_are_shown(tmp_path):
    store(tmp_path, [cases("-")] * 30)
    lines = [line(number) for number in range(1, 31)]
    found = reasons(tmp_path, lines)
    assert (len(found), len(set(found.values()))) == (30, 1)


def test_results_are_read_up_to_a_number(tmp_path):
    store(tmp_path, [cases("-")])
    lines = [line(1, run=f"run_{number}") for number in range(MAX_READ_RESULTS + 3)]
    assert len(reasons(tmp_path, lines)) == MAX_READ_RESULTS
