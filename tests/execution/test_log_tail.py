import threading

import pytest

from slop_code.execution.log_tail import follow_file

PATIENCE_S = 100


class Told:
    def __init__(self):
        self.data, self.news = b"", threading.Condition()

    def __call__(self, data):
        with self.news:
            self.data += data
            self.news.notify_all()

    def within_time(self, data):
        with self.news:
            return self.news.wait_for(lambda: self.data == data, PATIENCE_S)


def test_what_comes_is_told_while_it_comes(tmp_path):
    told, log = Told(), tmp_path / "log"
    with follow_file(log, told):
        with log.open("wb", buffering=0) as file:
            file.write(b"one\n")
            assert told.within_time(b"one\n")
            file.write(b"two\n")
            assert told.within_time(b"one\ntwo\n")
            file.write(b"end")
    assert told.data == b"one\ntwo\nend"


def test_a_file_that_is_there_only_in_the_end(tmp_path):
    told = Told()
    with follow_file(tmp_path / "log", told):
        (tmp_path / "log").write_bytes(b"all")
    assert told.data == b"all"


def test_no_file_and_nobody_who_listens(tmp_path):
    told = Told()
    with follow_file(tmp_path / "log", told):
        pass
    assert told.data == b""
    threads = threading.active_count()
    with follow_file(tmp_path / "log", None):
        assert threading.active_count() == threads


def test_a_link_is_not_followed(tmp_path):
    told = Told()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "log").symlink_to(tmp_path / "secret")
    with follow_file(tmp_path / "log", told):
        pass
    assert told.data == b""


def test_an_error_in_the_block_is_the_callers(tmp_path):
    with pytest.raises(ValueError, match="mine"), follow_file(tmp_path / "log", Told()):
        raise ValueError("mine")
