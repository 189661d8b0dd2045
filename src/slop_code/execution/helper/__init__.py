"""Where the helper is: `slopbox.h` says what it does, `fallback` does the same in Python where none was built."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from slop_code.execution.cache import Cache
from slop_code.execution.helper import fallback
from slop_code.execution.interpreter import base_python


@dataclass(frozen=True, slots=True)
class Helper:
    """A program for one processor, to be copied to where it is needed."""

    content: bytes

    @property
    def identity(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def write(self, path: Path) -> None:
        path.write_bytes(self.content)
        path.chmod(0o755)


def native(machine: str) -> Path | None:
    path = Path(__file__).parent / f"slopbox-{machine}"
    return path if path.exists() else None


def kind(machine: str) -> str:
    return "native" if native(machine) else "python"


def helper_for(machine: str) -> Helper:
    """For a container: the stand-in looks for the image's interpreter."""
    path = native(machine)
    return Helper(path.read_bytes() if path else fallback.script().encode())


@functools.cache
def helper_path() -> Path | None:
    """For this machine; None elsewhere than on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    if path := native(platform.machine()):
        return path
    stand_in = Helper(fallback.script(base_python()).encode())
    folder = Cache.default().root / "launchers"
    folder.mkdir(exist_ok=True)
    path = folder / stand_in.identity
    if not path.exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as new:
            stand_in.write(Path(new.name))
        os.replace(new.name, path)
    return path
