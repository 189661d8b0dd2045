"""The uv that comes with the package."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from slop_code.errors import InfrastructureError


@functools.cache
def uv_paths() -> tuple[Path, Path]:
    """uv and uvx, from the package's own dependency, else from PATH."""
    try:
        from uv import find_uv_bin

        uv = Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        if found is None:
            raise InfrastructureError("uv is not installed; run `pip install uv`") from None
        uv = Path(found)
    uv = uv.resolve()
    uvx = uv.with_name("uvx")
    if not uvx.exists():
        raise InfrastructureError(f"{uvx}: uvx is not beside uv; reinstall uv with `pip install uv`")
    return uv, uvx


def uv_identity() -> list[int]:
    """Tells one uv from another without asking it."""
    info = uv_paths()[0].stat()
    return [info.st_size, info.st_mtime_ns]
