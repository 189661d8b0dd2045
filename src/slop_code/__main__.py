"""The entry point of a process that lives for one command: starting and ending it costs as little as can be."""

from __future__ import annotations

import gc
import os
import sys

# Nothing else is imported up here, where an interruption would be a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import TextIOWrapper
    from typing import TextIO

INTERRUPTED = 130
"""As `cli.exits` has it, which may not be imported yet."""
READER_GONE = 141
"""What a shell says of a program that a closed pipe ended; never 0, which would read as passed."""


def main() -> None:
    """Interrupted while it is still being imported, it ends as it does later."""
    status = INTERRUPTED
    try:
        status = run_command()
    except KeyboardInterrupt:
        print("slop-code: interrupted", file=sys.stderr)
    sys.stderr.flush()
    # Taking the interpreter apart would take a tenth of a short evaluation.
    os._exit(status)


def run_command() -> int:
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    import contextlib

    open_streams()
    from slop_code.cli.main import run

    # What was imported stays to the end: no collection needs to look at it again.
    gc.freeze()
    gc.enable()
    status = READER_GONE
    with contextlib.suppress(BrokenPipeError):  # whoever read our output has seen enough
        status = run(sys.argv[1:])
        sys.stdout.flush()
    return status


def open_streams() -> None:
    """All three are there, take any text, and messages that nobody reads end nothing."""
    from typing import cast

    from slop_code._io import BestEffortStream

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed when we were started
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        cast("TextIOWrapper", stream).reconfigure(errors="backslashreplace")
    sys.stderr = cast("TextIO", BestEffortStream(sys.stderr))


if __name__ == "__main__":
    main()
