"""Workspaces as agents leave them: packed by a shell, unpacked and scored here."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slop_code import SubmissionError, UsageError, load_problem
from slop_code.bridges.agent_workspace import (
    MAX_UNPACKED,
    archive_path,
    fetch_workspace,
    first_checkpoints,
    pack_command,
    score_workspace,
    task_text,
    visible_files,
)
from slop_code.evaluation.reward_values import REWARD_NAMES
from slop_code.execution.environment import EnvironmentSpec

if TYPE_CHECKING:
    from slop_code.bridges.agent_workspace import Run

ROOT = Path(__file__).parents[2]
LARDER = load_problem(ROOT / "examples/problems/larder")
SOLUTION = LARDER.path / "solutions/checkpoint_1"


def pack(folder: Path) -> bytes:
    done = subprocess.run(pack_command("."), cwd=folder, capture_output=True, text=True, check=True)
    path = Path(archive_path(done.returncode, done.stdout))
    try:
        return path.read_bytes()
    finally:
        path.unlink()


def score(packed: bytes, checkpoint: str = "checkpoint_1", environment: str | EnvironmentSpec | None = None):
    return asyncio.run(score_workspace(io.BytesIO(packed), LARDER, checkpoint, environment))


@pytest.fixture
def workspace(tmp_path, cache) -> Path:
    folder = tmp_path / "workspace"
    subprocess.run(["cp", "-r", SOLUTION, folder], check=True)
    return folder


def test_a_reference_solution_with_the_links_of_a_virtual_environment_passes(workspace):
    (workspace / ".venv/bin").mkdir(parents=True)
    (workspace / ".venv/bin/python").symlink_to("/usr/bin/python3")
    os.link(workspace / "main.py", workspace / "again.py")
    result = score(pack(workspace))
    assert result.rewards["strict"] == 1
    assert result.metadata["provenance"]["digests"]["submission"]
    assert result.explanation.endswith("tests passed")


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE])
def test_a_forged_archive_is_0_for_every_reward(cache, kind):
    """Devices and the like, and names that lead elsewhere, which no tar would have packed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("main.py")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    result = score(packed.getvalue())
    assert result.rewards == dict.fromkeys(REWARD_NAMES, 0.0)
    assert "main.py" in result.metadata["refused"]


def test_a_name_that_leads_outside_and_what_is_no_archive_are_refused(cache, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../../stolen"))
    for data in (packed.getvalue(), b"", b"no archive", packed.getvalue()[:100]):
        assert set(score(data).rewards.values()) == {0.0}


def test_nothing_is_written_through_a_link(cache, tmp_path):
    """A link, then a member with the link in its path."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("out/stolen"))
    assert score(packed.getvalue()).rewards["strict"] == 0
    assert not (tmp_path / "stolen").exists()


def test_an_infrastructure_failure_has_no_rewards(workspace):
    settings = {"type": "local", "name": "broken", "setup": {"commands": ["no-such-program"]}}
    result = score(pack(workspace), environment=EnvironmentSpec.model_validate(settings))
    assert result.rewards == {}
    assert result.explanation.startswith("infrastructure failure: ")


def test_a_workspace_is_not_unpacked_beyond_its_limit(cache):
    """Compressed, it is small. No file is as large as the sum of all of them."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("zeros")
        member.size = MAX_UNPACKED + 1
        archive.fileobj.write(member.tobuf())
    assert "more than 2 GiB" in score(packed.getvalue()).metadata["refused"]


@pytest.mark.e2e
def test_a_shell_and_tar_of_busybox_are_enough(need_docker, tmp_path):
    need_docker()
    if (image := os.environ.get("SLOP_CODE_TEST_PLAIN_IMAGE")) is None:
        reason = "no image without Python: run pytest through tests/with_docker.py, as `make test` does"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    script = 'mkdir /w && cd /w && echo one > a && ln a b && ln -s /nowhere c && cat "$(sh -c "$1" sh .)"'
    argv = ["docker", "run", "--rm", "--network=none", image, "sh", "-c", script, "sh", pack_command(".")[2]]
    done = subprocess.run(argv, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert sorted(archive.getnames()) == [".", "./a", "./b", "./c"]


@pytest.mark.parametrize(("name", "package"), [("inspect", "slop-code[inspect]"), ("verifiers", "verifiers>=0.4")])
def test_a_bridge_without_its_package_says_what_to_install(name, package):
    if importlib.util.find_spec({"inspect": "inspect_ai"}.get(name, name)) is not None:
        pytest.skip("the package is installed here")
    with pytest.raises(UsageError, match=re.escape(f"install it: pip install '{package}'")):
        importlib.import_module(f"slop_code.bridges.{name}")


@pytest.mark.parametrize(
    ("status", "printed"), [(1, "/tmp/a"), (0, ""), (0, "a"), (0, "/tmp/a\n/tmp/b"), (0, "/a\0b"), (0, "/" * 200_000)]
)
def test_a_sandbox_that_does_not_name_its_archive_is_refused(status, printed):
    with pytest.raises(SubmissionError, match="cannot be packed"):
        archive_path(status, printed)


class Box:
    """Runs commands in a folder, as a sandbox does; programs of the agent come first."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder, folder.with_name("programs")
        self.programs.mkdir()
        self.commands: list[str] = []

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    async def run(self, argv: list[str]) -> tuple[int, str]:
        self.commands.append(argv[0])
        path = f"{self.programs}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "TMPDIR": str(self.programs)}
        program = shutil.which(argv[0], path=path) or argv[0]
        done = subprocess.run([program, *argv[1:]], cwd=self.folder, env=env, capture_output=True, text=True)
        return done.returncode, done.stdout

    def fetch(self, run: Run | None = None) -> bytes:
        packed = io.BytesIO()
        asyncio.run(fetch_workspace(run or self.run, ".", packed))
        return packed.getvalue()


@pytest.fixture
def box(workspace) -> Box:
    return Box(workspace)


def test_a_workspace_is_fetched_in_pieces_and_its_archive_is_removed(box, monkeypatch):
    monkeypatch.setattr("slop_code.bridges.agent_workspace.CHUNK", 1 << 20)
    (box.folder / "large").write_bytes(os.urandom(1_500_000))
    with tarfile.open(fileobj=io.BytesIO(box.fetch())) as archive:
        assert archive.getmember("./large").size == 1_500_000
    assert box.commands == ["sh", "sh", "sh", "rm"]
    assert list(box.programs.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("base64", "echo '???'"),
        ("base64", "echo YQ"),
        ("base64", "head -c 9000000 /dev/zero | /usr/bin/base64"),
        ("mktemp", "exit 1"),
        ("mktemp", "echo relative"),
        ("mktemp", "head -c 100000 /dev/zero | tr '\\0' /"),
    ],
)
def test_programs_of_an_agent_are_its_own_fault(box, program, text):
    box.program(program, text)
    with pytest.raises(SubmissionError, match=r"cannot be|more than it was asked for"):
        box.fetch()


def test_more_than_the_limit_is_refused_whatever_else_the_agent_replaced(box, monkeypatch):
    monkeypatch.setattr("slop_code.bridges.agent_workspace.CHUNK", 1 << 20)
    monkeypatch.setattr("slop_code.bridges.agent_workspace.MAX_PACKED", 1 << 20)
    (box.folder / "large").write_bytes(os.urandom(5 << 19))
    box.program("true", "exit 1")
    with pytest.raises(SubmissionError, match="more than 1 MiB"):
        box.fetch()


@pytest.mark.parametrize("error", [TimeoutError(), FileNotFoundError("gone"), ValueError("no text")])
def test_an_error_that_an_agent_can_cause_refuses_the_workspace(box, error):
    async def run(argv: list[str]) -> tuple[int, str]:
        raise error

    with pytest.raises(SubmissionError, match=f"cannot be read: {type(error).__name__}"):
        box.fetch(run)


@pytest.mark.parametrize("failing", ["sh", "dd"])
def test_an_error_of_the_sandbox_itself_is_not_blamed_on_the_agent(box, failing):
    """Nor is it hidden by that of the command that removes the archive."""

    async def run(argv: list[str]) -> tuple[int, str]:
        if failing == "sh" or "dd" in " ".join(argv) or argv[0] == "rm":
            raise RuntimeError(f"the service is gone: {argv[0]}")
        return await box.run(argv)

    with pytest.raises(RuntimeError, match="the service is gone: sh"):
        box.fetch(run)


def test_a_command_that_fails_while_the_archive_is_read_is_not_taken_for_its_end(box):
    async def run(argv: list[str]) -> tuple[int, str]:
        return (1, "") if "dd if=" in " ".join(argv) else await box.run(argv)

    with pytest.raises(SubmissionError, match=r"cannot be read out of the sandbox \(exit status 1\)"):
        box.fetch(run)


@pytest.mark.parametrize("error", [TimeoutError(), RuntimeError("the service is gone")])
def test_a_workspace_whose_archive_cannot_be_removed_is_complete(box, error):
    async def run(argv: list[str]) -> tuple[int, str]:
        if argv[0] == "rm":
            raise error
        return await box.run(argv)

    with tarfile.open(fileobj=io.BytesIO(box.fetch(run))) as archive:
        packed = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    assert packed == {
        f"./{path.relative_to(box.folder)}": path.read_bytes() for path in box.folder.rglob("*") if path.is_file()
    }


def test_an_agent_sees_the_texts_and_the_static_assets_and_nothing_else():
    assert visible_files(LARDER) == {
        ".evaluation_tests/assets/units": (LARDER.path / "tests/assets/units").read_bytes()
    }
    first, second = (task_text(LARDER, f"checkpoint_{number}") for number in (1, 2))
    assert first.startswith((LARDER.path / "checkpoint_1.md").read_text())
    assert ".evaluation_tests/assets: units" in first
    assert "When the program is evaluated, SCBENCH_ASSETS_DIR names that folder. It is not set here." in first
    assert second == (LARDER.path / "checkpoint_2.md").read_text()


def test_a_number_of_checkpoints_that_the_problem_does_not_have_is_refused():
    assert first_checkpoints(LARDER, None) == ["checkpoint_1", "checkpoint_2", "checkpoint_3"]
    assert first_checkpoints(LARDER, 2) == ["checkpoint_1", "checkpoint_2"]
    for count in (0, 4, "2"):
        with pytest.raises(UsageError, match="from 1 to 3"):
            first_checkpoints(LARDER, count)
