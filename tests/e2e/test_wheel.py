"""The wheel and the sdist, built by the release script, installed away from the sources, and run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from slop_code import load_results
from slop_code.evaluation import ProblemConfig
from slop_code.execution.python_version import fits, host_python
from slop_code.execution.uv import base_python
from tests.factories import statuses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[2]
SOURCES = (".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "hatch_build.py", "pyproject.toml", "src")
HELPERS = "slop_code/execution/helper/slopbox-"
MACHINES = {"x86_64": 62, "aarch64": 183}
EXAMPLE = ROOT / "examples/problems/larder"
ROLLCALL = EXAMPLE.with_name("rollcall")
UV = Path(sys.executable).with_name("uv")

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def build(source: Path, folder: Path) -> Path:
    """From a copy, as bytecode comes and goes while other tests run."""
    for name in (*SOURCES, "requirements-release.lock"):
        if (source / name).is_dir():
            shutil.copytree(
                source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy
            )
        else:
            shutil.copy(source / name, folder / name)
    call([sys.executable, ".ci/release.py", "dist"], folder)
    return folder / "dist"


def call(argv: list[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run(argv, cwd=folder, env={**kept, **(more or {})}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Quick once zig has made its C library for both processors, which it does once on a machine."""
    return build(ROOT, tmp_path_factory.mktemp("source"))


def the_file(dist: Path, pattern: str) -> Path:
    (match,) = dist.glob(pattern)
    return match


def test_one_target_builds_all_and_says_their_checksums(dist):
    lines = [line.split("  ") for line in (dist / "SHA256SUMS").read_text().splitlines()]
    assert [name for _, name in lines] == sorted(path.name for path in dist.glob("slop_code-*"))
    for digest, name in lines:
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    ends = [name.split("-", 2)[-1] for _, name in lines]
    assert len(ends) == 2
    assert "py3-none-any.whl" in ends


def test_it_has_a_static_helper_for_both_processors(dist):
    wheel = zipfile.ZipFile(the_file(dist, "*.whl"))
    for machine, number in MACHINES.items():
        program = wheel.read(HELPERS + machine)
        assert program[:4] == b"\x7fELF"
        assert struct.unpack_from("<H", program, 18) == (number,)
        offset, size, count = struct.unpack_from("<32xQ14xHH", program)
        kinds = [struct.unpack_from("<I", program, offset + size * entry)[0] for entry in range(count)]
        assert 3 not in kinds, "a program header that names an interpreter: not linked statically"
    assert any(name.endswith("/musl.LICENSE") for name in wheel.namelist() if "dist-info" in name)


def test_the_sdist_has_the_sources_and_nothing_built(dist):
    with tarfile.open(the_file(dist, "*.tar.gz")) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"hatch_build.py", "LICENSE", "src/slop_code/execution/helper/main.c"} <= set(names)
    assert [name for name in names if "slopbox-" in name or name.endswith(".pyc")] == []


def test_built_again_elsewhere_it_is_the_same(dist, tmp_path):
    """From files of another time, in another folder."""
    assert (build(dist.parent, tmp_path) / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()


@pytest.mark.parametrize(
    "target", ["manylinux2014_x86_64", "manylinux2014_aarch64", "musllinux_1_1_aarch64", "macosx_11_0_arm64"]
)
def test_pip_takes_the_wheel_on_every_platform(dist, tmp_path, target):
    options = ["--quiet", "--no-deps", "--no-index", "--only-binary=:all:", "--disable-pip-version-check"]
    places = [f"--find-links={dist}", f"--platform={target}", f"--dest={tmp_path}"]
    call([sys.executable, "-m", "pip", "download", *options, *places, "slop-code"], tmp_path)
    assert the_file(tmp_path, "*.whl").name == the_file(dist, "*.whl").name


@pytest.fixture
def installed(dist: Path, tmp_path: Path) -> Callable[..., Path]:
    """The command of a new environment that has only this file and what it asks for, at the versions of the lock."""

    def install(file: Path, interpreter: str = base_python()) -> Path:
        python = tmp_path / "venv/bin/python"
        call([str(UV), "venv", "--quiet", "--python", interpreter, "venv"], tmp_path)
        locked = ["--constraints", str(ROOT / "requirements-dev.lock")]
        call([str(UV), "pip", "install", "--quiet", "--python", str(python), *locked, str(file)], tmp_path)
        where = call([str(python), "-c", "import slop_code; print(slop_code.__file__)"], tmp_path)
        assert Path(where.strip()).is_relative_to(tmp_path / "venv")
        return python.with_name("slop-code")

    return install


def passes_the_demo(command: Path, folder: Path, checkpoint: int) -> None:
    """What `make demo` does, on a copy of the example."""
    shutil.copytree(EXAMPLE, folder / "larder")
    snapshot = f"larder/solutions/checkpoint_{checkpoint}"
    options = ["-p", "./larder", "-c", str(checkpoint), "-o", "out/demo"]
    output = call([str(command), "eval-snapshot", snapshot, *options], folder)
    assert "PASSED (all-cases)" in output
    result = json.loads((folder / "out/demo/evaluation.json").read_text())
    assert result["passed"]["all-cases"]
    assert result["isolation"]["judge_and_subject_apart"]


def test_the_wheel_is_enough_for_the_demo(cache, need_bubblewrap, dist, installed, tmp_path):
    need_bubblewrap()
    passes_the_demo(installed(the_file(dist, "*.whl")), tmp_path, 3)


def test_the_sdist_is_enough_for_the_demo(cache, need_bubblewrap, dist, installed, tmp_path):
    need_bubblewrap()
    passes_the_demo(installed(the_file(dist, "*.tar.gz")), tmp_path, 1)


def test_on_another_python_the_verdict_is_the_same(cache, need_python, evaluate, dist, installed, tmp_path):
    """The problem asks for a newer Python than the oldest that slop-code runs on."""
    other = f">=3.11,!={sys.version_info.major}.{sys.version_info.minor}.*"
    problem = ProblemConfig.from_yaml(ROLLCALL)
    need_python(other)
    need_python(problem.requires_python)
    submission = ROLLCALL / "solutions/checkpoint_2"
    own = evaluate(problem, submission, 2)
    command = installed(the_file(dist, "*.whl"), host_python(other).path)
    call([str(command), "eval-snapshot", str(submission), "-p", str(ROLLCALL), "-c", "2", "-o", "out"], tmp_path)
    result = load_results(tmp_path / "out/evaluation.json")
    assert fits(result.provenance.python, other)
    assert statuses(result) == statuses(own)
    assert result.passed == own.passed
    assert set(statuses(own).values()) == {"passed"}


def test_without_the_helper_doctor_and_evaluations_say_how_to_build_it(cache, dist, installed, tmp_path):
    command = installed(the_file(dist, "*.whl"))
    for program in (tmp_path / "venv").glob("lib/python*/site-packages/" + HELPERS + "*"):
        program.unlink()
    (tmp_path / "empty").mkdir()
    for arguments in (["doctor"], ["eval-snapshot", "empty", "-p", str(EXAMPLE), "-c", "1"]):
        done = subprocess.run([str(command), *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 3
        words = " ".join((done.stdout + done.stderr).split())
        assert f"SLOPBOX_TARGETS={platform.machine()} pip install" in words
