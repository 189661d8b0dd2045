"""The driver's processes: a parser that crashes or does not end decides about its own files alone."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
from pathlib import Path

import pytest

from slop_code.quality import scb_check_driver as driver

pytestmark = pytest.mark.e2e


def crash(files):
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def loop(files):
    while True:
        pass


def fail(files):
    raise ValueError("not one of scb-check")


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (lambda files: {"measured": list(map(str, files))}, {"measured": ["a.py"]}),
        (lambda _files: "it is nested too deeply", "it is nested too deeply"),
        (crash, f"scb-check ended with exit status -{signal.SIGSEGV:d}"),
        (loop, "it took more than 1 s of processor time"),
        (fail, "scb-check ended with exit status 1"),
    ],
)
def test_an_analysis_has_a_process_of_its_own(monkeypatch, attempt, expected):
    monkeypatch.setattr(driver, "_attempt", attempt)

    assert driver.analyse_apart([Path("a.py")], 1) == expected


def test_files_after_the_time_of_all_are_left_out(monkeypatch):
    seconds = iter([0, 0, 299, 301])
    monkeypatch.setattr(driver, "_used_seconds", lambda: next(seconds))
    monkeypatch.setattr(driver, "_attempt", lambda _files: "slow")

    failures = driver.failures_alone([Path("a.py"), Path("b.py"), Path("c.py")])

    assert list(failures.values()) == ["slow", "slow", "the files before it took too much processor time"]
