"""Builds the native helper: with the C compiler at hand, else with the one that PyPI's ziglang brings.

SLOPBOX_TARGETS (e.g. "x86_64 aarch64") cross-compiles for several processors, which needs ziglang; empty, it builds
none, and the Python stand-in does the work. Elsewhere than on Linux the helper is for containers, so both are built.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = ("main.c", "pair.c", "serve.c", "run.c", "show.c", "archive.c")
KNOWN = ("x86_64", "aarch64")
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-static", "-s"]


def targets() -> list[str]:
    own = platform.machine() if sys.platform.startswith("linux") else ""
    wanted = os.environ.get("SLOPBOX_TARGETS", own if own in KNOWN else "" if own else " ".join(KNOWN))
    return wanted.split()


def native_compiler() -> str | None:
    """A compiler that can link statically for this machine, when no other is asked for."""
    compiler = shutil.which("cc")
    if targets() != [platform.machine()] or not sys.platform.startswith("linux") or compiler is None:
        return None
    probe = subprocess.run(
        [compiler, "-static", "-x", "c", "-", "-o", os.devnull],
        input=b"int main(void) { return 0; }",
        capture_output=True,
        check=False,
    )
    return compiler if probe.returncode == 0 else None


class CustomBuildHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        return [] if not targets() or native_compiler() else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not targets():
            return
        folder = Path(self.root) / "src/slop_code/execution/helper"
        for target in targets():
            native = native_compiler()
            compiler = (
                [native] if native else [sys.executable, "-m", "ziglang", "cc", "-target", f"{target}-linux-musl"]
            )
            output = folder / f"slopbox-{target}"
            subprocess.run(
                [*compiler, *FLAGS, "-o", str(output), *[str(folder / name) for name in SOURCES]], check=True
            )
        if not sys.platform.startswith("linux"):
            return
        build_data["pure_python"] = False
        # Linked statically, the helper runs on any Linux of its processor.
        places = [f"{libc}_{target}" for target in targets() for libc in ("manylinux2014", "musllinux_1_1")]
        build_data["tag"] = f"py3-none-{'.'.join(places)}"
