"""Processors of this machine: their number, places that evaluations divide, and free processor time and memory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import PLACES, open_lock, try_lock
from slop_code.execution.process import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code.execution.cache import Cache

PROBE_S = 60.0
COMPUTE = """
import time
began, used = time.monotonic(), time.process_time()
while time.monotonic() < began + 0.3:
    pass
print((time.process_time() - used) / (time.monotonic() - began))
"""


def available_cpus() -> int:
    """Processors that this process may use; all processors where the system has no affinity."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def processor_places(cache: Cache) -> Iterator[Callable[[int], int]]:
    """Yields a function that takes up to a number of free places, without waiting, and returns how many it took.

    There is a place for each processor. A place is a locked file, so that it is free again when its holder ends,
    however that happens. Where the cache cannot have locks, every place counts as free.
    """
    with contextlib.ExitStack() as held:

        def take(wanted: int) -> int:
            taken = 0
            for number in range(available_cpus()):
                if taken == wanted:
                    break
                try:
                    lock = open_lock(cache.root / PLACES / str(number))
                    held.callback(lock.close)
                    taken += try_lock(lock, fcntl.LOCK_EX)
                except OSError:
                    return min(wanted, available_cpus())
            return taken

        yield take


def processor_share() -> float:
    """1 on a machine with a free processor; 0 if the probe fails, as a busy machine gives no verdict.

    The probe has this process's affinity, control group and priority.
    """
    with contextlib.suppress(ValueError, InfrastructureError):
        done = capture([sys.executable, "-I", "-S", "-c", COMPUTE], PROBE_S)
        return max(0.0, min(1.0, float(done.output)))
    return 0.0


def memory_share(limit: int) -> float:
    """The part of so many bytes that the machine has free, at most 1; 1 where the system does not tell."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable:"))
        return min(1.0, int(available.split()[1]) * 1024 / limit)
    return 1.0
