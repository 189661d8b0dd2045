"""A helper that this machine does not execute is an error with advice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.cli.doctor.doctor_checks import checks
from slop_code.errors import InfrastructureError
from slop_code.execution import helper as helper_module
from slop_code.execution.bubblewrap.bwrap_binary import forget_probes
from slop_code.execution.docker.engine import Engine
from slop_code.execution.helper import HelperError, helper_path
from slop_code.execution.helper.runnable_helper import runnable_helper
from slop_code.execution.process import succeeds
from slop_code.execution.sandbox import sandbox_for

pytestmark = pytest.mark.e2e

CANNOT = "the native helper cannot be executed: "
NOEXEC = """
mount -t tmpfs -o noexec tmpfs "$0" && cp "$1" "$0" || exit 77
exec "$2" -c "
import sys
from pathlib import Path
from slop_code.execution import helper
from slop_code.execution.helper.runnable_helper import runnable_helper
helper.__file__ = sys.argv[1]
runnable_helper()
" "$0/__init__.py"
"""


@pytest.fixture
def other_helper(tmp_path, monkeypatch):
    """A copy of the helper, which is used instead of it."""
    copy = Path(shutil.copy(helper_path(), tmp_path))
    monkeypatch.setattr(helper_module, "__file__", str(tmp_path / "__init__.py"))
    yield copy
    forget_probes()


def unexecutable(file):
    file.chmod(0o644)
    return f"this user may not execute it; run `chmod a+x {file}`"


def foreign(file):
    file.write_bytes(b"\x7fELF\x02\x01\x01".ljust(4096, b"\xff"))
    return "Exec format error; install the slop-code wheel"


def test_a_helper_that_runs_is_used(other_helper):
    assert runnable_helper() == other_helper


@pytest.mark.parametrize("damage", [unexecutable, foreign])
def test_a_helper_that_is_not_executed_is_an_error_with_advice(other_helper, damage):
    advice = damage(other_helper)
    with pytest.raises(HelperError) as raised:
        runnable_helper()
    assert f"{other_helper}: {CANNOT}{advice}" in str(raised.value)


def test_a_helper_that_ends_at_once_is_an_error(other_helper):
    other_helper.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(HelperError, match="ended with 3; install the slop-code wheel"):
        runnable_helper()


def test_a_file_system_without_programs_is_named(unshared, tmp_path):
    words = [str(tmp_path), str(helper_path()), sys.executable]
    done = subprocess.run([*unshared, "sh", "-c", NOEXEC, *words], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert f"{CANNOT}its file system is mounted with noexec; install slop-code on another one" in done.stderr


def test_doctor_reports_it_as_a_check(other_helper, tmp_path):
    advice = unexecutable(other_helper)
    results = {check.name: check for check in checks(Engine(str(tmp_path / "no-engine")))}
    assert not results["slopbox helper"].ok
    assert advice in results["slopbox helper"].advice
    assert "both boxes" not in results


@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_no_sandbox_of_this_machine_is_used(other_helper, environment_spec, empty_cache, sandbox):
    unexecutable(other_helper)
    with pytest.raises(HelperError, match=CANNOT):
        sandbox_for(environment_spec(sandbox=sandbox), empty_cache)


def test_a_quick_program_that_is_not_executed_is_no_traceback(other_helper):
    unexecutable(other_helper)
    with pytest.raises(InfrastructureError, match=r"cannot start .*: Permission denied"):
        succeeds([str(other_helper), "id"])
