"""Evaluations over a longer time: growth of memory, descriptors, threads and files, and what is left at the end."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import BenchError
from benchmarks.table import Row
from benchmarks.throughput.processor_time import descendants, settled_descendants
from slop_code.execution.bubblewrap.cgroups import PREFIX, group_parents
from slop_code.execution.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.throughput.tiny_evaluations import TinyEvaluator

SLICES = 10
"""Samples are taken after each, while no evaluation runs."""


@dataclass(frozen=True, slots=True)
class GrowthSample:
    evaluator_mib: float
    templates_mib: float
    """Resident memory of all processes that stay between evaluations; shared pages count more than once."""

    descriptors: float
    threads: float
    processes: float
    cache_files: float


UNITS = {
    "evaluator_mib": ("memory of the evaluator", "MiB"),
    "templates_mib": ("memory of the templates", "MiB"),
    "descriptors": ("open descriptors of the evaluator", "descriptors"),
    "threads": ("threads of the evaluator", "threads"),
    "processes": ("processes between evaluations", "processes"),
    "cache_files": ("files and folders of the cache", "entries"),
}


def growth(tiny: Sequence[TinyEvaluator], seconds: int) -> list[Row]:
    """Those in `tiny` take turns. They share an evaluator, whose templates are there already."""
    samples, done = [], 0
    for _ in range(SLICES):
        done += sum(tiny[0].outcomes(until(time.monotonic() + seconds / SLICES, tiny)))
        samples.append(sample())
    name = f"{seconds:,} s of evaluations, {tiny[0].evaluator.workers} workers"
    return [Row(f"{name}: done", "evaluations", (float(done),)), *growth_rows(name, samples)]


def until(end: float, tiny: Sequence[TinyEvaluator]) -> Iterator[TinyEvaluator]:
    """At least one of each."""
    for number, chosen in enumerate(itertools.cycle(tiny)):
        if number >= len(tiny) and time.monotonic() > end:
            return
        yield chosen


def growth_rows(name: str, samples: Sequence[GrowthSample]) -> list[Row]:
    made = []
    for field, (what, unit) in UNITS.items():
        first = f"{name}: {what}, after the first tenth"
        made.append(Row(first, unit, (getattr(samples[0], field),)))
        made.append(Row(f"{name}: {what}, after the last tenth", unit, (getattr(samples[-1], field),), first))
    return made


def sample() -> GrowthSample:
    status = Path("/proc/self/status").read_text()
    processes = settled_descendants()
    return GrowthSample(
        evaluator_mib=int(status.split("VmRSS:")[1].split()[0]) / 1024,
        templates_mib=sum(process.memory for process in processes) / (1 << 20),
        descriptors=len(os.listdir("/proc/self/fd")),
        threads=int(status.split("Threads:")[1].split()[0]),
        processes=sum(not process.is_zombie for process in processes),
        cache_files=sum(1 for _ in Cache.default().root.rglob("*")),
    )


def leftovers() -> set[str]:
    """Processes, session folders and control groups that are there while no evaluator is open."""
    left = {f"process {process.pid}" for process in descendants()}
    left |= {str(path) for path in Cache.default().sessions.glob("*")}
    return left | {str(path) for parent in group_parents() for path in parent.glob(f"{PREFIX}{os.getpid()}-*")}


def check_nothing_is_left(before: set[str]) -> None:
    if more := leftovers() - before:
        raise BenchError(f"left over after the evaluations: {', '.join(sorted(more))}")
