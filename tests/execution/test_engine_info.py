"""Facts that engines state about themselves, with answers of real ones, shortened."""

from __future__ import annotations

import json

import pytest

from slop_code.execution.docker.engine_info import EngineInfo, limits_in_force, read_info
from slop_code.execution.environment import Limits

ALL = {"memory", "processes", "cpus"}
ENFORCED = {"MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": True}
IGNORED = dict.fromkeys(ENFORCED, False)
ROOTLESS = ["name=seccomp,profile=default", "name=rootless"]


def docker(**values):
    return {"ServerVersion": "20.10.24", "CgroupVersion": "1", "Driver": "overlay2", **ENFORCED, **values}


def podman(*controllers, rootless=False, cgroups="v1", driver="overlay"):
    host = {"cgroupVersion": cgroups, "cgroupControllers": [*controllers], "security": {"rootless": rootless}}
    return {"host": host, "store": {"graphDriverName": driver}, "version": {"Version": "4.3.1"}}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("answer", "description", "enforced", "advice"),
    [
        (docker(), "Docker 20.10.24, as root, cgroup v1", ALL, ""),
        (docker(PidsLimit=False), "Docker 20.10.24, as root, cgroup v1", {"memory", "cpus"}, "its kernel has to"),
        (
            docker(SecurityOptions=ROOTLESS, **IGNORED),
            "Docker 20.10.24, rootless, cgroup v1",
            set(),
            "an engine of root, or boot with cgroup v2",
        ),
        (docker(SecurityOptions=ROOTLESS), "Docker 20.10.24, rootless, cgroup v1", set(), "boot with cgroup v2"),
        (docker(SecurityOptions=ROOTLESS, CgroupVersion="2"), "Docker 20.10.24, rootless, cgroup v2", ALL, ""),
        (podman("cpu", "cpuset", "memory", "pids"), "podman 4.3.1, as root, cgroup v1", ALL, ""),
        (podman(rootless=True), "podman 4.3.1, rootless, cgroup v1", set(), "boot with cgroup v2"),
        (
            podman("memory", "pids", rootless=True, cgroups="v2"),
            "podman 4.3.1, rootless, cgroup v2",
            {"memory", "processes"},
            "`Delegate=cpu cpuset io memory pids`",
        ),
        ({}, "an unknown engine", set(), "its kernel has to"),
        ([], "an unknown engine", set(), "its kernel has to"),
    ],
)
def test_what_an_engine_does_not_say_it_enforces_is_not_enforced(engine, answer, description, enforced, advice):
    info = read_info(engine(f"cat <<'END'\n{json.dumps(answer)}\nEND"))
    assert (info.description, info.enforced) == (description, enforced)
    assert advice in info.limits_advice
    assert bool(info.limits_advice) == bool(info.warning) == (enforced != ALL)


@pytest.mark.e2e
def test_an_answer_that_is_not_json_says_nothing(engine):
    assert read_info(engine("echo Usage: something")) == EngineInfo()


def test_the_warning_names_the_limits():
    info = EngineInfo("podman", "4.3.1", rootless=True, cgroup_version="2", enforced=frozenset({"memory", "processes"}))
    assert info.warning == "podman 4.3.1, rootless, cgroup v2: it enforces no limit on cpus"


@pytest.mark.parametrize(
    ("enforced", "warning", "groups", "cpus", "reason"),
    [
        (ALL, "", True, True, None),
        (ALL, "Limitation discarded.", False, False, "Limitation discarded."),
        ({"memory", "processes"}, "", True, False, "no limit on cpus"),
        ({"memory", "cpus"}, "", False, True, "no limit on processes"),
        (set(), "", False, False, "no limit on memory, processes, cpus"),
    ],
)
def test_a_result_claims_only_limits_that_the_engine_states_without_a_warning(enforced, warning, groups, cpus, reason):
    claimed = limits_in_force(EngineInfo("Docker", "1", enforced=frozenset(enforced)), Limits(), warning)
    assert (claimed["control_groups"], "cpus" in claimed["limits"]) == (groups, cpus)
    assert {"memory", "processes", "disk", "output"} <= claimed["limits"].keys()
    assert reason in claimed["warning"] if reason else "warning" not in claimed


@pytest.mark.e2e
@pytest.mark.parametrize(("driver", "advice"), [("vfs", 'driver = "overlay"'), ("overlay", None)])
def test_a_storage_driver_that_copies_images_is_named(engine, driver, advice):
    found = read_info(engine(f"cat <<'END'\n{json.dumps(podman(driver=driver))}\nEND")).storage_advice
    assert advice in found if advice else found == ""
