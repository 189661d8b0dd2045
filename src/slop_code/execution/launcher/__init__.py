"""Where the native helper is; `slopbox.h` says what it does."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path


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


def helper_path() -> Path | None:
    """The helper for this machine's processor, None where none was built."""
    path = Path(__file__).parent / f"slopbox-{platform.machine()}"
    return path if path.exists() else None


def helper_for(machine: str) -> Helper:
    return Helper((Path(__file__).parent / f"slopbox-{machine}").read_bytes())
