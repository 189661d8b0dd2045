"""Distortions: programs that run the reference, in any language, and change its results."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.strength.python_solution import copy_solution, overwrite

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.execution.environment import EnvironmentSpec

INNER = ".distorted"
"""Folder with a whole copy of the reference, in which it finds its files under their names."""

SCRIPT = ".distort.sh"
_CRASH = "Traceback (most recent call last): the program broke off"


@dataclass(frozen=True, slots=True)
class Distortion:
    name: str
    """What the program does, as a phrase."""

    script: str
    """A script for `sh`, in which the function `real` runs the reference."""


FAITHFUL = Distortion("changes nothing", 'real "$@"')
_NOISE = """\
exec 4>&1
status=$(
    { { real "$@" 3>&- 4>&-; echo $? >&3; } | awk -v own=$$ "$add" >&4; } 3>&1
)
exit "$status"
"""
_ADD = """add='{ print $0 "~" own } END { if (!NR) print "~" own }'\n"""
DISTORTIONS = (
    Distortion("crashes at once", f'echo "{_CRASH}"; echo "{_CRASH}" >&2; exit 1'),
    Distortion("does nothing and ends with 0", "exit 0"),
    Distortion("changes every line of stdout", _ADD + _NOISE),
    Distortion("prints nothing on stdout", 'real "$@" >/dev/null'),
    Distortion("prints nothing on stderr", 'real "$@" 2>/dev/null'),
    Distortion("ends with another exit status", 'if real "$@"; then exit 99; else exit 0; fi'),
)
"""Those that make most tests fail come first."""


def can_distort(spec: EnvironmentSpec, entry_file: str, solution: Path) -> bool:
    """True where the entry file is a plain file, which can be replaced."""
    name = spec.entry(entry_file)[-1]
    return os.path.isfile(solution / name) and not os.path.islink(solution / name)


def distort(
    distortion: Distortion, spec: EnvironmentSpec, entry_file: str, solution: Path, folder: Path
) -> EnvironmentSpec:
    """Writes the program to the new `folder`; returns the environment that it runs in."""
    *command, file = spec.entry(entry_file)
    copy_solution(solution, folder)
    copy_solution(solution, folder / INNER)
    entry = folder / file
    script = _script(distortion, command, os.path.normpath(file))
    if spec.interpreter():
        # With another command than Python's, its environment would not be set up.
        (entry.parent / SCRIPT).write_text(script, encoding="utf-8")
        overwrite(entry, _SHIM)
        return spec
    overwrite(entry, script)
    if not command:
        return spec
    return spec.model_copy(update={"commands": spec.commands.model_copy(update={"command": "sh"})})


_SHIM = f"""\
import os
import sys

script = os.path.join(os.path.dirname(os.path.abspath(__file__)), {SCRIPT!r})
os.execv("/bin/sh", ["sh", script, *sys.argv[1:]])
"""


def _script(distortion: Distortion, command: list[str], file: str) -> str:
    inner = f"{'../' * file.count('/')}{INNER}/{file}"
    return f"""\
#!/bin/sh
case $0 in
    */*) here=${{0%/*}} ;;
    *) here=. ;;
esac
real() {{
    {shlex.join(command)} "$here/"{shlex.quote(inner)} "$@"
}}
{distortion.script}
"""
