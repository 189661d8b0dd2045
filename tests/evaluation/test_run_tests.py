import threading

import pytest

from slop_code.evaluation.result_files.evidence_files import EVIDENCE_FILES, remove_evidence
from slop_code.evaluation.run_tests import run_concurrently
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope, wait_for


def test_concurrent_actions_give_their_values_in_order():
    both = threading.Barrier(2)
    assert run_concurrently([lambda: (both.wait(20), 1)[1], lambda: (both.wait(20), 2)[1]]) == [1, 2]


@pytest.fixture
def waits():
    """Waits until it is stopped, which is noted in `ended`."""

    def wait():
        try:
            wait_for(None, 20)
        except EvaluationCancelledError:
            wait.ended.append("stopped")
            raise

    wait.ended = []
    return wait


def test_an_error_cancels_the_others(waits):
    def breaks():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_concurrently([breaks, waits])
    assert waits.ended == ["stopped"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, EvaluationCancelledError])
def test_an_interrupt_of_the_wait_cancels_all(waits, interrupt, monkeypatch):
    def broken_off(_descriptor, _seconds):
        raise interrupt

    monkeypatch.setattr("slop_code.evaluation.run_tests.wait_for", broken_off)
    with pytest.raises(interrupt):
        run_concurrently([waits, waits])
    assert waits.ended == ["stopped"] * 2


def test_a_cancellation_from_outside_reaches_all(waits):
    token = CancelToken()
    both = threading.Barrier(2, action=token.cancel)

    def action():
        both.wait(20)
        waits()

    with cancel_scope(token), pytest.raises(EvaluationCancelledError):
        run_concurrently([action, action])
    assert waits.ended == ["stopped"] * 2
    token.close()


def test_evidence_of_an_earlier_evaluation_is_removed(tmp_path):
    top = tmp_path / ".scbench"
    for folder in (top, top / "1", top / "12", top / "1x"):
        folder.mkdir(parents=True)
        for name in EVIDENCE_FILES:
            (folder / name).touch()
    (top / "12" / "mine").touch()
    remove_evidence(tmp_path)
    left = sorted(str(path.relative_to(top)) for path in top.rglob("*"))
    assert left == ["12", "12/mine", "1x", *sorted(f"1x/{name}" for name in EVIDENCE_FILES)]
    remove_evidence(None)
