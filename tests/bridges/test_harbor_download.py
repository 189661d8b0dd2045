"""Workspaces taken out of real containers, whose processes go on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from slop_code import InfrastructureError, SubmissionError
from slop_code.bridges import harbor_download
from slop_code.bridges.harbor_download import AgentContainer
from slop_code.execution.docker.engine import Engine
from tests.conftest import IMAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.e2e
SWAPPER = """
import ctypes, os
libc, exchange = ctypes.CDLL(None), 2
while True:
    libc.renameat2(-100, b"folder", -100, b"link", exchange)
"""
"""Within seconds, `docker cp` writes through the link, to the host's folder that it names."""

WRITER = "while :; do head -c 300000 /dev/urandom > b; : > b; done"


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def container(need_docker: Callable[[], None]) -> Iterator[AgentContainer]:
    need_docker()
    name = docker("run", "--detach", "--network=none", "--workdir=/workspace", IMAGE, "sleep", "infinity")
    try:
        yield AgentContainer(Engine("docker"), name)
    finally:
        docker("rm", "--force", name)


def download(container: AgentContainer, target: Path, path: str = "/workspace") -> None:
    asyncio.run(container.download(path, target))


def in_container(container: AgentContainer, script: str, *options: str) -> None:
    docker("exec", *options, container.name, "sh", "-c", script)


def test_the_files_of_the_workspace_come_and_the_container_goes_on(container, tmp_path):
    in_container(
        container, "mkdir -p src/deep; echo hello > src/deep/main.py; ln -s /etc/passwd link; ln main x || true"
    )
    in_container(container, "echo one > one; ln one two; mknod disk b 8 0")
    download(container, tmp_path / "got")
    assert (tmp_path / "got/src/deep/main.py").read_text() == "hello\n"
    assert os.readlink(tmp_path / "got/link") == "/etc/passwd"
    assert (tmp_path / "got/two").read_text() == "one\n"
    assert not os.path.lexists(tmp_path / "got/disk")
    assert docker("inspect", "--format", "{{.State.Status}}", container.name) == "running"


def test_processes_that_change_the_workspace_meanwhile_write_nothing_elsewhere(container, tmp_path):
    outside = swapping(container, tmp_path)
    in_container(container, WRITER, "--detach")
    for attempt in range(5):
        download(container, tmp_path / f"got-{attempt}")
    assert list(outside.iterdir()) == []


def test_the_container_is_paused_while_it_is_read_and_only_then(container, tmp_path):
    state = f"docker inspect --format '{{{{.State.Status}}}}' {container.name}"
    engine = wrapped_engine(tmp_path, f'[ "$1" != cp ] || {state} > {tmp_path}/state')
    download(AgentContainer(engine, container.name), tmp_path / "got")
    assert (tmp_path / "state").read_text() == "paused\n"
    assert docker("inspect", "--format", "{{.State.Status}}", container.name) == "running"


def test_an_engine_that_cannot_pause_writes_nothing_elsewhere_either(container, tmp_path):
    """The workspace changes while it is read, and may then be none; what it is said to be depends on the moment."""
    outside = swapping(container, tmp_path)
    engine = wrapped_engine(tmp_path, '[ "$1" != pause ] || exit 1')
    for attempt in range(30):
        with contextlib.suppress(SubmissionError):
            download(AgentContainer(engine, container.name), tmp_path / f"got-{attempt}")
    assert list(outside.iterdir()) == []


def wrapped_engine(folder: Path, first: str, program: str = "docker") -> Engine:
    """Docker, with a line of shell before each command; or another program in its place."""
    path = folder / "docker"
    path.write_text(f'#!/bin/sh\n{first}\nexec {program} "$@"\n')
    path.chmod(0o755)
    return Engine(str(path))


def swapping(container: AgentContainer, folder: Path) -> Path:
    """A folder of the host to which a link in the workspace leads, which takes turns with a folder of the workspace."""
    outside = folder / "outside"
    outside.mkdir()
    in_container(container, f"mkdir -p folder {outside}; echo x > folder/x; echo x > {outside}/x; ln -s {outside} link")
    docker("exec", "--detach", container.name, "python3", "-c", SWAPPER)
    return outside


@pytest.mark.parametrize("script", ["cd /; rm -rf /workspace", "cd /; rmdir /workspace; ln -s /etc /workspace"])
def test_a_workspace_that_is_no_folder_is_the_fault_of_the_submission(container, tmp_path, script):
    in_container(container, script)
    with pytest.raises(SubmissionError, match=r"^/workspace "):
        download(container, tmp_path / "got")
    assert not os.path.lexists(tmp_path / "got")


def test_no_program_of_the_container_takes_part(container, tmp_path):
    in_container(
        container, "echo hello > main.py; cp /bin/true /tmp/true; for f in tar sh bash; do cp /tmp/true /bin/$f; done"
    )
    download(container, tmp_path / "got")
    assert (tmp_path / "got/main.py").read_text() == "hello\n"


def stop(container: AgentContainer) -> None:
    docker("kill", container.name)
    assert docker("wait", container.name) == "137"


def test_an_agent_that_removes_its_workspace_and_ends_its_container_is_at_fault(container, tmp_path):
    in_container(container, "cd /; rm -rf /workspace")
    stop(container)
    with pytest.raises(SubmissionError, match=r"^/workspace cannot be read: "):
        download(container, tmp_path / "got")


def test_the_workspace_of_a_stopped_container_is_read_and_it_stays_stopped(container, tmp_path):
    in_container(container, "echo hello > main.py")
    stop(container)
    download(container, tmp_path / "got")
    assert (tmp_path / "got/main.py").read_text() == "hello\n"
    assert docker("inspect", "--format", "{{.State.Status}}", container.name) == "exited"


def test_a_container_that_is_gone_is_an_infrastructure_failure(container, tmp_path):
    gone = AgentContainer(container.engine, "0123456789abcdef")
    with pytest.raises(InfrastructureError):
        download(gone, tmp_path / "got")


def test_a_daemon_that_does_not_answer_is_an_infrastructure_failure(container, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(InfrastructureError, match="no daemon answers"):
        download(container, tmp_path / "got")


@pytest.mark.parametrize("name", ["no space left on device", "got permission denied", "connection refused"])
def test_names_of_files_in_a_message_of_the_engine_say_nothing_about_the_engine(tmp_path, name):
    engine = wrapped_engine(tmp_path, f'[ "$1" != cp ] || {{ echo "/workspace/{name}: bad" >&2; exit 1; }}', "true")
    with pytest.raises(SubmissionError, match=f"^/workspace cannot be read: /workspace/{name}: bad$"):
        download(AgentContainer(engine, "agent"), tmp_path / "got")


@pytest.mark.parametrize(("program", "error"), [("true", SubmissionError), ("false", InfrastructureError)])
def test_a_workspace_that_takes_too_long_is_the_agents_if_the_engine_answers(tmp_path, monkeypatch, program, error):
    """`cat` gives nothing until its input ends."""
    monkeypatch.setattr(harbor_download, "DOWNLOAD_S", 0.1)
    engine = wrapped_engine(tmp_path, '[ "$1" != cp ] || exec cat', program)
    with pytest.raises(error):
        download(AgentContainer(engine, "agent"), tmp_path / "got")


@pytest.mark.long
def test_a_large_file_that_is_left_out_does_not_cancel_a_score(container, tmp_path):
    in_container(container, "mkdir .scbench; truncate -s 4T .scbench/x; echo hello > main.py")
    with pytest.raises(SubmissionError, match="beyond the limits"):
        download(container, tmp_path / "got")
