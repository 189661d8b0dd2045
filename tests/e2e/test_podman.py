"""Evaluations with Debian's podman, as root, in a storage folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from slop_code.evaluation import ProblemConfig, PytestRunner
from slop_code.execution.cache import Cache
from slop_code.execution.docker.engine import Engine
from slop_code.execution.environment import EnvironmentSpec
from tests.faults.baseline import write_snapshot

TESTS = Path(__file__).parents[1]
DISK = "/var/tmp"
"""Images need a disk: a folder in memory may be too small for them."""

SCRIPT = """#!/bin/sh
export CONTAINERS_CONF={folder}/containers.conf
exec podman --root {folder}/root --runroot {folder}/run --tmpdir {folder}/tmp "$@"
"""
SETTINGS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
"""
"""podman's own limits may be higher than those that this process may set."""


@pytest.fixture(scope="module")
def podman():
    """The path of a command like podman, which has the image of the Docker tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TESTS)
        import private_daemon
        import with_docker

        tools = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "DEBIAN_FRONTEND": "noninteractive"}
        folder = Path(tempfile.mkdtemp(prefix="slop-code-podman-", dir=DISK))
        try:
            if os.geteuid():
                raise private_daemon.UnavailableError("only root can use podman without more set-up")
            private_daemon.install("podman", "podman", tools)
            yield _start(folder, with_docker, tools)
        except private_daemon.UnavailableError as missing:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no podman: {missing}")
        finally:
            subprocess.run(["umount", "--lazy", str(folder / "root/overlay")], capture_output=True)
            shutil.rmtree(folder)


def _start(folder, with_docker, tools):
    script = folder / "podman"
    script.write_text(SCRIPT.format(folder=folder))
    script.chmod(0o755)
    (folder / "containers.conf").write_text(SETTINGS)
    name, *options = with_docker.RECIPES["SLOP_CODE_TEST_IMAGE"]
    tar = with_docker.image_tar(name, options, tools)
    with_docker.call([str(script), "import", str(tar), "slop-code-test:latest"], tools)
    return script


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_podman_judges_and_leaves_nothing_behind(podman, tmp_path):
    """Its `rm` removes none of several containers if one of them never was."""
    problem = ProblemConfig.from_yaml(TESTS / "problems" / "sums")
    docker = {"image": "localhost/slop-code-test:latest", "binary": str(podman), "network": "host"}
    spec = EnvironmentSpec.model_validate({"type": "docker", "name": "podman", "docker": docker})
    cache = Cache.at(tmp_path / "cache")
    statuses = {}
    for kind in ("good", "wrong"):
        write_snapshot(tmp_path / kind, kind, kind)
        results = PytestRunner(problem, problem.checkpoint(1), spec, tmp_path / kind, cache=cache).run()
        assert results.infrastructure_failure_reason is None
        assert results.isolation["sandbox"] == "docker"
        statuses[kind] = [test.status for test in results.tests]
    assert statuses == {"good": ["passed", "passed"], "wrong": ["failed", "passed"]}

    def run(*words):
        return subprocess.run([podman, *words], capture_output=True, text=True, check=True).stdout.split()

    assert run("ps", "--all", "--quiet") == []
    assert {name.rpartition("-")[2] for name in run("volume", "ls", "--quiet")} == {"support", "tools"}
    run("create", "--name", "there", docker["image"], "true")
    Engine(str(podman)).remove(["missing", "there"])
    assert run("ps", "--all", "--quiet") == []
