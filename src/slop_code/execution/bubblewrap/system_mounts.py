"""Read-only mounts of the host's programs and libraries, which both boxes see."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOTS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt")
ETC = (
    "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "pki/tls/certs",
    "pki/ca-trust/extracted", "services", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
ETC_GLOBS = ("java*", "perl", "php", "python*", "R")
ETC_FILES = Path(__file__).parent / "etc"


@functools.cache
def system_paths(*prefixes: str) -> tuple[str, ...]:
    """Host paths that have the same path in a box; the prefixes of its interpreters too, where they are not in /usr.

    Without prefixes it is that of slop-code's own interpreter.
    """
    etc = [Path("/etc") / name for name in ETC]
    for pattern in ETC_GLOBS:
        etc += sorted(Path("/etc").glob(pattern))
    paths = [Path(root) for root in ROOTS] + etc
    for prefix in dict.fromkeys(Path(prefix).resolve() for prefix in prefixes or (sys.base_prefix,)):
        if not is_within(prefix, ["/usr", "/opt"]):
            paths.append(prefix)
    return tuple(str(path) for path in paths if path.exists())


def system_arguments(hidden: Iterable[Path] = (), prefixes: Sequence[str] = ()) -> list[str]:
    """bwrap's arguments that mount the system; `hidden` folders within it are covered."""
    mounts, real_paths = _system_mounts(*prefixes)
    secrets = [os.path.realpath(path) for path in hidden if os.path.exists(path)]
    covered = [secret for secret in secrets if is_within(secret, real_paths)]
    return [*mounts, *[word for secret in covered for word in ("--tmpfs", secret)]]


@functools.cache
def _system_mounts(*prefixes: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """bwrap's arguments that mount the system, and the mounted paths without links."""
    arguments: list[str] = []
    paths = system_paths(*prefixes)
    for path in paths:
        if os.path.islink(path) and os.path.dirname(path) == "/":
            arguments += ["--symlink", os.readlink(path), path]
        else:
            arguments += ["--ro-bind", path, path]
    for name in ("passwd", "group", "hosts", "nsswitch.conf"):
        arguments += ["--ro-bind", str(ETC_FILES / name), f"/etc/{name}"]
    return tuple(arguments), tuple(map(os.path.realpath, paths))


def command_arguments(folder: str) -> list[str]:
    """Overlays that add the commands in `folder`, a path of the outer box, to the default path.

    C's execvp(3) and Python's `subprocess` search the default path, /bin and /usr/bin, where a call has no PATH.
    """
    covered = [path for path in ("/usr/bin", "/bin") if os.path.isdir(path) and not os.path.islink(path)]
    layers = ("--overlay-src", folder, "--overlay-src")
    return [word for path in covered for word in (*layers, path, "--ro-overlay", path)]


def further_arguments(paths: Iterable[Path], prefixes: Sequence[str] = ()) -> list[str]:
    """Read-only mounts of paths that are not part of the system."""
    system = system_paths(*prefixes)
    wanted = [str(path) for path in paths if not is_within(path, system)]
    return [word for path in wanted for word in ("--ro-bind", path, path)]


def is_within(path: str | Path, roots: Iterable[str | Path]) -> bool:
    """Compares absolute paths as they are written."""
    inner = f"{path}/"
    return any(inner.startswith(f"{str(root).rstrip('/')}/") for root in roots)
