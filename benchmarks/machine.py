"""Description of the machine and of the versions that a figure depends on."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from slop_code import __version__
from slop_code.evaluation.command import LOCK
from slop_code.execution.bubblewrap.bwrap_binary import working_bwrap
from slop_code.execution.uv import uv_paths

ROOT = Path(__file__).resolve().parent.parent


def machine() -> dict[str, Any]:
    """In the order of a page. The load is that of the last minute, before anything is measured."""
    pinned = re.search(r"(?m)^pytest==(\S+)", LOCK.read_text())
    bwrap = working_bwrap()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_model()} ({platform.machine()})",
        "cores": len(os.sched_getaffinity(0)),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "load before": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "control groups": "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1",
        "Python": platform.python_version(),
        "pytest": pinned[1] if pinned else None,
        "uv": _last_word(str(uv_paths()[0]), "--version", word=1),
        "bubblewrap": _last_word(bwrap, "--version", word=1) if bwrap else None,
        "Docker": _last_word("docker", "version", "--format", "{{.Server.Version}}", word=0),
        "pydantic": version("pydantic"),
        "slop-code": __version__,
        "commit": _commit(),
    }


def _model() -> str:
    match = re.search(r"(?m)^(?:model name|Model)\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text())
    return match[1] if match else "unknown"


def _last_word(*argv: str, word: int) -> str | None:
    printed = _printed(*argv)
    words = printed.split() if printed else []
    return words[word] if len(words) > word else None


def _commit() -> str | None:
    """With a note if there are uncommitted changes."""
    commit = _printed("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")
    changed = _printed("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return f"{commit.strip()}{' with changes' if changed else ''}" if commit else None


def _printed(*argv: str) -> str | None:
    try:
        process = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None
