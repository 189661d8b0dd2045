"""The runtime that `docker.runtime` names, with a `docker` that is a shell script of the test."""

from __future__ import annotations

import json

import pytest

from slop_code.errors import ConfigError, InfrastructureError
from slop_code.execution.docker.container_arguments import runtime_arguments
from slop_code.execution.docker.container_runtime import missing_runtime_reason
from slop_code.execution.environment import EnvironmentSpec
from slop_code.execution.sandbox import sandbox_for

KNOWN = json.dumps(
    {"ServerVersion": "20.10", "Runtimes": {"runc": {"path": "runc"}, "runsc": {"path": "/usr/bin/runsc"}}}
)


def spec_with(runtime, binary="docker"):
    docker = {"image": "x", "binary": binary, "runtime": runtime}
    return EnvironmentSpec.model_validate({"type": "docker", "name": "test", "docker": docker})


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("runtime", "answer", "reason"),
    [
        (None, "{}", None),
        ("runsc", KNOWN, None),
        ("runcs", KNOWN, "has no runtime runcs, only runc, runsc; add it to the daemon's configuration"),
        ("runsc", '{"host": {}}', "does not say which runtimes it has"),
        ("runsc", "not JSON", "does not say which runtimes it has"),
        ("runsc", "[]", "does not say which runtimes it has"),
    ],
    ids=["default", "known", "unknown", "podman", "text", "list"],
)
def test_a_runtime_that_the_engine_does_not_list_is_refused(engine, runtime, answer, reason):
    found = missing_runtime_reason(engine(f"echo '{answer}'"), runtime)
    assert found is None if reason is None else reason in found


@pytest.mark.e2e
def test_the_engine_is_asked_before_anything_runs(engine, calls, empty_cache):
    binary = engine(f"echo '{KNOWN}'").binary
    with pytest.raises(InfrastructureError, match="has no runtime kata"):
        sandbox_for(spec_with("kata", binary), empty_cache)
    assert calls() == ["info --format {{json .}}"]


def test_the_default_runtime_is_the_engine_s_own():
    assert runtime_arguments(None) == []
    assert runtime_arguments("runsc") == ["--runtime", "runsc"]


def test_results_are_keyed_by_the_runtime():
    assert len({spec_with(runtime).digest() for runtime in (None, "runc", "runsc")}) == 3


def test_an_empty_name_is_refused(tmp_path):
    (tmp_path / "environment.yaml").write_text("type: docker\nname: x\ndocker: {image: x, runtime: ''}\n")
    with pytest.raises(ConfigError, match=r"docker\.runtime"):
        EnvironmentSpec.from_yaml(tmp_path / "environment.yaml")
