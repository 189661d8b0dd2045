"""The command `slop-code`: its program, and the same in the test's process."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path

from slop_code.cli.main import run
from tests.conftest import restored_signal_handlers

SLOP_CODE = str(Path(sys.executable).with_name("slop-code"))


def slop_code(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in this process: it starts no interpreter and imports nothing."""
    words, printed = [str(argument) for argument in arguments], []
    with contextlib.ExitStack() as stack:
        for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr):
            printed.append(io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True))
            stack.enter_context(redirect(printed[-1]))
        stack.enter_context(contextlib.chdir(cwd or "."))
        stack.enter_context(restored_signal_handlers())
        status = run(words)
    out, err = (stream.buffer.getvalue().decode() for stream in printed)
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(words, status, out, err)
