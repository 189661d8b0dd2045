"""A sandbox that another package brings through the entry point `slop_code.sandboxes`."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from slop_code.errors import ConfigError
from slop_code.execution.cache import Cache
from slop_code.execution.environment import EnvironmentSpec
from slop_code.execution.sandbox import sandbox_for, sandbox_name
from tests.command import SLOP_CODE

MODULE = """
from slop_code.execution.unsandboxed import Unsandboxed


class CountingSandbox(Unsandboxed):
    name = "counting"

    def judge(self, job):
        with open(__file__ + ".calls", "a") as calls:
            calls.write("collect\\n" if job.collecting else "judge\\n")
        return super().judge(job)
"""
ENVIRONMENT = "type: local\nname: counted\nisolation: counting\n"


@pytest.fixture
def package(tmp_path):
    """A folder with an installed package, as pip would leave it."""
    folder = tmp_path / "site"
    metadata = folder / "counting_sandbox-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "counting_sandbox.py").write_text(MODULE)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: counting-sandbox\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[slop_code.sandboxes]\ncounting = counting_sandbox:CountingSandbox\n")
    return folder


@pytest.fixture
def environment(tmp_path):
    path = tmp_path / "environment.yaml"
    path.write_text(ENVIRONMENT)
    return path


@pytest.mark.e2e
def test_isolation_names_a_sandbox_of_another_package(package, environment, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(package)
    spec = EnvironmentSpec.from_yaml(environment)
    assert sandbox_name(spec) == "counting"
    assert type(sandbox_for(spec, Cache(tmp_path))).__name__ == "CountingSandbox"


def test_an_unknown_sandbox_is_an_error_that_lists_those_installed(package, environment, monkeypatch):
    with pytest.raises(ConfigError, match=r"isolation: found 'counting', expected one of strict, none$"):
        EnvironmentSpec.from_yaml(environment)
    monkeypatch.syspath_prepend(package)
    environment.write_text(ENVIRONMENT.replace("counting", "courting"))
    with pytest.raises(
        ConfigError,
        match=r"isolation: found 'courting', expected one of strict, none, counting; did you mean 'counting'\?$",
    ):
        EnvironmentSpec.from_yaml(environment)


def test_a_sandbox_that_was_uninstalled_meanwhile_is_an_error(package, environment, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.syspath_prepend(package)
        spec = EnvironmentSpec.from_yaml(environment)
    with pytest.raises(ConfigError, match=r"'counted': isolation: found 'counting', expected one of strict, none$"):
        sandbox_for(spec, Cache(tmp_path))


@pytest.mark.e2e
def test_an_evaluation_runs_in_a_sandbox_of_another_package(
    make_problem, make_submission, package, environment, cache, tmp_path
):
    problem = make_problem({"test_checkpoint_1.py": "def test_it():\n    pass\n"})
    submission = make_submission({"main.py": ""})
    argv = ["eval-snapshot", submission, "-p", problem.path, "-c", "1", "-e", environment, "-o", tmp_path / "out"]
    done = subprocess.run(
        [SLOP_CODE, *argv],
        env={**os.environ, "PYTHONPATH": str(package), "SCBENCH_CACHE_DIR": str(cache.root)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "evaluation.json").read_text())["isolation"]["sandbox"] == "counting"
    assert "judge" in (package / "counting_sandbox.py.calls").read_text().split()
