"""Control groups: those of killed evaluators are removed, those of living ones stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slop_code.execution.bubblewrap import probe_results
from slop_code.execution.bubblewrap.cgroups import (
    can_limit_cpus,
    control_groups,
    cpu_limit,
    reached_memory_limit,
)
from slop_code.execution.bubblewrap.delegation import DELEGATED, LEAF, delegated_group
from tests.process_checks import groups_of

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
def holder(need_unshare):
    """An evaluator with its groups, which ends at the end of its input; that of root has its own process namespace."""
    with control_groups(1 << 30, 100) as groups:
        if not groups:
            pytest.skip("no control groups can be made here")
    unshare = need_unshare("--pid", "--fork", "--kill-child") if os.geteuid() == 0 else []
    argv = [*unshare, sys.executable, "-c", HOLDER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        groups = process.stdout.readline().split()
        assert groups
        yield process, groups
        process.kill()


def make_and_remove_groups():
    with control_groups(1 << 30, 100) as groups:
        assert groups


def test_the_groups_of_another_evaluator_stay(holder):
    _, groups = holder
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
    assert groups_of(os.getpid()) == []


FORKS = """
import os, signal
try:
    for _ in range(30):
        if os.fork() == 0:
            signal.alarm(60)
            signal.pause()
except BlockingIOError:
    print("refused", flush=True)
os.killpg(0, signal.SIGKILL)
"""


def test_the_kernel_refuses_processes_beyond_the_limit(helper, caplog):
    caplog.set_level("INFO")
    with control_groups(1 << 30, 20) as groups:
        if not groups:
            pytest.skip("no control groups can be made here")
        argv = [helper, "join-cgroups", *(str(group / "cgroup.procs") for group in groups), "--", sys.executable]
        done = subprocess.run([*argv, "-c", FORKS], stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert done.stdout == "refused\n"
    assert "pids.events of the control group: max" in caplog.text


FILL = "kept = [bytes([1]) * (1 << 20) for _ in range(1024)]"


def counts_swap(groups):
    names = ("memory.memsw.limit_in_bytes", "memory.swap.max")
    return any((group / name).exists() for group in groups for name in names)


def has_swap():
    return len(Path("/proc/swaps").read_text().splitlines()) > 1


def test_the_kernel_ends_what_is_over_the_limits_on_memory_and_swap(helper):
    memory = 64 << 20
    with control_groups(memory, 100) as groups:
        if not groups:
            pytest.skip("no control groups can be made here")
        if has_swap() and not counts_swap(groups):
            pytest.skip("this kernel limits no swap")
        files = [str(group / "cgroup.procs") for group in groups]
        done = subprocess.run([helper, "join-cgroups", *files, "--", sys.executable, "-c", FILL])
        assert done.returncode == -signal.SIGKILL
        assert reached_memory_limit(groups)
        for group in groups:
            if (together := group / "memory.memsw.limit_in_bytes").exists():
                assert memory < int(together.read_text()) <= memory + (32 << 20)
            if (swap := group / "memory.swap.max").exists():
                assert swap.read_text() == "0\n"


BURN = "import time\nwhile time.process_time() < 0.2: pass"


def test_cpu_time_is_limited_where_there_is_a_group(helper, caplog):
    caplog.set_level("INFO")
    with control_groups(1 << 30, 100, cpus=0.05) as groups:
        if not groups or not can_limit_cpus():
            pytest.skip("no control groups of CPU time can be made here")
        assert cpu_limit(groups) == 0.05
        files = [str(group / "cgroup.procs") for group in groups]
        subprocess.run([helper, "join-cgroups", *files, "--", sys.executable, "-c", BURN], check=True)
    assert "cpu.stat of the control group: nr_throttled" in caplog.text


@pytest.mark.parametrize(("cpus", "expected"), [(1e9, os.cpu_count()), (1e-9, 0.01)])
def test_cpu_limits_that_the_kernel_refuses_are_the_nearest_that_it_takes(cpus, expected):
    with control_groups(1 << 30, 100, cpus=cpus) as groups:
        if not groups or not can_limit_cpus():
            pytest.skip("no control groups of CPU time can be made here")
        assert cpu_limit(groups) == expected


def test_no_limit_of_cpu_time_is_claimed_that_the_kernel_does_not_have(tmp_path):
    assert cpu_limit([]) is None
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert cpu_limit([tmp_path]) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert cpu_limit([tmp_path]) == 1.5


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Files like those of control groups, of which one group is delegated."""
    group = tmp_path / "user.slice/run-1.scope"
    group.mkdir(parents=True)
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (group / name).touch()
    try:
        os.setxattr(group, DELEGATED, b"1")
    except OSError:
        pytest.skip("the file system of temporary files has no attributes")
    return tmp_path, group


@pytest.mark.parametrize("inner", ["", f"/{LEAF}"])
def test_the_delegated_group_is_found_from_itself_and_from_its_leaf(tree, inner):
    root, group = tree
    assert delegated_group(root, f"1:name=systemd:/x\n0::/user.slice/run-1.scope{inner}\n") == group


@pytest.mark.parametrize("own", ["0::/user.slice\n", "0::/\n", "4:memory:/user.slice/run-1.scope\n", ""])
def test_a_group_that_is_not_marked_as_delegated_stays_systemds_own(tree, own):
    assert delegated_group(tree[0], own) is None


def test_a_group_that_was_delegated_to_somebody_else_is_not_used(tree):
    root, group = tree
    os.setxattr(group, DELEGATED, b"0")
    assert delegated_group(root, "0::/user.slice/run-1.scope\n") is None


@pytest.mark.parametrize("answer", ["yes", "no", ""])
def test_the_systemd_of_a_user_is_asked_for_groups_that_it_does_not_mark(tree, answer, tmp_path, monkeypatch):
    root, marked = tree
    group = marked.rename(marked.with_name(f"asked-{answer}.scope"))
    os.removexattr(group, DELEGATED)
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\n[ $1$6 = --user{group.name} ] && echo {answer}\n")
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert delegated_group(root, f"0::/user.slice/{group.name}\n") == (group if answer == "yes" else None)


def test_only_the_success_of_a_question_to_systemd_is_kept(tree, tmp_path, monkeypatch):
    root, marked = tree
    group = marked.rename(marked.with_name("silent-at-first.scope"))
    os.removexattr(group, DELEGATED)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(probe_results, "FAILURE_S", 0)
    results = []
    for script in ("exit 1", "echo yes", "exit 1"):
        (tmp_path / "systemctl").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "systemctl").chmod(0o755)
        results.append(delegated_group(root, f"0::/user.slice/{group.name}\n"))
    assert results == [None, group, group]


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({"memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n"}, True),
        ({"memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n"}, False),
        ({"memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\n"}, False),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "memory.failcnt": "12\n"}, True),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "memory.failcnt": "0\n"}, False),
        ({}, False),
    ],
)
def test_a_kill_counts_only_if_the_group_was_at_its_own_limit(tmp_path, files, answer):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert reached_memory_limit([tmp_path]) is answer
