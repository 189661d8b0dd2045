"""Run a command with Node.js at hand: `python tests/with_node.py COMMAND…`, which takes this process's place.

Where there is none, root gets Debian's. Without it, tests of references in JavaScript are skipped; with CI=true that
is a failure instead.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from private_daemon import NoDockerError, install

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(command: Sequence[str]) -> int:
    if not command:
        print("usage: with_node.py COMMAND...", file=sys.stderr)
        return 2
    try:
        install("node", "nodejs", {"PATH": os.defpath, **os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    except NoDockerError as missing:
        if os.environ.get("CI") == "true":
            print(f"no Node.js for the tests: {missing}", file=sys.stderr)
            return 1
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        print(f"{command[0]}: {problem.strerror}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
