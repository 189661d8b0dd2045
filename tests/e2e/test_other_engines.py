"""Podman, as root and rootless, and rootless Docker: contract of the boxes, quick attacks, verdicts."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.evaluation import ProblemConfig
from tests.e2e.other_engine import CHECKPOINTS, HITCOUNT, REFERENCE, REPOSITORY, SHELL, statuses

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]

CGROUPS = 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1
HARD, WATCH = "limits of containers: control groups", "limits of containers: a watch on memory and processes"
LIMITS = {1: WATCH, 2: "limits of containers: "}
"""Of a rootless engine: cgroup v1 cannot be delegated, the next version may be."""

DESCRIPTIONS = {
    "podman": ("podman ", f", as root, cgroup v{CGROUPS}", HARD),
    "podman-rootless": ("podman ", f", rootless, cgroup v{CGROUPS}", LIMITS[CGROUPS]),
    "docker-rootless": ("Docker ", f", rootless, cgroup v{CGROUPS}", LIMITS[CGROUPS]),
}
UNAVAILABLE = 3


@pytest.fixture(scope="module", params=DESCRIPTIONS)
def engine(request):
    """All that one start of the engine shows, since its image and the test tools take half a minute."""
    words = [sys.executable, "tests/with_engine.py", request.param, sys.executable, "-m", "tests.e2e.other_engine"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode == UNAVAILABLE and os.environ.get("CI") != "true":
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return {"name": request.param, **json.loads(done.stdout)}


def test_the_contract_suite_passes(engine):
    assert engine["contract"]["status"] == 0, engine["contract"]["output"]


def test_the_quick_attacks_are_held(engine):
    assert engine["attacks"]["status"] == 0, engine["attacks"]["output"]


def test_doctor_describes_the_engine_and_its_limits(engine):
    for words in DESCRIPTIONS[engine["name"]]:
        assert words in engine["doctor"]["output"]


@pytest.fixture(scope="module")
def expected(evaluate):
    problem = ProblemConfig.from_yaml(HITCOUNT)
    return [
        statuses(evaluate(problem, REFERENCE, checkpoint, sandbox="docker", environment=SHELL))
        for checkpoint in CHECKPOINTS
    ]


def test_verdicts_are_those_of_docker(engine, expected):
    assert engine["statuses"] == expected
    assert set(expected[0].values()) == {"passed"} != set(expected[1].values())


def test_the_result_says_which_limits_the_engine_enforced(engine):
    """On control groups of version 2 it depends on what systemd delegates to users: often not the processors."""
    isolation = engine["isolation"]
    enforced = isolation["control_groups"], "cpus" in isolation["limits"]
    if CGROUPS == 1 or engine["name"] == "podman":
        assert enforced == (engine["name"] == "podman",) * 2
    assert ("warning" in isolation) is not all(enforced)


def test_no_container_is_left_in_the_engine_and_no_volume_but_those_of_the_cache(engine):
    """podman's `rm` removes none of several containers if one of them never was."""
    assert engine["containers"] == []
    assert {name.rpartition("-")[2] for name in engine["volumes"]} == {"support", "tools", "layer"}


def test_nothing_is_left_on_the_machine(engine):
    assert "slop-code-user" not in Path("/etc/passwd").read_text()
    assert not Path(engine["folder"]).exists()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            assert engine["folder"].encode() not in entry.read_bytes()
