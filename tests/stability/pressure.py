"""A machine that has something else to do: processors, memory and disk, within bounds."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from slop_code.execution.process import cpu_load
from slop_code.execution.processors import available_cpus

if TYPE_CHECKING:
    from collections.abc import Iterator

MEBIBYTE = 1 << 20
MEMORY = 256 * MEBIBYTE
DISK = 64 * MEBIBYTE
CHURN = """
import os, sys
parent, memory, disk = map(int, sys.argv[1:])
while os.getppid() == parent:
    held = bytearray(memory)
    held[::4096] = b"x" * len(range(0, memory, 4096))
    with open("churn", "wb") as file:
        for _ in range(disk >> 20):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    os.unlink("churn")
    del held
"""


@contextlib.contextmanager
def pressure() -> Iterator[None]:
    """Every processor is kept busy, and one process takes and leaves memory and disk; all end with the block."""
    with cpu_load(available_cpus()), tempfile.TemporaryDirectory(prefix="slop-code-soak-") as folder:
        argv = [sys.executable, "-I", "-S", "-c", CHURN, str(os.getpid()), str(MEMORY), str(DISK)]
        churn = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            churn.kill()
            churn.wait()
