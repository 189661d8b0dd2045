"""A port for a server that is started later."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket


def free_port() -> str:
    """A port below those that the kernel assigns by itself, so that it stays free."""
    return str(next(filter(_is_free, itertools.count(10_000 + os.getpid() % 20_000))))


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False
