"""Timing in rounds: each round runs every candidate once, so that all see the same machine."""

from __future__ import annotations

import os
import resource
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
"""Runs the command, and prints the peak memory of its process in kilobytes."""


class BenchError(Exception):
    """A program that was to be measured failed, so there is no figure."""


@dataclass(frozen=True, slots=True)
class Spent:
    seconds: float
    mebibytes: float


def clean_environment(**extra: str) -> dict[str, str]:
    """Bytecode is written and kept for all candidates, whatever the variables of this shell say."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return {**kept, **extra}


def seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def processor_seconds(action: Callable[[], object]) -> float:
    """Time that the processes which the action starts and waits for spend on a processor, in user and system mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def in_turns(
    actions: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    warm: int = 1,
    clock: Callable[[Callable[[], object]], float] = seconds,
) -> dict[str, list[float]]:
    """Seconds of each candidate. Rounds start with different candidates; the first `warm` rounds do not count."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    names = list(actions)
    for number in range(warm + rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            taken = clock(actions[name])
            if number >= warm:
                times[name].append(taken)
    return times


def run(argv: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Standard output of a program that has to succeed."""
    process = subprocess.run(argv, cwd=cwd, env=env or clean_environment(), capture_output=True, text=True)
    if process.returncode != 0:
        raise BenchError(
            f"{argv[0]} exited with {process.returncode}\n{process.stdout[-2000:]}\n{process.stderr[-2000:]}"
        )
    return process.stdout


def ours(*arguments: object) -> Spent:
    """Run a `slop-code` command that has to succeed, in a process of its own."""
    began = time.perf_counter()
    argv = [sys.executable, "-c", OURS, *map(str, arguments)]
    process = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True)
    taken = time.perf_counter() - began
    if process.returncode != 0:
        raise BenchError(f"slop-code {arguments[0]} exited with {process.returncode}\n{process.stderr[-2000:]}")
    return Spent(taken, peak_in(process.stderr))


def peak_in(printed: str) -> float:
    return int(printed.rpartition("PEAK ")[2].split()[0]) / 1024
