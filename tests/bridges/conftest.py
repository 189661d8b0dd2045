"""Environments with the real packages of other systems, each from a lock of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from slop_code.execution.python_version import host_python
from tests.bridges.harbor_runs import Harbor
from tests.bridges.service_process import ADDING_TESTS, SLEEPING_TESTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from slop_code.execution.cache import Cache

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).with_name("locks")
NEWER = ">=3.12"
"""Most of these packages need it."""


@pytest.fixture(scope="session")
def bridge_python(
    need_python: Callable[[str], None], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """`bridge_python("harbor")`: a Python with the packages of `locks/harbor.lock` and this checkout of slop-code."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        need_python(NEWER)
        if name not in made:
            made[name] = new_environment(name, tmp_path_factory.mktemp(f"{name}-", numbered=True))
        return made[name]

    return make


def new_environment(name: str, folder: Path) -> Path:
    """A path file instead of an installation, which would build the native helper once more."""
    uv, python = Path(sys.executable).with_name("uv"), folder / "bin/python"
    run(uv, "venv", "--quiet", "--allow-existing", "--python", host_python(NEWER).path, folder)
    lock = LOCKS / f"{name}.lock"
    run(uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "--requirement", lock)
    packages = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    (packages / "slop-code.pth").write_text(f"{ROOT / 'src'}\n")
    write_metadata(packages / "slop_code-0.dist-info")
    return python


def write_metadata(folder: Path) -> None:
    """As an editable installation has it: other systems find the entry points of slop-code by it."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        line
        for group, names in groups.items()
        for line in [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
    ]
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: slop-code\nVersion: 0\n")
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (folder / "direct_url.json").write_text(json.dumps({"url": ROOT.as_uri(), "dir_info": {"editable": True}}))


def run(*argv: object, cwd: Path | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    done = subprocess.run([*map(str, argv)], cwd=cwd, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def need_compose(need_docker: Callable[[], None]) -> Callable[[], None]:
    def check() -> None:
        need_docker()
        if missing := os.environ.get("SLOP_CODE_TEST_NO_COMPOSE"):
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"no docker compose: {missing}")

    return check


@pytest.fixture(scope="module")
def harbor(
    bridge_python: Callable[[str], Path],
    need_compose: Callable[[], None],
    cache: Cache,
    tmp_path_factory: pytest.TempPathFactory,
) -> Harbor:
    """Harbor, with slop-code beside it. The boxes' caches are those of the tests."""
    need_compose()
    return Harbor(bridge_python("harbor"), tmp_path_factory.mktemp("harbor"), cache.root)


@pytest.fixture(scope="module")
def service_problems(make_problem: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("problems")
    for name, tests in (("adding", ADDING_TESTS), ("sleeping", SLEEPING_TESTS)):
        made = make_problem({"test_checkpoint_1.py": tests}, config={"name": name, "timeout": 900})
        made.path.rename(folder / name)
    return folder
