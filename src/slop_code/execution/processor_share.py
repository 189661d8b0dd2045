"""Probe of the machine: the share of a processor that a busy process gets."""

from __future__ import annotations

import contextlib
import sys

from slop_code.execution.process import capture

PROBE_S = 60.0
COMPUTE = """
import time
began, used = time.monotonic(), time.process_time()
while time.monotonic() < began + 0.3:
    pass
print((time.process_time() - used) / (time.monotonic() - began))
"""


def processor_share() -> float:
    """1 on a machine with a free processor. The probe has this process's affinity, control group and priority."""
    done = capture([sys.executable, "-I", "-S", "-c", COMPUTE], PROBE_S)
    with contextlib.suppress(ValueError):
        return max(0.0, min(1.0, float(done.output)))
    return 1.0
