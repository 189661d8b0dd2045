"""Repeated runs: a test that fails now and then is listed."""

from __future__ import annotations

import pytest

from tests.stability.flaky import main

TESTS = """
import os
from pathlib import Path

def test_steady():
    pass

def test_every_second_time():
    seen = Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError
"""


@pytest.mark.long
def test_a_test_that_fails_once_is_listed(tmp_path, capfd):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    arguments = [
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "-c",
        str(tmp_path / "pytest.ini"),
        str(tmp_path),
    ]
    assert main(["--times", "2", *arguments]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[-2:] == [
        "failed in 1 of 2 runs: test_some::test_every_second_time",
        "1 tests failed in 2 runs under load",
    ]


@pytest.mark.long
def test_a_run_that_pytest_does_not_finish_is_listed(tmp_path, capfd):
    assert main(["--times", "1", "--no-such-option"]) == 1
    assert "failed in 1 of 1 runs: pytest: exit status 4" in capfd.readouterr().out
