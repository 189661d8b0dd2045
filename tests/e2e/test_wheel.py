"""What people install: a wheel with the helper for both processors, and one without any."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELPERS = "slop_code/execution/launcher/slopbox-"
MACHINES = {"x86_64": 62, "aarch64": 183}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def build(folder: Path, targets: str) -> zipfile.ZipFile:
    """From a copy, as the build leaves the helper beside its sources."""
    for name in ("src", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md"):
        if (ROOT / name).is_dir():  # bytecode comes and goes while other tests run
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    for built in folder.glob(f"src/{HELPERS}*"):
        built.unlink() if "." not in built.name else None
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv) if uv.exists() else "uv", "build", "--quiet", "--wheel", "--out-dir", "dist"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "SLOPBOX_TARGETS": targets}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return zipfile.ZipFile(next((folder / "dist").glob("*.whl")))


def test_it_has_a_static_helper_for_both_processors(tmp_path):
    wheel = build(tmp_path, "x86_64 aarch64")
    for machine, number in MACHINES.items():
        assert f"manylinux2014_{machine}" in str(wheel.filename)
        program = wheel.read(HELPERS + machine)
        assert program[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", program, 18) == (number,)
        offset, size, count = struct.unpack_from("<32xQ14xHH", program)
        kinds = [struct.unpack_from("<I", program, offset + size * entry)[0] for entry in range(count)]
        assert 3 not in kinds, "a program header that names an interpreter: not linked statically"


def test_without_a_helper_it_is_for_any_machine(tmp_path):
    wheel = build(tmp_path, "")
    assert str(wheel.filename).endswith("-py3-none-any.whl")
    names = wheel.namelist()
    assert [name for name in names if name.startswith(HELPERS)] == []
    assert "slop_code/execution/launcher/fallback/serve.py" in names
