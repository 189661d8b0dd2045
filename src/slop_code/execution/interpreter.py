"""The interpreter that everything here runs on, and what of the host's environment leads to packages for it."""

from __future__ import annotations

import os
import platform
import sys

NETWORK_VARIABLES = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL",
    "UV_HTTP_TIMEOUT", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS",
)  # fmt: skip
"""All that set-up gets of the host's environment: the way to the package index."""


def network_variables() -> dict[str, str]:
    return {name: os.environ[name] for name in NETWORK_VARIABLES if name in os.environ}


def base_python() -> str:
    """The interpreter behind a virtual environment, if this is one."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def python_identity() -> list[str]:
    return [platform.python_implementation(), platform.python_version(), platform.machine(), base_python()]
