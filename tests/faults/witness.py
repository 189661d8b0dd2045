"""slop-code, with an executor that writes down which submission it is given before it begins.

Nothing is imported before slop-code itself does: a signal finds it in the same places.
"""

from __future__ import annotations

import os
import sys

import slop_code.__main__ as entry

plain = entry.run_command


def counted() -> int:
    from slop_code.runs import executors
    from slop_code.runs.executors import threads

    class Counted(threads.Threads):
        def submit(self, work):  # type: ignore[no-untyped-def]
            with open(os.environ["FAULTS_WITNESS"], "a") as file:
                file.write(work.digest + "\n")
            return super().submit(work)

    sys.modules["__main__"].Counted = Counted  # type: ignore[attr-defined]
    executors.BUILT_IN["threads"] = "__main__:Counted"
    return plain()


if __name__ == "__main__":
    entry.run_command = counted
    sys.exit(entry.main())
