import threading

import pytest

from slop_code.evaluation.evidence import EVIDENCE_FILES
from slop_code.evaluation.run_tests import follow_file, remove_evidence, run_concurrently
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope, wait_for

PATIENCE_S = 600


class Received:
    def __init__(self):
        self.data, self.changed = b"", threading.Condition()

    def __call__(self, data):
        with self.changed:
            self.data += data
            self.changed.notify_all()

    def within_time(self, data):
        with self.changed:
            return self.changed.wait_for(lambda: self.data == data, PATIENCE_S)


def test_appended_data_is_passed_on_at_once(tmp_path):
    received, log = Received(), tmp_path / "log"
    with follow_file(log, received):
        with log.open("wb", buffering=0) as file:
            file.write(b"one\n")
            assert received.within_time(b"one\n")
            file.write(b"two\n")
            assert received.within_time(b"one\ntwo\n")
            file.write(b"end")
    assert received.data == b"one\ntwo\nend"


def test_a_file_that_appears_late_is_passed_on_at_the_end(tmp_path):
    received = Received()
    with follow_file(tmp_path / "log", received):
        (tmp_path / "log").write_bytes(b"all")
    assert received.data == b"all"


def test_a_missing_file_or_callback_is_no_error(tmp_path):
    received = Received()
    with follow_file(tmp_path / "log", received):
        pass
    assert received.data == b""
    threads = threading.active_count()
    with follow_file(tmp_path / "log", None):
        assert threading.active_count() == threads


def test_a_link_is_not_followed(tmp_path):
    received = Received()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "log").symlink_to(tmp_path / "secret")
    with follow_file(tmp_path / "log", received):
        pass
    assert received.data == b""


def test_an_error_in_the_block_is_raised(tmp_path):
    with pytest.raises(ValueError, match="mine"), follow_file(tmp_path / "log", Received()):
        raise ValueError("mine")


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
