"""Support files that every container mounts: the helper, and a uv that runs on any Linux of that processor."""

from __future__ import annotations

import hashlib
import shutil
from importlib.metadata import version
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.helper import LAUNCHER, helper_path
from slop_code.execution.installation.install_failure import install_cause
from slop_code.execution.process import run
from slop_code.execution.uv import base_python, network_variables, uv_paths

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.execution.cache import Cache

FETCH_S = 600.0


def support_identity(machine: str) -> list[str]:
    return [machine, version("uv"), hashlib.sha256(helper_path(machine).read_bytes()).hexdigest()]


def build_support_files(machine: str, folder: Path, cache: Cache) -> None:
    """`box` and the launcher are the helper under both its names; this uv is linked statically, unlike the host's."""
    (folder / "bin").mkdir(parents=True)
    for name in ("box", f"bin/{LAUNCHER}"):
        shutil.copyfile(helper_path(machine), folder / name)
        (folder / name).chmod(0o755)
    fetched = folder.with_name("fetched")
    environment = {
        "UV_CACHE_DIR": str(cache.uv), "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never", "HOME": str(folder),
        **network_variables(),
    }  # fmt: skip
    argv = [
        str(uv_paths()[0]), "pip", "install", "--quiet", "--no-deps", "--target", str(fetched),
        "--python", base_python(), "--python-platform", f"{machine}-unknown-linux-musl", f"uv=={version('uv')}",
    ]  # fmt: skip
    done = run(argv, env=environment, log=folder.with_name("log"), timeout=FETCH_S, cwd=folder)
    if done.exit_code != 0:
        advice = install_cause(done.output).advice(disk=str(cache.root), requirements="this version of slop-code")
        if done.exit_code is None:
            advice = f"it took more than {FETCH_S:g} s; try again"
        reason = f": {advice}" if advice else ""
        raise InfrastructureError(f"uv for containers on {machine} cannot be fetched{reason}\n{done.output.strip()}")
    for name in ("uv", "uvx"):
        shutil.copy(fetched / "bin" / name, folder / "bin" / name)
    shutil.rmtree(fetched)
    folder.with_name("log").unlink()
