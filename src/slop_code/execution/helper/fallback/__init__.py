"""The native helper's stand-in for processors that none was built for: the same modes, messages and packets in Python.

The parts mirror the C files and travel as one script, which needs Python 3.9 and its standard library. A call of a test
loads `shared`, `show` and `run` alone: what it costs is mostly what Python takes to start and to compile them.

One thing the native helper has over it: that is linked statically, while an interpreter lets LD_PRELOAD and
LD_LIBRARY_PATH, where a test sets them for a call, decide what is loaded into the launcher.
"""

from __future__ import annotations

from pathlib import Path

PARTS = ("main", "shared", "show", "run", "kernel", "serve", "archive", "pair", "seal")
PLACES = ("/usr/local/bin/python3", "/usr/bin/python3", "/bin/python3", "/opt/conda/bin/python3")
"""Not the path: a launcher runs in the judge's box with a path that the tests may have let the submission into."""

SHELL = f"""#!/bin/sh
''':'
for python in {" ".join(PLACES)}; do
    [ -x "$python" ] && exec "$python" -I -S "$0" "$@"
done
echo "slop-code: no Python for the helper: none of {", ".join(PLACES)}" >&2
exit 125
'''
"""
"""A shell looks for the interpreter and takes the rest for a text; it may add PWD to what a call hands over."""

LOADER = '''
import sys


class Parts:
    """Finds the modules that this file carries; the packages around them are empty."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in SOURCES or PACKAGE.startswith(name):
            return type(sys.__spec__)(name, cls, is_package=name not in SOURCES)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        exec(compile(SOURCES.get(module.__name__, ""), module.__name__, "exec"), module.__dict__)


sys.meta_path.insert(0, Parts)
sys.dont_write_bytecode = True
'''


def script(interpreter: str | None = None) -> str:
    """The one file: it starts with this interpreter, or with the first that a shell finds in `PLACES`."""
    sources = {f"{__name__}.{part}": Path(__file__).with_name(f"{part}.py").read_text() for part in PARTS}
    return "\n".join(
        [
            f"#!{interpreter} -IS" if interpreter else SHELL,
            f"PACKAGE = {__name__!r}",
            f"SOURCES = {sources!r}",
            LOADER,
            f"from {__name__}.main import start\n\nstart()\n",
        ]
    )
