"""Run a command with a browser at hand: `python tests/with_browser.py COMMAND…`, which takes this process's place.

Where there is no Chromium without windows, root gets Debian's; pages take half the time of one with windows in it.
What the command finds in its environment:

    SLOP_CODE_TEST_BROWSER      the browser's program; set it to use another one
    SLOP_CODE_TEST_NO_BROWSER   why there is none; with CI=true that is a failure instead
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from private_daemon import UnavailableError, install

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "SLOP_CODE_TEST_BROWSER"
MISSING = "SLOP_CODE_TEST_NO_BROWSER"
CHROMIUM = "chromium-headless-shell"
PACKAGES = f"{CHROMIUM} libatomic1"  # the library is for the driver that the tests use


def main(command: Sequence[str]) -> int:
    if not command:
        print("usage: with_browser.py COMMAND...", file=sys.stderr)
        return 2
    environment = {name: value for name, value in os.environ.items() if name != MISSING}
    try:
        environment[PROGRAM] = environment.get(PROGRAM) or browser({"PATH": os.defpath, **environment})
    except UnavailableError as missing:
        if environment.get("CI") == "true":
            print(f"no browser for the tests: {missing}", file=sys.stderr)
            return 1
        environment[MISSING] = str(missing)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127


def browser(environment: dict[str, str]) -> str:
    install(CHROMIUM, PACKAGES, {**environment, "DEBIAN_FRONTEND": "noninteractive"})
    found = shutil.which(CHROMIUM, path=environment["PATH"])
    if found is None:
        raise UnavailableError(f"the package {CHROMIUM} brought no such command; {PROGRAM} can name one")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
