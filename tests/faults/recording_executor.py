"""slop-code, with an executor that writes down which submission it is given before it begins, and which ones fail.

Nothing is imported before slop-code itself does: a signal finds it in the same places.
"""

from __future__ import annotations

import os
import sys

import slop_code.__main__ as entry

plain = entry.run_command


def counted() -> int:
    from slop_code.runs import executors
    from slop_code.runs.executors import thread_executor as threads

    class Counted(threads.ThreadExecutor):
        def submit(self, work):  # type: ignore[no-untyped-def]
            note("begun", work)
            try:
                future = super().submit(work)
            except BaseException:
                note("failed", work)
                raise
            future.add_done_callback(lambda ended: None if judged(ended) else note("failed", work))
            return future

    sys.modules["__main__"].Counted = Counted  # type: ignore[attr-defined]
    executors.BUILT_IN["threads"] = "__main__:Counted"
    return plain()


def note(what, work):  # type: ignore[no-untyped-def]
    with open(os.environ["FAULTS_RECORD"], "a") as file:
        file.write(f"{what} {os.getpid()} {len(work.attempts)} {work.digest}\n")


def judged(future):  # type: ignore[no-untyped-def]
    if future.cancelled() or future.exception() is not None:
        return False
    return future.result().facts.state == "evaluated"


if __name__ == "__main__":
    entry.run_command = counted
    sys.exit(entry.main())
