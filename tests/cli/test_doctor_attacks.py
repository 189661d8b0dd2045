"""`slop-code doctor --attacks` as a user meets it; `tests/attacks` has what the attacks do."""

import json

import pytest

from slop_code.attacks.attack import quick_attacks
from slop_code.attacks.trial import AttackState
from slop_code.cli.doctor.doctor_attacks import EXITS
from slop_code.cli.exit_codes import Exit
from slop_code.cli.main import run
from slop_code.execution.cache import CACHE_VARIABLE


@pytest.fixture
def doctor(capsys):
    return lambda *arguments: (run(["doctor", *map(str, arguments)]), *capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-e", "local", "--docker", "podman"], "--docker cannot be used with --attacks or -e"),
        (["--attacks", "--docker", "podman"], "--docker cannot be used with --attacks or -e"),
        (["--attacks", "-e", "no-such-environment"], "no-such-environment: no such environment"),
    ],
)
def test_wrong_options_are_usage_errors(doctor, arguments, complaint):
    status, out, complained = doctor(*arguments)
    assert status == Exit.USAGE
    assert out == ""
    assert complaint in complained


def test_each_state_has_an_exit_status():
    assert EXITS == {AttackState.HELD: 0, AttackState.BROKE_THROUGH: 1, AttackState.NOT_TRIED: 3}


@pytest.mark.e2e
def test_without_a_sandbox_no_attack_is_tried(doctor, tmp_path):
    """What was not tried is never called held."""
    environment = tmp_path / "containers.yaml"
    environment.write_text("{name: containers, type: docker, docker: {image: none, binary: no-such-engine}}")
    status, out, _ = doctor("--attacks", "-e", environment)
    why, last = out.splitlines()
    assert status == Exit.INFRASTRUCTURE
    assert "an honest submission cannot be judged here: " in why
    assert "no-such-engine" in why
    assert last == "nothing was tried"
    status, out, _ = doctor("--attacks", "--json", "-e", environment)
    (found,) = json.loads(out)
    assert status == Exit.INFRASTRUCTURE
    assert set(found["kinds"].values()) == {one["state"] for one in found["attacks"]} == {"not tried"}
    assert len(found["attacks"]) == len(quick_attacks())


@pytest.fixture
def cache_with_shared_tools(cache, tmp_path, monkeypatch):
    """Nobody else's evaluations are in it; the tools are the shared ones."""
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "tools").symlink_to(cache.root / "tools")
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


@pytest.mark.long
def test_attacks_break_through_without_isolation(cache_with_shared_tools, doctor, tmp_path):
    """It says what gets through, and does nothing that could hurt this machine."""
    environment = tmp_path / "bare.yaml"
    environment.write_text("{name: bare, type: local, isolation: none}")
    status, out, _ = doctor("--attacks", "--json", "-e", environment)
    (found,) = json.loads(out)
    states = {one["name"]: one["state"] for one in found["attacks"]}
    assert status == Exit.NOT_PASSED
    assert found["environment"] == str(environment)
    assert len(states) == len(quick_attacks())
    assert states["writing_the_expected_output"] == "got through"
    assert states["service_on_loopback"] == "got through"
    assert states["killing"] == "not tried"
    assert states["conftest"] == states["sitecustomize"] == "held"
    assert found["kinds"]["reports"] == found["kinds"]["network"] == "got through"
    assert [path for kind in ("tests", "sessions") for path in (cache_with_shared_tools / kind).iterdir()] == []
    assert list(cache_with_shared_tools.glob("host-*")) == []
