"""The native helper program, `slopbox`: built from the C sources in this folder, a file per processor."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Sequence

LAUNCHER = "slop-run"
"""Name under which the helper is the launcher, which hands a call of a test over to the box of the subject."""


class HelperError(InfrastructureError):
    """No helper was built for this processor, or this machine does not execute it."""


def build_advice(machine: str) -> str:
    return (
        "install the slop-code wheel, which has it for x86_64 and aarch64, or build it from source with a C compiler "
        f"or PyPI's ziglang: SLOPBOX_TARGETS={machine} pip install --force-reinstall --no-deps --no-binary slop-code "
        "slop-code"
    )


def helper_path(machine: str | None = None) -> Path:
    """The helper for a processor, by default this machine's. A HelperError says how to build it."""
    machine = machine or platform.machine()
    path = Path(__file__).parent / f"slopbox-{machine}"
    if not path.is_file():
        raise HelperError(f"{path}: the native helper is not built; {build_advice(machine)}")
    return path


def reaped(argv: Sequence[str]) -> list[str]:
    """The command under `slopbox reap`: it has soft limits of its own, and leaves no process when it or we end.

    Only Linux has what this takes; elsewhere, the command itself.
    """
    if not sys.platform.startswith("linux"):
        return list(argv)
    return [str(helper_path()), "reap", str(os.getpid()), *argv]
