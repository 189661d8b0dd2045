"""The native helper program, `slopbox`: built from the C sources in this folder, a file per processor."""

from __future__ import annotations

import platform
from pathlib import Path

from slop_code.errors import InfrastructureError

LAUNCHER = "slop-run"
"""Name under which the helper is the launcher, which hands a call of a test over to the box of the subject."""


class HelperMissingError(InfrastructureError):
    """No helper was built for this processor."""


def helper_path(machine: str | None = None) -> Path:
    """The helper for a processor (default: this machine's); a HelperMissingError says how to build it."""
    machine = machine or platform.machine()
    path = Path(__file__).parent / f"slopbox-{machine}"
    if not path.is_file():
        raise HelperMissingError(
            f"{path}: the native helper is not built; install the slop-code wheel, which has it for x86_64 and "
            f"aarch64, or build it from source with a C compiler or PyPI's ziglang: "
            f"SLOPBOX_TARGETS={machine} pip install --force-reinstall --no-deps --no-binary slop-code slop-code"
        )
    return path
