"""What an attack did is seen, each thing by itself, and nothing where it did nothing."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess

import pytest

from slop_code.attacks.attack import Effect
from slop_code.attacks.seen import LARGE, MARKUP, Sight, Verdict, effects, left_over
from slop_code.attacks.trial import HONEST
from slop_code.attacks.world import EARNED, TAG, TESTS, lay_problem, opened


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return lay_problem(tmp_path_factory.mktemp("attacked") / "lines")


@pytest.fixture
def world(problem, tmp_path):
    with opened(tmp_path / "world", problem, HONEST) as found:
        found.out.mkdir()
        yield found


def seen(world, verdict):
    return [sight.effect for sight in effects(world, verdict)]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(EARNED, TESTS), []),
        (Verdict(EARNED, TESTS, shown="line\n\tline", page="&lt;script&gt;"), []),
        (Verdict(EARNED | {"test_secret"}, TESTS), [Effect.GAIN]),
        (Verdict(EARNED, TESTS, "no verdict"), [Effect.LOSS]),
        (Verdict(EARNED, TESTS - 1), [Effect.LOSS]),
        (Verdict(EARNED - {"test_last"}, TESTS), [Effect.LOSS]),
        (Verdict(frozenset({"test_claim"}), 0), [Effect.GAIN, Effect.LOSS]),
        (Verdict(EARNED, TESTS, shown="\x1b[2J"), [Effect.RAW]),
        (Verdict(EARNED, TESTS, shown="\x9b2J"), [Effect.RAW]),
        (Verdict(EARNED, TESTS, shown="\u202e"), [Effect.RAW]),
        (Verdict(EARNED, TESTS, shown="over\rwritten"), [Effect.RAW]),
        (Verdict(EARNED, TESTS, page=MARKUP), [Effect.RAW]),
        (Verdict(EARNED, TESTS, within=(Sight(Effect.LEFT, "x"),)), [Effect.LEFT]),
    ],
)  # fmt: skip
def test_in_the_verdict(world, verdict, expected):
    assert seen(world, verdict) == expected


def leak(world):
    (world.out / "log").write_text(f"a key: {world.key}")


def change(world):
    (world.folder / "outside/keep.txt").write_text("changed")


def flood(world):
    os.close(os.open(world.out / "log", os.O_CREAT | os.O_WRONLY))
    os.truncate(world.out / "log", LARGE + 1)


def leave_a_program(world):
    (world.out / "program").touch()
    (world.out / "program").chmod(0o4755)


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        (leak, Effect.LEAKED),
        (change, Effect.CHANGED),
        (flood, Effect.FLOODED),
        (leave_a_program, Effect.LEFT),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_on_the_host(world, does, expected):
    does(world)
    assert seen(world, Verdict(EARNED, TESTS)) == [expected]


def test_what_is_left():
    tag = secrets.token_hex(8)
    assert list(left_over(tag)) == []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{tag}")
        assert list(left_over(tag)) == ["something of it is in /proc/net/unix"]
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={**os.environ, TAG: tag}) as process:
        assert list(left_over(tag)) == [f"process {process.pid} is still there"]
