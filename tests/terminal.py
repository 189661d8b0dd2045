"""The command on a terminal."""

import os
import select
import subprocess
from pathlib import Path
from typing import Any

from tests.command import SLOP_CODE

PATIENCE_S = 300


def on_a_terminal(
    *arguments: Any, cwd: Path | None = None, columns: int = 100, statuses: tuple[int, ...] = (0,)
) -> str:
    """All that the command writes to a terminal, colours and all."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40"}
    environment.pop("NO_COLOR", None)
    try:
        process = subprocess.Popen(
            [SLOP_CODE, *map(str, arguments)],
            cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment,
        )  # fmt: skip
        os.close(theirs)
        written = b""
        while select.select([ours], [], [], PATIENCE_S)[0]:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other end of the terminal was closed
                break
        assert process.wait(PATIENCE_S) in statuses, written
    finally:
        os.close(ours)
    return written.decode()
