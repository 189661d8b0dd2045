"""The tests' environment: locked, checked by hashes, kept so that it needs no network later."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache, file_lock, remove_tree
from slop_code.execution.installed_files import check_installed, damage_removed, record_installed
from slop_code.execution.interpreter import base_python, network_variables
from slop_code.execution.manifest import check_manifest, write_manifest
from slop_code.execution.process import run
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import PATH, Sandbox, ToolBuilder, ToolEnvironment
from slop_code.execution.uv import uv_identity, uv_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.execution.progress_events import ProgressCallback

WARM_S = 900.0
ABANDONED_S = 3600.0
NO_NAME = "failed to lookup address"
PREFIX = "import sys; print(sys.prefix)"
COMPILE = ("pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url")
LABEL = re.compile(r"^[^\w`'\"(/]*(?:(?:error|cause|caused by): )?", re.IGNORECASE)
"""What uv writes before an error, and before each of its causes."""


def warm_tools(
    sandbox: Sandbox,
    tool: str,
    packages: Sequence[str],
    extra: Sequence[str],
    lock: Path,
    cache: Cache,
    progress: ProgressCallback,
) -> ToolEnvironment:
    """Fill uv's cache so that `uvx` finds the tool with all its packages offline, every file checked by its hash."""
    content = [tool, list(packages), list(extra), lock.read_text()]
    key = digest_of([*content, *sandbox.identity(), *uv_identity()])

    def build(scratch: Path) -> None:
        progress(ProgressEvent(ProgressKind.BUILD_TEST_ENVIRONMENT, ", ".join([*packages, *extra])))
        with damage_removed(cache), sandbox.tool_builder(scratch) as shop:
            python, python_version = shop.python()
            requirements = lock.read_text() + _lock_extra(shop, python, extra, lock.read_text())
            constraints = shop.put("requirements.txt", requirements)
            venv = f"{shop.folder}/venv"
            fetch(shop, "uv", ["venv", "--quiet", "--python", python, venv])
            within = ["--python", f"{venv}/bin/python"]
            fetch(shop, "uv", ["pip", "install", "--quiet", "--require-hashes", *within, "-r", constraints])
            frozen = fetch(shop, "uv", ["pip", "freeze", *within])
            wanted = uvx_arguments(python, packages, extra, constraints)
            fetch(shop, "uvx", [*wanted, tool, "--version"])
            place = fetch(shop, "uvx", [*wanted, "--from", tool, "python", "-c", PREFIX]).splitlines()[-1]
            installed = record_installed(cache, Path(place))
        (scratch / "requirements.txt").write_text(requirements)
        versions = {name.lower(): pinned for name, pinned in re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)$", frozen)}
        made = {"python": python, "python_version": python_version, "versions": versions}
        (scratch / "made.json").write_text(json.dumps({**made, "installed": installed}, sort_keys=True))
        write_manifest(scratch)

    def load(entry: Path) -> ToolEnvironment:
        sandbox.check_tools(entry)
        return read_tools(entry, cache)

    return cache.load_or_build("tools", key, build, load)


def read_tools(entry: Path, cache: Cache) -> ToolEnvironment:
    """Raises ValueError or OSError unless they are as they were made."""
    check_manifest(entry)
    made = json.loads((entry / "made.json").read_text())
    if (installed := made.pop("installed")) is not None:
        check_installed(cache, installed)
    return ToolEnvironment(entry, **made)


def fetch(shop: ToolBuilder, tool: str, arguments: Sequence[str], tries: int = 3) -> str:
    """Again where a name could not be looked up: that passes, more often than not."""
    try:
        return shop.uv(tool, arguments)
    except InfrastructureError as error:
        if tries == 1 or NO_NAME not in str(error):
            raise
    return fetch(shop, tool, arguments, tries - 1)


def uvx_arguments(python: str, packages: Sequence[str], extra: Sequence[str], constraints: str) -> list[str]:
    wanted = [f"--with={name}" for name in [*packages, *extra]]
    return ["--python", python, "--constraints", constraints, *wanted]


def _lock_extra(shop: ToolBuilder, python: str, extra: Sequence[str], lock: str) -> str:
    """Hashes for what a problem adds to the lock; what the lock has keeps the lock's."""
    if not extra:
        return ""
    wanted = shop.put("extra.in", "\n".join(extra) + "\n")
    found = fetch(shop, "uv", [*COMPILE, "--python", python, "-c", shop.put("lock.txt", lock), wanted])
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", found)
    known = set(re.findall(r"(?m)^([A-Za-z0-9._-]+)==", lock))
    return "".join(block for block in blocks if block.strip() and block.split("==")[0] not in known)


class HostToolBuilder:
    """uv on the host, for the tests' environment alone: no configuration of anyone's is read."""

    def __init__(self, scratch: Path, cache: Cache) -> None:
        self.scratch, self.cache = scratch / "uv", cache
        self.scratch.mkdir()
        self.folder = str(self.scratch)
        cache.uv.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> HostToolBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        remove_tree(self.scratch)

    def put(self, name: str, text: str) -> str:
        (self.scratch / name).write_text(text)
        return str(self.scratch / name)

    def python(self) -> tuple[str, str]:
        return base_python(), platform.python_version()

    def uv(self, tool: str, arguments: Sequence[str]) -> str:
        environment = {
            "PATH": PATH, "HOME": str(self.scratch), "UV_CACHE_DIR": str(self.cache.uv), "UV_NO_CONFIG": "1",
            "UV_PYTHON_DOWNLOADS": "never", "UV_COMPILE_BYTECODE": compiled(tool), "UV_LINK_MODE": "copy",
            **network_variables(),
        }  # fmt: skip
        argv = [str(uv_paths()[tool == "uvx"]), *arguments]
        with file_lock(self.cache.root / ".uv.lock"):
            remove_abandoned_unpacks(self.cache.uv)
            done = run(argv, env=environment, log=self.scratch / "log", timeout=WARM_S, cwd=self.scratch)
        if done.exit_code != 0:
            raise tools_failure(argv, done.exit_code, done.output)
        return (self.scratch / "log").read_text(errors="replace")


def compiled(tool: str) -> str:
    """Bytecode for what uvx keeps; an environment that is only there to be read is gone in a moment."""
    return "1" if tool == "uvx" else "0"


def remove_abandoned_unpacks(uv: Path, older_s: float = ABANDONED_S) -> None:
    """What a uv that was killed left half unpacked; one of a judge's own may be at work there, too."""
    for left in uv.glob(".tmp*"):
        with contextlib.suppress(OSError):
            if time.time() - left.lstat().st_mtime > older_s:
                remove_tree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def tools_failure(argv: Sequence[str], exit_code: int | None, output: str) -> InfrastructureError:
    return InfrastructureError(
        f"the test environment cannot be made: {_cause(output) or f'uv exited with {exit_code}'}; "
        f"is there a network? `slop-code cache warm` fetches it ahead\n"
        f"`{shlex.join(argv)}` exited with {exit_code}\n{output.strip()}"
    )


def _cause(output: str) -> str | None:
    """The last one that uv names is the innermost; hints come after it."""
    lines = [line.strip() for line in output.splitlines()]
    causes = [LABEL.sub("", line) for line in lines if line and not line.lower().startswith("hint:")]
    return causes[-1].rstrip(".") if causes else None
