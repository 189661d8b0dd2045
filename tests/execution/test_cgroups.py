"""Control groups: those of killed evaluators are removed, those of living ones stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from slop_code.execution.bubblewrap.cgroups import PREFIX, ROOT, control_groups

pytestmark = pytest.mark.e2e

PATIENCE_S = 600
HOLDER = """
import sys
from slop_code.execution.bubblewrap.cgroups import control_groups
with control_groups(1 << 30, 100) as groups:
    print(*groups, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder():
    """An evaluator in a process namespace of its own, with its groups; it ends at the end of its input."""
    with control_groups(1 << 30, 100) as groups:
        if not groups:
            pytest.skip("no control groups can be made here")
    argv = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", HOLDER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()
        process.kill()


def make_and_remove_groups():
    with control_groups(1 << 30, 100) as groups:
        assert groups


def test_the_groups_of_an_evaluator_in_another_process_namespace_stay(holder):
    _, groups = holder
    assert groups
    make_and_remove_groups()
    assert all(map(os.path.exists, groups))


def test_the_groups_of_a_killed_evaluator_are_removed(holder):
    process, groups = holder
    process.kill()
    deadline = time.monotonic() + PATIENCE_S
    while any(map(os.path.exists, groups)):
        assert time.monotonic() < deadline
        make_and_remove_groups()


def test_nothing_is_left_of_our_own():
    make_and_remove_groups()
    assert list(ROOT.glob(f"**/{PREFIX}{os.getpid()}-*")) == []
