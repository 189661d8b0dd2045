"""Files that are passed on while they are written."""

import threading

import pytest

from slop_code.evaluation.reports.followed_files import CHUNK, FOLLOWER, follow_file

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
    with follow_file(tmp_path / "log", None):
        assert FOLLOWER not in [thread.name for thread in threading.enumerate()]


def test_a_link_is_not_followed(tmp_path):
    received = Received()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "log").symlink_to(tmp_path / "secret")
    with follow_file(tmp_path / "log", received):
        pass
    assert received.data == b""


def test_a_file_that_never_ends_is_read_in_portions(tmp_path):
    received = Received()
    (tmp_path / "log").write_bytes(b"x" * (5 * CHUNK))
    with follow_file(tmp_path / "log", received, interval=PATIENCE_S, chunks=2):
        pass
    assert len(received.data) == 2 * CHUNK


def test_an_error_in_the_block_is_raised(tmp_path):
    with pytest.raises(ValueError, match="mine"), follow_file(tmp_path / "log", Received()):
        raise ValueError("mine")
