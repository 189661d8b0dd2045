"""The tests' environment: locked, checked by hashes, kept in a cache of uv's that needs no network later."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.boxes import PATH
from slop_code.execution.cache import Cache, locked, remove_tree
from slop_code.execution.interpreter import base_python, network_variables, python_identity
from slop_code.execution.process import run
from slop_code.execution.uv import uv_identity, uv_paths

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.execution.setup import Progress

WARM_S = 900.0


@dataclass(frozen=True, slots=True)
class ToolEnv:
    """A locked environment in uv's cache, ready to be run offline."""

    constraints: Path
    versions: Mapping[str, str]


def warm_tools(
    tool: str, packages: Sequence[str], extra: Sequence[str], lock: Path, cache: Cache, progress: Progress
) -> ToolEnv:
    """Fill uv's cache so that `uvx` finds the tool with all its packages offline, every file checked by its hash."""
    key = digest_of([tool, list(packages), list(extra), lock.read_text(), python_identity(), uv_identity()])

    def build(scratch: Path) -> None:
        progress(f"warming the test environment ({', '.join([*packages, *extra])})")
        requirements = scratch / "requirements.txt"
        requirements.write_text(lock.read_text() + _lock_extra(extra, lock, cache, scratch))
        venv = scratch / "venv"
        uv = str(uv_paths()[0])
        _uv([uv, "venv", "--quiet", "--python", base_python(), str(venv)], cache, scratch)
        within = ["--python", str(venv / "bin/python")]
        _uv([uv, "pip", "install", "--require-hashes", *within, "-r", str(requirements)], cache, scratch)
        _uv([uv, "pip", "freeze", *within], cache, scratch)
        pins = re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)$", (scratch / "log").read_text())
        versions = {name.lower(): pinned for name, pinned in pins}
        (scratch / "versions.json").write_text(json.dumps(versions, sort_keys=True))
        remove_tree(venv)
        _uv(
            [*uvx_command(str(uv_paths()[1]), packages, extra, str(requirements)), tool, "--version"],
            cache,
            scratch,
        )
        (scratch / "log").unlink()

    def load(entry: Path) -> ToolEnv:
        if not (cache.uv / "archive-v0").is_dir() or not (entry / "requirements.txt").is_file():
            raise ValueError("what uv kept of it is gone")
        return ToolEnv(entry / "requirements.txt", json.loads((entry / "versions.json").read_text()))

    cache.uv.mkdir(parents=True, exist_ok=True)
    return cache.load_once("tools", key, build, load)


def uvx_command(uvx: str, packages: Sequence[str], extra: Sequence[str], constraints: str) -> list[str]:
    wanted = [f"--with={name}" for name in [*packages, *extra]]
    return [uvx, "--python", base_python(), "--constraints", constraints, *wanted]


def _lock_extra(extra: Sequence[str], lock: Path, cache: Cache, scratch: Path) -> str:
    """Hashes for what a problem adds to the lock; what the lock has keeps the lock's."""
    if not extra:
        return ""
    wanted, found = scratch / "extra.in", scratch / "extra.txt"
    wanted.write_text("\n".join(extra) + "\n")
    arguments = [
        str(uv_paths()[0]),
        "pip",
        "compile",
        "--quiet",
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
    ]
    _uv(
        [*arguments, "--python", base_python(), "-c", str(lock), "-o", str(found), str(wanted)],
        cache,
        scratch,
    )
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", found.read_text())
    known = set(re.findall(r"(?m)^([A-Za-z0-9._-]+)==", lock.read_text()))
    wanted.unlink()
    found.unlink()
    return "".join(block for block in blocks if block.strip() and block.split("==")[0] not in known)


def _uv(argv: Sequence[str], cache: Cache, scratch: Path) -> str:
    """uv on the host, for the tests' environment alone: no configuration of anyone's is read."""
    environment = {
        "PATH": PATH, "HOME": str(scratch), "UV_CACHE_DIR": str(cache.uv), "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never", "UV_COMPILE_BYTECODE": "1", "UV_LINK_MODE": "copy", **network_variables(),
    }  # fmt: skip
    with locked(cache.root / ".uv.lock"):
        done = run(argv, env=environment, log=scratch / "log", timeout=WARM_S, cwd=scratch)
    if done.exit_code != 0:
        raise InfrastructureError(
            f"the test environment cannot be made: `{shlex.join(argv)}` exited with {done.exit_code}\n"
            f"{done.output.strip()}"
        )
    return done.output
