"""A C compiler for tests: zig where this machine has no other."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

UV = Path(sys.executable).with_name("uv")
ZIG = (str(UV), "run", "--quiet", "--no-project", "--with", "ziglang", "python", "-m", "ziglang", "cc")


def compile_c(source: Path, target: Path, *options: str) -> None:
    compiler = ["cc"] if shutil.which("cc") else [*ZIG, *(_static() if "-static" in options else ())]
    subprocess.run([*compiler, "-O1", "-o", str(target), str(source), *options], check=True)


def _static() -> list[str]:
    return ["-target", f"{platform.machine()}-linux-musl"]
