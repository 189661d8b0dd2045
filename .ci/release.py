"""Build of the sdist and the wheel: `python .ci/release.py dist`.

The sdist comes first; the wheel is built from it, so that nothing else of the clone can be in it. The wheel has the
native helper for x86_64 and aarch64, since an engine on another machine may run containers of the other processor.

The same sources give the same bytes. The build tools are pinned with hashes and cached for the user, with the C
library that zig builds for each processor. That takes minutes, and zig caches it by the path of the tools.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = "requirements-release.lock"
SUMS = "SHA256SUMS"
PROCESSORS = "x86_64 aarch64"


def uv() -> str:
    installed = Path(sys.executable).with_name("uv")
    return str(installed) if installed.exists() else "uv"


def tools(lock: Path) -> Path:
    """A folder with `venv` and `zig`; made once for each lock and version of Python."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slop-code-release"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache / f"{version}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            python = folder / "venv/bin/python"
            call([uv(), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder / "venv")])
            call([uv(), "pip", "install", "--quiet", "--require-hashes", "--python", str(python), "-r", str(lock)])
            (folder / "complete").touch()
    return folder


def call(argv: list[str], **variables: str) -> None:
    subprocess.run(argv, check=True, env={**os.environ, **variables})


def build(source: Path, out: Path) -> list[Path]:
    """The sdist and the wheel."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("slop_code-*"), *out.glob(SUMS)]:
        old.unlink()
    folder = tools(source / LOCK)
    python = ["--no-build-isolation", "--python", str(folder / "venv/bin/python")]
    command = [uv(), "build", "--quiet", *python, "--out-dir", str(out)]
    zig = str(folder / "zig")
    call([*command, "--sdist", str(source)])
    (sdist,) = out.glob("*.tar.gz")
    call([*command, "--wheel", str(sdist)], SLOPBOX_TARGETS=PROCESSORS, ZIG_GLOBAL_CACHE_DIR=zig)
    return sorted(out.glob("slop_code-*"))


def sums(files: list[Path]) -> str:
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def main(out: Path) -> None:
    files = build(ROOT, out.resolve())
    (out / SUMS).write_text(sums(files))
    print(sums(files), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
