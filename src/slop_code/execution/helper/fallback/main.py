"""Which mode is meant; only that one is loaded."""

from __future__ import annotations

import os
import sys

from slop_code.execution.helper.fallback.shared import die, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn


def mode_named(name: str) -> Callable[[Sequence[str]], int]:
    if name == "run":
        from slop_code.execution.helper.fallback.run import run_main

        return run_main
    if name == "serve":
        from slop_code.execution.helper.fallback.serve import serve_main

        return serve_main
    if name == "pair":
        from slop_code.execution.helper.fallback.pair import pair_main

        return pair_main
    if name == "measure":
        from slop_code.execution.helper.fallback.archive import measure_main

        return measure_main
    from slop_code.execution.helper.fallback import seal

    others: dict[str, Callable[[Sequence[str]], int]] = {
        "seal": seal.seal_main,
        "join": seal.join_main,
        "reap": seal.reap_main,
        "merge": seal.merge_main,
        "plain": seal.plain_main,
        "id": lambda _: print(os.getuid(), os.getgid(), flush=True) or 0,
    }
    if name not in others:
        die(f"unknown mode {name}")
    return others[name]


def main(argv: Sequence[str]) -> int:
    # The interpreter's handler would be an opening in process 1 of a box, which takes no signal it has no handler for.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.path.basename(argv[0]) == "run":
        return mode_named("run")(argv[1:])
    if len(argv) < 2:
        die("usage: slopbox pair|serve|seal|join|reap|run|id|measure|merge|plain ...")
    return mode_named(argv[1])(argv[2:])


def start() -> NoReturn:
    try:
        os._exit(main(sys.argv))
    except OSError as error:
        die(error.strerror or "failed")
