"""The host's uv and Python interpreter, and the variables that lead uv to the package index."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

from slop_code.errors import InfrastructureError

NETWORK_VARIABLES = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL",
    "UV_HTTP_TIMEOUT", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS",
)  # fmt: skip
"""The only variables of the host that set-up gets."""


def network_variables() -> dict[str, str]:
    return {name: os.environ[name] for name in NETWORK_VARIABLES if name in os.environ}


def base_python() -> str:
    """The interpreter itself, also when this process runs in a virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@functools.cache
def uv_paths() -> tuple[Path, Path]:
    """uv and uvx, from the package's own dependency, else from PATH."""
    try:
        from uv import find_uv_bin

        uv = Path(find_uv_bin())
    except (ImportError, FileNotFoundError):
        system = shutil.which("uv")
        if system is None:
            raise InfrastructureError("uv is not installed; run `pip install uv`") from None
        uv = Path(system)
    uv = uv.resolve()
    uvx = uv.with_name("uvx")
    if not uvx.exists():
        raise InfrastructureError(f"{uvx}: uvx is not beside uv; reinstall uv with `pip install uv`")
    return uv, uvx


def uv_identity() -> list[int]:
    """Size and time of the file, which differ between versions of uv."""
    info = uv_paths()[0].stat()
    return [info.st_size, info.st_mtime_ns]
