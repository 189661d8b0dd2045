"""Build hook for the native helper: compiled with the machine's C compiler, else with PyPI's ziglang.

A build on Linux compiles for its own processor. Elsewhere the helper is for containers, so a build compiles for every
processor, as `SLOPBOX_TARGETS="x86_64 aarch64"` does anywhere; cross-compiling needs ziglang.
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

PROCESSORS = ("x86_64", "aarch64")
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-static", "-s"]


def targets() -> list[str]:
    if wanted := os.environ.get("SLOPBOX_TARGETS", "").split():
        return wanted
    own = platform.machine()
    return [own] if sys.platform.startswith("linux") and own in PROCESSORS else list(PROCESSORS)


def native_compiler() -> str | None:
    """The machine's C compiler, if it can link statically and no other target is requested."""
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
        return [] if native_compiler() else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root) / "src/slop_code/execution/helper"
        for target in targets():
            native = native_compiler()
            compiler = (
                [native] if native else [sys.executable, "-m", "ziglang", "cc", "-target", f"{target}-linux-musl"]
            )
            output = folder / f"slopbox-{target}"
            subprocess.run([*compiler, *FLAGS, "-o", str(output), *map(str, sorted(folder.glob("*.c")))], check=True)
        if set(targets()) == set(PROCESSORS):
            return  # right on any machine: where the helpers do not run, they are for containers
        # Linked statically, the helper runs on any Linux of its processor.
        platforms = [f"{libc}_{target}" for target in targets() for libc in ("manylinux2014", "musllinux_1_1")]
        build_data |= {"pure_python": False, "tag": f"py3-none-{'.'.join(platforms)}"}
