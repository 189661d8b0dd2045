"""The environment of the test tools: installed from a lock with hashes, cached so that evaluations need no network."""

from __future__ import annotations

import contextlib
import json
import logging
import platform
import re
import shlex
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache, file_lock, remove_path, remove_tree
from slop_code.execution.installation.install_failure import CauseKind, install_cause
from slop_code.execution.process import run
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import PATH, ToolEnvironment
from slop_code.execution.trees.manifest import (
    check_installed,
    check_manifest,
    damage_removed,
    record_installed,
    write_manifest,
)
from slop_code.execution.uv import base_python, network_variables, uv_identity, uv_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.execution.sandbox import Sandbox, ToolBuilder

logger = logging.getLogger(__name__)

ABANDONED_S = 3600.0
REBUILD = "if it happens again, `slop-code cache prune --all` removes all that is cached, to be built again"
LOOKUP_FAILURE = "failed to lookup address"
"""Part of what uv prints then."""

REQUIREMENTS = "test_dependencies"
DESCRIPTION = "made.json"
PREFIX = """
import sys
if sys.prefix == sys.base_prefix:
    sys.exit("the environment that uvx made has no packages of its own: Python would use those of the host")
print(sys.prefix)
"""
UNRESOLVABLE_SIGNS = ("no solution found when resolving", "couldn't parse requirement", "the start of a requirement:")
UNKNOWN_SIGNS = ("not found in the cache", "network was disabled", "could not be queried", "unauthorized", "forbidden")
"""Parts of what uv prints, in lower case: no version fits a requirement, unless the package index did not answer."""

UNIVERSAL = ("--universal", "--python-version", "3.11")
"""Options of a lock that holds on all platforms, and for every Python that a judge may have."""

COMPILE = ("pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url")
LABEL = re.compile(r"^[^\w`'\"(/]*(?:(?:error|cause|caused by): )?", re.IGNORECASE)
"""Text that uv writes before an error, and before each of its causes."""


class ToolInstallationError(InfrastructureError):
    """uv failed."""

    def __init__(self, reason: str, output: str = "") -> None:
        super().__init__(reason)
        self.output = output
        """What uv printed."""


class UnresolvablePackagesError(ToolInstallationError):
    """The further packages of a problem are mistaken: there is no such package, or no version fits."""


def build_tool_environment(
    sandbox: Sandbox,
    tool: str,
    packages: Sequence[str],
    lock_file: Path,
    extra: Sequence[str] = (),
    extra_lock: str | None = None,
) -> ToolEnvironment:
    """Fill uv's cache so that `uvx` finds the tool with its packages offline, every file checked by its hash.

    The packages are in the lock file; `extra` are further packages of a problem. Without a lock of their own, their
    versions are resolved now.
    """
    lock = lock_file.read_text()
    key = digest_of([tool, list(packages), list(extra), lock, extra_lock, *sandbox.identity(), *uv_identity()])

    def build(scratch: Path) -> None:
        sandbox.progress(ProgressEvent(ProgressKind.INSTALL_TEST_TOOLS, ", ".join([*packages, *extra])))
        with damage_removed(sandbox.cache), sandbox.tool_builder(scratch) as builder:
            python, python_version = builder.python()
            requirements = lock + (lock_packages(builder, python, extra, lock) if extra_lock is None else extra_lock)
            constraints = builder.put("requirements.txt", requirements)
            versions = _install(builder, python, constraints)
            arguments = uvx_arguments(python, packages, extra, constraints)
            run_uv(builder, "uvx", [*arguments, tool, "--version"])
            prefix = run_uv(builder, "uvx", [*arguments, "--from", tool, "python", "-c", PREFIX]).splitlines()[-1]
            installed = record_installed(sandbox.cache, Path(prefix))
        resolved = datetime.now(UTC).date().isoformat() if extra and extra_lock is None else None
        description = {
            "python": python, "python_version": python_version, "versions": versions, "installed": installed,
            "resolved": resolved,
        }  # fmt: skip
        (scratch / "requirements.txt").write_text(requirements, encoding="utf-8")
        (scratch / DESCRIPTION).write_text(json.dumps(description, sort_keys=True))
        write_manifest(scratch)

    def load(entry: Path) -> ToolEnvironment:
        sandbox.check_tools(entry)
        return read_tool_environment(entry, sandbox.cache)

    return sandbox.cache.load_or_build("tools", key, build, load)


def _install(builder: ToolBuilder, python: str, constraints: str) -> dict[str, str]:
    """Install the requirements only to check their hashes, and return the version of each package."""
    venv = f"{builder.folder}/venv"
    run_uv(builder, "uv", ["venv", "--quiet", "--python", python, venv])
    within = ["--python", f"{venv}/bin/python"]
    run_uv(builder, "uv", ["pip", "install", "--quiet", "--require-hashes", *within, "-r", constraints])
    frozen = run_uv(builder, "uv", ["pip", "freeze", *within])
    return {name.lower(): pinned for name, pinned in re.findall(r"(?m)^([A-Za-z0-9._-]+)==(\S+)$", frozen)}


def read_tool_environment(entry: Path, cache: Cache) -> ToolEnvironment:
    """Raise ValueError or OSError unless every file is as it was built."""
    check_manifest(entry)
    description = json.loads((entry / DESCRIPTION).read_text())
    if (installed := description.pop("installed")) is not None:
        check_installed(cache, installed)
    return ToolEnvironment(entry, **description)


def run_uv(builder: ToolBuilder, tool: str, arguments: Sequence[str], tries: int = 3) -> str:
    """Retry where a host name could not be looked up, which is often temporary."""
    try:
        return builder.uv(tool, arguments)
    except ToolInstallationError as error:
        if tries == 1 or LOOKUP_FAILURE not in error.output:
            raise
        logger.info("retrying %s: %s", tool, LOOKUP_FAILURE)
    return run_uv(builder, tool, arguments, tries - 1)


def uvx_arguments(python: str, packages: Sequence[str], extra: Sequence[str], constraints: str) -> list[str]:
    wanted = [f"--with={name}" for name in [*packages, *extra]]
    return ["--python", python, "--constraints", constraints, *wanted]


def lock_packages(
    builder: ToolBuilder, python: str, extra: Sequence[str], lock: str, options: Sequence[str] = ()
) -> str:
    """Requirements with hashes for further packages; packages of the lock keep the lock's version."""
    if not extra:
        return ""
    wanted = builder.put("extra.in", "\n".join(extra) + "\n")
    arguments = [*COMPILE, *options, "--python", python, "-c", builder.put("lock.txt", lock), wanted]
    try:
        compiled = run_uv(builder, "uv", arguments)
    except ToolInstallationError as error:
        if fact := _unresolvable_fact(error.output):
            raise UnresolvablePackagesError(fact, error.output) from error
        raise
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", compiled)
    known = set(re.findall(r"(?m)^([A-Za-z0-9._-]+)==", lock))
    return "".join(block for block in blocks if block.strip() and block.split("==")[0] not in known)


class HostToolBuilder:
    """uv on the host; it reads no configuration of the user's."""

    def __init__(self, scratch: Path, cache: Cache, timeout: float) -> None:
        self.scratch, self.cache, self.timeout = scratch / "uv", cache, timeout
        self.scratch.mkdir()
        self.folder = str(self.scratch)
        cache.uv.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> HostToolBuilder:
        return self

    def __exit__(self, *_: object) -> None:
        remove_tree(self.scratch)

    def put(self, name: str, text: str) -> str:
        (self.scratch / name).write_text(text, encoding="utf-8")
        return str(self.scratch / name)

    def python(self) -> tuple[str, str]:
        return base_python(), platform.python_version()

    def uv(self, tool: str, arguments: Sequence[str]) -> str:
        environment = {
            "PATH": PATH, "HOME": str(self.scratch), "UV_CACHE_DIR": str(self.cache.uv), "UV_NO_CONFIG": "1",
            "UV_PYTHON_DOWNLOADS": "never", "UV_COMPILE_BYTECODE": compile_bytecode(tool), "UV_LINK_MODE": "copy",
            **network_variables(),
        }  # fmt: skip
        argv = [str(uv_paths()[tool == "uvx"]), *arguments]
        with file_lock(self.cache.root / ".uv.lock"):
            remove_abandoned_unpacks(self.cache.uv)
            done = run(argv, env=environment, log=self.scratch / "log", timeout=self.timeout, cwd=self.scratch)
        if done.exit_code is None:
            raise tools_too_late(argv, self.timeout, done.output)
        if done.exit_code != 0:
            raise tool_failure(argv, done.exit_code, done.output, str(self.cache.root))
        return (self.scratch / "log").read_text(errors="replace")


def compile_bytecode(tool: str) -> str:
    """Only the environment that uvx caches is worth compiling; the other is removed at once."""
    return "1" if tool == "uvx" else "0"


def remove_abandoned_unpacks(uv: Path) -> None:
    """Remove what killed processes of uv left half unpacked; a judge's uv may be at work there too, hence the age."""
    for left in uv.glob(".tmp*"):
        with contextlib.suppress(OSError):
            if time.time() - left.lstat().st_mtime > ABANDONED_S:
                remove_path(left)


def tools_too_late(argv: Sequence[str], timeout: float, output: str = "") -> ToolInstallationError:
    limit = f"`{shlex.join(argv[:3])}` did not end within the {timeout:g} s of timeouts.tools"
    step = "set a longer one, or fetch them ahead with `slop-code cache warm`"
    return ToolInstallationError(f"the test tools cannot be installed: {limit}; {step}\n{output}".strip(), output)


def tool_failure(argv: Sequence[str], exit_code: int, output: str, disk: str) -> ToolInstallationError:
    """`disk` is where the tools are installed."""
    cause = install_cause(output)
    advice = cause.advice(disk=disk, requirements=REQUIREMENTS)
    fact = advice or f"{_last_cause(output) or f'uv exited with {exit_code}'}; {REBUILD}"
    if cause.kind is CauseKind.NO_NETWORK:
        fact += "; `slop-code cache warm` fetches them ahead"
    return ToolInstallationError(
        f"the test tools cannot be installed: {fact}\n`{shlex.join(argv)}` exited with {exit_code}\n{output.strip()}",
        output,
    )


def _unresolvable_fact(output: str) -> str | None:
    text = output.lower()
    if not any(sign in text for sign in UNRESOLVABLE_SIGNS) or any(sign in text for sign in UNKNOWN_SIGNS):
        return None
    cause = install_cause(output)
    if cause.kind in (CauseKind.NO_PACKAGE, CauseKind.NO_VERSION):
        return cause.advice(disk="", requirements="the list")
    first = re.search(r"(?m)^\s*cause: (.+)$", output)
    return first[1].rstrip(".") if first else _last_cause(output)


def _last_cause(output: str) -> str | None:
    """The last cause that uv prints is the innermost; only hints come after it."""
    lines = [line.strip() for line in output.splitlines()]
    causes = [LABEL.sub("", line) for line in lines if line and not line.lower().startswith("hint:")]
    return causes[-1].rstrip(".") if causes else None
