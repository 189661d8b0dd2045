"""Observation of each effect of an attack, and of none."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.attacks import leftovers
from slop_code.attacks.attack import Effect
from slop_code.attacks.attack_host import EARNED, TEST_COUNT, open_host
from slop_code.attacks.effects import CHUNK, MARKUP, MAX_BYTES, Observation, ObservedVerdict, observe, observe_verdict
from slop_code.attacks.leftovers import TAG, files, find_leftovers
from slop_code.attacks.trial import HONEST

FORK_ON = """
import os, select
while not select.select([0], [], [], 0.02)[0]:
    if os.fork():
        os._exit(0)
"""
"""A process that replaces itself by its child until its standard input is closed."""


@pytest.fixture
def host(problem, tmp_path):
    with open_host(tmp_path / "host", problem, HONEST) as host:
        host.output.mkdir()
        yield host


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (ObservedVerdict(EARNED, TEST_COUNT), []),
        (ObservedVerdict(EARNED, TEST_COUNT, terminal="line\n\tline", page="&lt;script&gt;"), []),
        (ObservedVerdict(EARNED | {"test_secret"}, TEST_COUNT), [Effect.GAIN]),
        (ObservedVerdict(EARNED, TEST_COUNT, "no verdict"), [Effect.LOSS]),
        (ObservedVerdict(EARNED, TEST_COUNT - 1), [Effect.LOSS]),
        (ObservedVerdict(EARNED - {"test_last"}, TEST_COUNT), [Effect.LOSS]),
        (ObservedVerdict(frozenset({"test_claim"}), 0), [Effect.GAIN, Effect.LOSS]),
        (ObservedVerdict(EARNED, TEST_COUNT, terminal="\x1b[2J"), [Effect.RAW]),
        (ObservedVerdict(EARNED, TEST_COUNT, terminal="\x9b2J"), [Effect.RAW]),
        (ObservedVerdict(EARNED, TEST_COUNT, terminal="\u202e"), [Effect.RAW]),
        (ObservedVerdict(EARNED, TEST_COUNT, terminal="over\rwritten"), [Effect.RAW]),
        (ObservedVerdict(EARNED, TEST_COUNT, page=MARKUP), [Effect.RAW]),
    ],
)  # fmt: skip
def test_effects_on_the_verdict(verdict, expected):
    assert [observation.effect for observation in observe_verdict(verdict)] == expected


def leak(host):
    (host.output / "log").write_text(f"a key: {host.key}")


def change(host):
    (host.folder / "outside/keep.txt").write_text("changed")


def change_far_away(host):
    host.distant_file.write_text("changed")


def flood(host):
    (host.output / "log").touch()
    os.truncate(host.output / "log", MAX_BYTES + 1)


def leak_in_a_flood(host):
    """On the border of two of the pieces in which it is read."""
    (host.output / "log").write_bytes(bytes(CHUNK - 10) + host.key.encode())
    os.truncate(host.output / "log", MAX_BYTES + 1)


def leave_a_program(host):
    (host.output / "program").touch()
    (host.output / "program").chmod(0o4755)


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        (leak, [Effect.LEAKED]),
        (leak_in_a_flood, [Effect.FLOODED, Effect.LEAKED]),
        (change, [Effect.CHANGED]),
        (change_far_away, [Effect.CHANGED]),
        (flood, [Effect.FLOODED]),
        (leave_a_program, [Effect.LEFT]),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_effects_on_the_host(host, does, expected):
    does(host)
    assert [observation.effect for observation in observe(host, ObservedVerdict(EARNED, TEST_COUNT))] == expected


def test_all_of_it_together(host):
    leak(host)
    found = observe(host, ObservedVerdict(EARNED, TEST_COUNT - 1, inside=(Observation(Effect.LEFT, "x"),)))
    assert [observation.effect for observation in found] == [Effect.LOSS, Effect.LEFT, Effect.LEAKED]


def test_the_host_has_a_secret_away_from_its_folder(problem, tmp_path):
    with open_host(tmp_path / "host", problem, HONEST) as found:
        assert found.key in found.distant_file.read_text()
        assert not found.distant_file.is_relative_to(tmp_path)
    assert not found.distant_file.exists()


def test_an_abstract_socket_is_a_leftover(tmp_path):
    tag = secrets.token_hex(8)
    assert list(find_leftovers(tag, tmp_path)) == []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{tag}")
        assert list(find_leftovers(tag, tmp_path)) == ["something of it is in /proc/net/unix"]


@pytest.mark.e2e
@pytest.mark.parametrize("known", ["variable", "folder", "arguments"])
def test_a_process_that_is_left(tmp_path, monkeypatch, known):
    monkeypatch.setattr(leftovers, "END_S", 0.1)
    tag = secrets.token_hex(8)
    env = {TAG: tag} if known == "variable" else {}
    argv = ["sed", f"s/{tag}//"] if known == "arguments" else ["cat"]
    cwd = tmp_path if known == "folder" else None
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=env, cwd=cwd) as process:
        while process.poll() is None and not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            pass  # it has become another program, and has no memory yet
        assert list(find_leftovers(tag, tmp_path)) == [f"process {process.pid} is still there"]


@pytest.mark.e2e
def test_a_process_that_lives_on_under_new_numbers_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "END_S", 0.5)
    tag = secrets.token_hex(8)
    with subprocess.Popen([sys.executable, "-c", FORK_ON], stdin=subprocess.PIPE, env={TAG: tag}) as process:
        assert process.wait() == 0
        assert {text.split()[0] for text in find_leftovers(tag, tmp_path)} == {"process"}


@pytest.mark.e2e
def test_a_process_that_ends_a_moment_later_is_not_left(tmp_path):
    tag = secrets.token_hex(8)
    with subprocess.Popen(["sleep", "0.5"], env={TAG: tag}):
        assert list(find_leftovers(tag, tmp_path)) == []


@pytest.mark.parametrize(
    ("path", "depth", "is_seen"),
    [
        ("TAG", 1, True),
        ("a-TAG-b", 1, True),
        ("below/TAG", 1, False),
        ("below/TAG", 2, True),
        ("other", 2, False),
        ("host/TAG", 2, False),
        ("link/TAG", 2, False),
    ],
)
def test_files_that_are_left(tmp_path, path, depth, is_seen):
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "folder"
    (folder / path).parent.mkdir(parents=True)
    (folder / path).touch()
    if path.startswith("link"):
        (folder / "link").rename(tmp_path / "elsewhere/folder")
        (folder / "link").symlink_to(tmp_path / "elsewhere/folder")
    assert list(files("TAG", folder / "host", [(folder, depth)])) == ([str(folder / path)] if is_seen else [])


def test_a_place_is_not_looked_through_without_end(tmp_path):
    for number in range(4):
        (tmp_path / str(number)).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below/TAG").touch()
    (tmp_path / "TAG").touch()
    assert list(files("TAG", tmp_path / "host", [(tmp_path, 2)], max_entries=4)) == [str(tmp_path / "TAG")]
