import sys
import time
import unittest

import pytest


def test_core():
    pass


def test_wrong():
    assert {"answer": 41} == {"answer": 42}


@pytest.mark.functionality
class TestGroup:
    @pytest.mark.error
    @pytest.mark.parametrize("value", ["plain", "a::b.py::c", "\x1b[31m", float("nan")])
    def test_each(self, value):
        assert value != "plain"

    @pytest.mark.slow
    def test_custom(self):
        pass


@pytest.mark.regression
def test_marked_regression():
    pass


@pytest.mark.skip(reason="not today")
def test_skipped():
    pass


def test_skips_itself():
    pytest.skip("not here")


@pytest.mark.xfail(reason="known")
def test_xfailed():
    assert False


@pytest.mark.xfail(run=False, reason="never run")
def test_xfail_not_run():
    pass


@pytest.mark.xfail(reason="known")
def test_xpassed():
    pass


@pytest.mark.xfail(strict=True, reason="known")
def test_xpassed_strict():
    pass


def test_setup_error(broken):
    pass


def test_teardown_error(broken_end):
    pass


def test_fails_and_teardown_error(broken_end):
    assert False


def test_subtests(subtests):
    for number in range(2):
        with subtests.test(number=number):
            assert number < 2


def test_subtest_fails_first(subtests):
    for number in range(2):
        with subtests.test(number=number):
            assert number > 0


class TestCase(unittest.TestCase):
    def test_parts(self):
        for number in range(2):
            with self.subTest(number=number):
                self.assertGreater(number, 0)


@pytest.mark.timeout(0.2)
def test_hangs():
    time.sleep(30)


def test_hostile_output():
    sys.stdout.buffer.write(b"\xff\xfe\x00\x1b[2J")
    raise AssertionError("\x1b[2J \ud800 \x00 end")
