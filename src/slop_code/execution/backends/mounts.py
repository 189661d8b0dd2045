"""What of the host both boxes see, read-only: programs and libraries, nobody's data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOTS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
ETC = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "magic", "mime.types", "pki/tls/certs", "pki/ca-trust/extracted", "protocols", "services",
    "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
ETC_GLOBS = ("java*", "perl", "php", "python*", "R")
OURS = Path(__file__).parent / "etc"




def system_paths() -> list[str]:
    """Host paths that appear at the same place in a box: the interpreter's home where it is not in /usr."""
    etc = [Path("/etc") / name for name in ETC]
    for pattern in ETC_GLOBS:
        etc += sorted(Path("/etc").glob(pattern))
    found = [Path(root) for root in ROOTS] + etc
    prefix = Path(sys.base_prefix).resolve()
    if not within(prefix, ["/usr", "/opt"]):
        found.append(prefix)
    return [str(path) for path in found if path.exists()]


def system_arguments(host: str, hidden: Iterable[Path]) -> list[str]:
    """bwrap's options for the system, from sources below `host`."""
    arguments: list[str] = []
    paths = system_paths()
    for path in paths:
        if Path(path).is_symlink() and Path(path).parent == Path("/"):
            arguments += ["--symlink", os.readlink(path), path]
        else:
            arguments += ["--ro-bind", host + path, path]
    for name in ("passwd", "group", "hosts", "nsswitch.conf"):
        arguments += ["--ro-bind", f"{host}{OURS / name}", f"/etc/{name}"]
    for path in hidden:
        if within(path, paths):
            arguments += ["--tmpfs", str(path)]
    return arguments


def host_sources(extra: Sequence[Path]) -> list[str]:
    """bwrap's options that bring the same sources, and more, into the outer box below /host."""
    arguments: list[str] = []
    for path in [*system_paths(), str(OURS), *map(str, extra)]:
        if not Path(path).is_symlink() or Path(path).parent != Path("/"):
            arguments += ["--ro-bind", path, f"/host{path}"]
    return arguments


def within(path: Path, roots: Iterable[str | Path]) -> bool:
    return any(path == Path(root) or Path(root) in path.parents for root in roots)
