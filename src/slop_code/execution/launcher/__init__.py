"""Where the native helper is; `slopbox.h` says what it does."""

from __future__ import annotations

import platform
from pathlib import Path


def helper_path() -> Path | None:
    """The helper for this machine's processor, None where none was built."""
    path = Path(__file__).parent / f"slopbox-{platform.machine()}"
    return path if path.is_file() else None
