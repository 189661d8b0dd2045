"""The entry point of a process that lives for one command: starting and ending it costs as little as can be."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from slop_code.cli.main import run

    # What was imported stays to the end: no collection needs to look at it again.
    gc.freeze()
    gc.enable()
    status = 0
    try:
        status = run(sys.argv[1:])
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        pass  # whoever read our output has seen enough
    # Taking the interpreter apart would take a tenth of a short evaluation.
    os._exit(status)


if __name__ == "__main__":
    main()
