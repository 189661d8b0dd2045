"""Timing in rounds: each round runs every candidate once, so that all see the same machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

OURS = """
import os, sys
from slop_code.__main__ import run_command

status = run_command()
peak = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
print(f"\\nPEAK {peak}", file=sys.stderr, flush=True)
os._exit(status)
"""
"""The command, and then the most kilobytes that its own process held."""


class BenchError(Exception):
    """Something that was to be measured did not work: there is no figure."""


@dataclass(frozen=True, slots=True)
class Spent:
    seconds: float
    mebibytes: float


def clean_environment(**extra: str) -> dict[str, str]:
    """Bytecode is written and kept on both sides, whatever this shell says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return {**kept, **extra}


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def in_turns(actions: Mapping[str, Callable[[], object]], rounds: int, *, warm: int = 1) -> dict[str, list[float]]:
    """The seconds of each. Every round begins with another one; the first `warm` ones fill caches and do not count."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    names = list(actions)
    for number in range(warm + rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            taken = seconds(actions[name])
            if number >= warm:
                times[name].append(taken)
    return times


def run(argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """What a program that has to succeed printed."""
    done = subprocess.run(argv, cwd=cwd, env=env or clean_environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchError(f"{argv[0]} exited with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def ours(*arguments: object) -> Spent:
    """A `slop-code` command that has to succeed, as a process of its own from its start to its end."""
    began = time.perf_counter()
    argv = [sys.executable, "-c", OURS, *map(str, arguments)]
    done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True)
    taken = time.perf_counter() - began
    if done.returncode != 0:
        raise BenchError(f"slop-code {arguments[0]} exited with {done.returncode}\n{done.stderr[-2000:]}")
    return Spent(taken, peak_in(done.stderr))


def peak_in(printed: str) -> float:
    return int(printed.rpartition("PEAK ")[2].split()[0]) / 1024
