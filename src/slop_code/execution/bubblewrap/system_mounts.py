"""What of the host both boxes see, read-only: programs and libraries, nobody's data."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOTS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
ETC = (
    "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "pki/tls/certs",
    "pki/ca-trust/extracted", "services", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
ETC_GLOBS = ("java*", "perl", "php", "python*", "R")
OURS = Path(__file__).parent / "etc"


@functools.cache
def system_paths() -> tuple[str, ...]:
    """Host paths that appear at the same place in a box: the interpreter's home where it is not in /usr."""
    etc = [Path("/etc") / name for name in ETC]
    for pattern in ETC_GLOBS:
        etc += sorted(Path("/etc").glob(pattern))
    found = [Path(root) for root in ROOTS] + etc
    prefix = Path(sys.base_prefix).resolve()
    if not within(prefix, ["/usr", "/opt"]):
        found.append(prefix)
    return tuple(str(path) for path in found if path.exists())


def system_arguments(hidden: Iterable[Path] = ()) -> list[str]:
    """bwrap's options for the system, at the places it has on the host."""
    arguments: list[str] = []
    paths = system_paths()
    for path in paths:
        if Path(path).is_symlink() and Path(path).parent == Path("/"):
            arguments += ["--symlink", os.readlink(path), path]
        else:
            arguments += ["--ro-bind", path, path]
    for name in ("passwd", "group", "hosts", "nsswitch.conf"):
        arguments += ["--ro-bind", str(OURS / name), f"/etc/{name}"]
    for secret in (path.resolve() for path in hidden if path.exists()):
        if within(secret, [Path(path).resolve() for path in paths]):
            arguments += ["--tmpfs", str(secret)]
    return arguments


def further_arguments(paths: Iterable[Path]) -> list[str]:
    """Read-only mounts for what does not come with the system."""
    system = system_paths()
    wanted = [str(path) for path in paths if not within(path, system)]
    return [word for path in wanted for word in ("--ro-bind", path, path)]


def within(path: Path, roots: Iterable[str | Path]) -> bool:
    return any(path == Path(root) or Path(root) in path.parents for root in roots)
