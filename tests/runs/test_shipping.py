"""Trees packed for another machine and unpacked unchanged."""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slop_code.errors import ConfigError, InfrastructureError
from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.problem.problem_contents import Contents, checkpoint_inputs
from slop_code.execution.cache import Cache
from slop_code.execution.environment import load_environment
from slop_code.execution.submission import tree_digest
from slop_code.runs.executors.ray import shipping
from slop_code.runs.executors.ray.node import NodeVersions
from slop_code.runs.executors.ray.ray_executor import request_for_node
from slop_code.runs.executors.ray.shipping import pack, pack_problem, received_problem, unpack
from slop_code.runs.jobs.job_records import JobRequest

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = b"n" * 200
HERE = NodeVersions("0.5", "3-abc", "3.11")


def plain(root: Path) -> None:
    (root / "main.py").write_text("print(1)")
    (root / "empty").mkdir()
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)


def links(root: Path) -> None:
    (root / "up").symlink_to("../..")
    (root / "etc").symlink_to("/etc")
    (root / "nowhere").symlink_to("nothing here")
    (root / "itself").symlink_to("itself")


def odd_names(root: Path) -> None:
    for name in (b"-rf", b"new\nline", b"\xff\xfe", b" ", b"END", b"..."):
        Path(os.fsdecode(bytes(root) + b"/" + name)).write_bytes(name)


def special(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s"))


def closed(root: Path) -> None:
    """For root all of it is open; for an ordinary user it is unreadable here and there."""
    (root / "closed").write_text("secret")
    (root / "closed").chmod(0)
    (root / "folder").mkdir()
    (root / "folder" / "file").write_text("")
    (root / "folder").chmod(0o555)


def deep(root: Path) -> None:
    """Paths of 20000 characters, a hundred folders down."""
    folder = os.open(root, os.O_RDONLY)
    for _ in range(100):
        os.mkdir(NAME, dir_fd=folder)
        inner = os.open(NAME, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.symlink("a", b"link", dir_fd=folder)
    os.close(folder)


@pytest.mark.e2e
@pytest.mark.parametrize("fill", [plain, links, odd_names, special, closed, deep])
def test_a_sent_tree_arrives_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket has room for 100 characters
    source = Path("source")
    source.mkdir()
    fill(source)
    unpack(pack(source), tmp_path / "there", tree_digest(source))
    assert tree_digest(tmp_path / "there") == tree_digest(source)
    assert modes(tmp_path / "there") == modes(source)


def modes(root: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in root.iterdir() if path.is_file() or path.is_dir()}


def test_file_times_arrive_as_bytecode_depends_on_them(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    plain(tmp_path / "source")
    os.utime(tmp_path / "source" / "main.py", ns=(1, 1_000_000_007))
    unpack(pack(tmp_path / "source"), tmp_path / "there", tree_digest(tmp_path / "source"))
    assert (tmp_path / "there" / "main.py").stat().st_mtime_ns == 1_000_000_007


def test_sent_files_gain_no_permissions(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "tool").write_text("")
    (tmp_path / "source" / "tool").chmod(0o6755)
    unpack(pack(tmp_path / "source"), tmp_path / "there", tree_digest(tmp_path / "source"))
    assert modes(tmp_path / "there") == {"tool": 0o755}


def test_reserved_names_are_not_sent(tmp_path: Path) -> None:
    (tmp_path / "source" / ".scbench").mkdir(parents=True)
    (tmp_path / "source" / "main.py").write_text("")
    unpack(pack(tmp_path / "source"), tmp_path / "there", tree_digest(tmp_path / "source"))
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["main.py"]


def test_a_tree_with_another_digest_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    plain(tmp_path / "source")
    planned = tree_digest(tmp_path / "source")
    (tmp_path / "source" / "main.py").write_text("print(2)")
    with pytest.raises(InfrastructureError, match="did it change since"):
        unpack(pack(tmp_path / "source"), tmp_path / "there", planned)


@pytest.mark.e2e
def test_a_tree_of_several_blocks_arrives_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "BLOCK_SIZE", 1 << 20)
    (tmp_path / "source").mkdir()
    for name in "abc":
        (tmp_path / "source" / name).write_bytes(os.urandom(3 << 20))
    blocks = list(pack(tmp_path / "source"))
    assert len(blocks) > 5
    unpack(blocks, tmp_path / "there", tree_digest(tmp_path / "source"))


@pytest.fixture
def problem(make_problem: Callable[..., ProblemConfig]) -> ProblemConfig:
    files = {
        "shared/words.txt": "a b", "shared/more/tool": "", "tests/data/in.txt": "1", "tests/__pycache__/x.pyc": "",
        "solutions/checkpoint_1/main.py": "", "checkpoint_1.md": "",
    }  # fmt: skip
    assets = {"words": {"path": "shared/words.txt"}, "more": {"path": "shared/more/"}, "data": {"path": "tests/data"}}
    made = make_problem({"test_checkpoint_1.py": "def test(): pass"}, config={"static_assets": assets}, files=files)
    (made.path / "shared" / "more" / "tool").chmod(0o755)
    (made.path / "tests" / "linked.txt").symlink_to("../shared/words.txt")
    return made


def test_a_problem_arrives_with_what_its_evaluation_reads(problem: ProblemConfig, tmp_path: Path) -> None:
    digest, packed = pack_problem(problem)
    unpack(packed, tmp_path / "there", digest)
    assert sorted(str(path.relative_to(tmp_path / "there")) for path in (tmp_path / "there").rglob("*")) == [
        "config.yaml", "shared", "shared/more", "shared/more/tool", "shared/words.txt", "tests", "tests/conftest.py",
        "tests/data", "tests/data/in.txt", "tests/linked.txt", "tests/test_checkpoint_1.py",
    ]  # fmt: skip
    moved = problem.at(tmp_path / "there")
    checkpoint = problem.checkpoint(1)
    there, here = (checkpoint_inputs(one, checkpoint, Contents.of(one)).tests_digest for one in (moved, problem))
    assert there == here
    assert moved.digest(moved.checkpoint(1)) == problem.digest(checkpoint)
    assert ProblemConfig.from_yaml(tmp_path / "there").model_dump() == problem.model_dump()


def test_the_same_content_has_the_same_digest_wherever_it_lies(problem: ProblemConfig, tmp_path: Path) -> None:
    digest, packed = pack_problem(problem)
    unpack(packed, tmp_path / "there", digest)
    assert pack_problem(problem.at(tmp_path / "there"))[0] == digest
    (problem.path / "solutions" / "checkpoint_1" / "main.py").write_text("another solution")
    assert pack_problem(problem)[0] == digest
    (problem.path / "tests" / "data" / "in.txt").write_text("2")
    assert pack_problem(problem)[0] != digest


def test_an_asset_whose_path_leads_out_by_its_words(make_problem: Callable[..., ProblemConfig]) -> None:
    """By way of a link it is inside the problem; a copy has no links."""
    made = make_problem({"test_checkpoint_1.py": ""}, files={"a/b/c/file": "", "a/word": ""})
    (made.path / "link").symlink_to("a/b/c")
    config = (made.path / "config.yaml").read_text() + "static_assets: {word: {path: link/../../../a/word}}\n"
    (made.path / "config.yaml").write_text(config)
    with pytest.raises(ConfigError, match=r"static_assets\.word\.path: write it without"):
        pack_problem(ProblemConfig.from_yaml(made.path))


def test_fetched_once_and_again_when_damaged(problem: ProblemConfig, tmp_path: Path) -> None:
    digest, packed = pack_problem(problem)
    fetched = []

    def fetch() -> bytes:
        fetched.append(digest)
        return packed

    places = {received_problem(Cache(tmp_path), digest, fetch) for _ in range(3)}
    assert len(fetched) == len(places) == 1
    (folder,) = places
    (folder / "tests" / "conftest.py").write_text("")
    assert tree_digest(received_problem(Cache(tmp_path), digest, fetch)) == digest
    assert len(fetched) == 2


def test_a_problem_with_another_digest_is_not_cached(problem: ProblemConfig, tmp_path: Path) -> None:
    _, packed = pack_problem(problem)
    with pytest.raises(InfrastructureError, match="not the one that was planned"):
        received_problem(Cache(tmp_path), "0" * 64, lambda: packed)
    assert list((tmp_path / "arrivals").glob("[!.]*")) == []


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (HERE, None),
        (NodeVersions("0.4", "3-abc", "3.11"), "it has slop-code 0.4, expected 0.5"),
        (NodeVersions("0.5", "2-abc", "3.11"), "it has evaluation 2-abc, expected 3-abc"),
        (NodeVersions("0.5", "3-abc", "3.12"), "it has python 3.12, expected 3.11"),
    ],
)
def test_the_version_that_differs_is_named(there: NodeVersions, message: str | None) -> None:
    assert there.difference(HERE) == message


def test_folders_hidden_here_are_hidden_on_the_node(problem: ProblemConfig, tmp_path: Path) -> None:
    """A node may have the same files at the same places."""
    work = JobRequest(
        problem=problem, checkpoint="checkpoint_1", environment=load_environment("local"), submission=tmp_path / "a",
        digest="0", hidden=(tmp_path / "run", Path("out")),
    )  # fmt: skip
    sent = request_for_node(work)
    assert sent.hidden == (problem.path, tmp_path / "run", Path.cwd() / "out")
    assert sent == replace(work, submission=Path(), hidden=sent.hidden)


def test_a_problem_that_is_too_large_is_the_mistake_of_its_author(
    problem: ProblemConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "MAX_PROBLEM_SIZE", 0)
    with pytest.raises(ConfigError, match="tests and assets have more than 0 MiB, too much to be sent"):
        pack_problem(problem)
