"""Entry point of the command `slop-code`, made for a fast start and a fast exit."""

from __future__ import annotations

import atexit
import gc
import os
import sys

# No other imports at module level: an interruption during them would print a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import TextIOWrapper
    from typing import TextIO

INTERRUPTED = 130
"""As in `cli.exit_codes`, which may not be imported yet."""
CLOSED_PIPE = 141
"""Exit code that a shell reports after SIGPIPE; never 0, which would mean passed."""


def main() -> None:
    """An interruption during the imports ends with the same status as a later interruption."""
    status = INTERRUPTED
    try:
        status = run_command()
    except KeyboardInterrupt:
        print("slop-code: interrupted", file=sys.stderr)
    atexit._run_exitfuncs()  # they remove what outlives a process, such as control groups
    sys.stderr.flush()
    # Shutting down the interpreter would take a tenth of a short evaluation.
    os._exit(status)


def run_command() -> int:
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    import contextlib

    open_streams()
    from slop_code.cli.main import run

    # Imported modules live to the end, so the garbage collector need not look at them again.
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 50)  # a command makes many records, and few cycles
    status = CLOSED_PIPE
    with contextlib.suppress(BrokenPipeError):  # the reader of our output has closed it
        status = run(sys.argv[1:])
        sys.stdout.flush()
    return status


def open_streams() -> None:
    """Makes all three streams exist and accept any text; a closed standard error raises nothing."""
    from typing import cast

    from slop_code._io import BestEffortStream

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed when the process was started
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        cast("TextIOWrapper", stream).reconfigure(errors="backslashreplace")
    sys.stderr = cast("TextIO", BestEffortStream(sys.stderr))


if __name__ == "__main__":
    main()
