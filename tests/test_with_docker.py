"""The script that brings Docker to the tests, with a `docker` that only answers what a test needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

HERE = Path(__file__).parent
# main() for an ordinary user, or for root, whoever runs the tests
AS_USER = """
import os, pathlib, sys
sys.path.insert(0, sys.argv[1])
import private_daemon, with_docker
os.geteuid = lambda: int(sys.argv[2])
private_daemon.FOLDERS = pathlib.Path.cwd()
sys.exit(with_docker.main(sys.argv[3:]))
"""
SHOW = ["sh", "-c", "echo ran:$SLOP_CODE_TEST_IMAGE:$SLOP_CODE_TEST_NO_DOCKER; exit 7"]
BOTH = {"SLOP_CODE_TEST_IMAGE": "mine", "SLOP_CODE_TEST_PLAIN_IMAGE": "plain"}
SILENT = "echo nobody there >&2; exit 1"


@pytest.fixture
def with_docker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(HERE)
    import with_docker

    return with_docker


@pytest.fixture
def private_daemon(with_docker: ModuleType) -> ModuleType:
    return sys.modules["private_daemon"]


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str, str], None]:
    """`tool("docker", "exit 0")`: a command of this name, before all others."""
    (tmp_path / "bin").mkdir()

    def make(name: str, script: str) -> None:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return make


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    def run(command: list[str], user: int = 1000, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", AS_USER, HERE, str(user), *command],
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}/bin:/bin", "XDG_CACHE_HOME": f"{tmp_path}/cache", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    printed, said = process.communicate()
    return process.returncode, printed.strip(), said.strip()


@pytest.mark.e2e
def test_a_daemon_that_answers_is_used_without_a_word(tool, start):
    tool("docker", "exit 0")
    assert outcome(start(SHOW, **BOTH, SLOP_CODE_TEST_NO_DOCKER="old")) == (7, "ran:mine:", "")


@pytest.mark.e2e
def test_without_a_daemon_an_ordinary_users_command_gets_the_reason(tool, start):
    tool("docker", SILENT)
    status, printed, _ = outcome(start(SHOW, CI="false"))
    assert status == 7
    assert printed.startswith("ran::no daemon answers, and only root can start one")
    assert "nobody there" in printed


@pytest.mark.e2e
def test_where_every_check_counts_it_is_a_failure_before_anything_runs(tool, start):
    tool("docker", SILENT)
    status, printed, said = outcome(start(SHOW, CI="true"))
    assert (status, printed) == (1, "")
    assert "only root can start one" in said


@pytest.mark.e2e
def test_an_image_that_cannot_be_made(tool, start):
    tool("docker", '[ "$1" = version ]')
    tool("mmdebstrap", "echo no packages >&2; exit 25")
    status, printed, _ = outcome(start(SHOW))
    assert status == 7
    assert "no packages; SLOP_CODE_TEST_IMAGE can name another image than slop-code-test" in printed
    assert outcome(start(SHOW, SLOP_CODE_TEST_IMAGE="mine"))[:2] == (7, "ran:mine:")
    assert outcome(start(SHOW, SLOP_CODE_TEST_IMAGE="mine", CI="true"))[0] == 1


@pytest.mark.e2e
def test_a_compose_plug_in_that_docker_lacks_is_fetched_once(tool, start, tmp_path):
    tool("docker", '[ "$1" != compose ]')
    tool("apt-get", "echo http://mirror.example/debian")
    plugin = "usr/libexec/docker/cli-plugins"
    tool("mmdebstrap", f'echo "$@" >> made.log; mkdir -p "$5/{plugin}"; echo binary > "$5/{plugin}/docker-compose"')
    show = ["sh", "-c", "cat $SLOP_CODE_TEST_COMPOSE/cli-plugins/docker-compose"]
    for _ in range(2):
        assert outcome(start(show, **BOTH))[:2] == (0, "binary")
    (made,) = (tmp_path / "made.log").read_text().splitlines()
    assert made.endswith(" http://mirror.example/debian")


@pytest.mark.e2e
def test_without_the_compose_plug_in_the_command_gets_the_reason(tool, start):
    tool("docker", '[ "$1" != compose ]')
    tool("apt-get", "echo http://mirror.example/debian")
    tool("mmdebstrap", "echo no packages >&2; exit 25")
    show = ["sh", "-c", "echo ran:$SLOP_CODE_TEST_NO_COMPOSE"]
    status, printed, _ = outcome(start(show, **BOTH, CI="true"))
    assert status == 0
    assert "no packages" in printed


@pytest.mark.e2e
def test_images_are_made_once_and_kept_whole(tool, start, tmp_path):
    tool("docker", 'echo "$@" >> docker.log; [ "$1" != image ]')
    tool("mmdebstrap", 'echo made >> made.log; for last in "$@"; do :; done; echo content > "$last"')
    for _ in range(2):
        assert outcome(start(SHOW))[:2] == (7, "ran:slop-code-test:latest:")
    assert (tmp_path / "made.log").read_text() == "made\n" * 2
    kept = sorted((tmp_path / "cache" / "slop-code-tests").iterdir())
    assert [path.read_text() for path in kept] == ["content\n"] * 2
    imported = [line.split() for line in (tmp_path / "docker.log").read_text().splitlines() if "import" in line]
    assert Counter(words[-1] for words in imported) == {"slop-code-test:latest": 2, "slop-code-test-plain:latest": 2}
    assert {words[-2] for words in imported} == {str(path) for path in kept}


@pytest.mark.e2e
def test_an_image_of_the_same_recipe_is_left_as_it_is(with_docker, tool, start, tmp_path):
    labels = [with_docker.digest([with_docker.debian_suite(), *parts]) for _, *parts in with_docker.RECIPES.values()]
    tool("docker", f'case "$3" in slop-code-test:*) echo {labels[0]};; *) echo {labels[1]};; esac')
    assert outcome(start(SHOW)) == (7, "ran:slop-code-test:latest:", "")
    assert not (tmp_path / "cache").exists()


def test_the_digest_follows_the_recipe(with_docker):
    recipes = [["a", "b"], ["b", "a"], ["a b"], ["a", "b", ""]]
    assert len({with_docker.digest(recipe) for recipe in recipes}) == len(recipes)
    assert with_docker.digest(["a", "b"]) == with_docker.digest(["a", "b"])


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command(tool, start, number):
    tool("docker", "exit 0")
    process = start(["sh", "-c", "trap 'exit 42' INT TERM; echo ready; while :; do sleep 0.01; done"], **BOTH)
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(timeout=600) == 42
    finally:
        process.kill()
        process.communicate()


@pytest.mark.e2e
def test_the_command_does_not_outlive_a_killed_wrapper(tool, start):
    tool("docker", "exit 0")
    process = start(["sh", "-c", "echo ready; exec sleep 3600"], **BOTH)
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=600)  # its output is open as long as it lives


@pytest.mark.e2e
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a daemon")
def test_a_daemon_that_does_not_start_leaves_its_last_words_only(tool, start, tmp_path):
    tool("docker", SILENT)
    tool("dockerd", "echo this kernel is too small; exit 1")
    tool("iptables", "exit 0")
    tool("apparmor_parser", "exit 0")
    _, printed, said = outcome(start(SHOW, user=0))
    assert printed.startswith("ran::dockerd does not start: this kernel is too small")
    assert said == "· starting a Docker daemon"
    assert not list(tmp_path.glob("slop-code-docker-*"))


def test_a_folder_is_left_over_when_its_maker_is_gone(private_daemon, tmp_path):
    assert not private_daemon.is_left_over(tmp_path)
    with private_daemon.hold(tmp_path):
        assert not private_daemon.is_left_over(tmp_path)
    assert private_daemon.is_left_over(tmp_path)


@pytest.mark.e2e
@pytest.mark.parametrize(("name", "ended_by"), [("dockerd", signal.SIGTERM), ("containerd-shim", signal.SIGKILL)])
def test_what_a_left_over_daemon_runs_is_ended(private_daemon, tmp_path, name, ended_by):
    folder, other = tmp_path / "slop-code-docker-left", tmp_path / "slop-code-docker-here"
    processes = {}
    for parent in (folder, other):
        parent.mkdir()
        (parent / name).write_text("#!/bin/sh\necho ready; read line\n")
        (parent / name).chmod(0o755)
        processes[parent] = subprocess.Popen([parent / name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert processes[parent].stdout.readline() == b"ready\n"
    # before anything is ended: a list that is too long must fail here, and not end the machine's other processes
    assert list(private_daemon.processes_of(folder)) == [(processes[folder].pid, name)]
    private_daemon.remove(folder, dict(os.environ))
    assert not folder.exists()
    assert processes[other].poll() is None
    processes[other].communicate()
    processes[folder].communicate()
    assert (processes[folder].returncode, processes[other].returncode) == (-ended_by, 1)
