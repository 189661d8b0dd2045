"""Refusal of a judge that would import packages of the host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from slop_code.evaluation.judge import own_packages
from slop_code.evaluation.judge.own_packages import foreign_packages


@pytest.mark.parametrize(
    ("path", "foreign"),
    [
        (["/plugin", "/usr/lib/python3.11", "/env/lib/python3.11/site-packages"], []),
        (["/usr/lib/python3/dist-packages"], ["/usr/lib/python3/dist-packages"]),
        (["/env/lib/site-packages", "/opt/lib/site-packages/"], ["/opt/lib/site-packages/"]),
        (["/environment/lib/site-packages"], ["/environment/lib/site-packages"]),
        (["/env/../usr/lib/site-packages"], ["/env/../usr/lib/site-packages"]),
    ],
)
def test_folders_of_packages_outside_the_environment_are_foreign(path, foreign):
    assert foreign_packages(path, "/env") == foreign


@pytest.mark.e2e
@pytest.mark.parametrize("foreign", [False, True])
def test_nothing_is_judged_with_packages_of_the_host(tmp_path, foreign):
    packages = tmp_path / ("host/site-packages" if foreign else "host/modules")
    packages.mkdir(parents=True)
    shutil.copy(own_packages.__file__, packages / "slop_code_own_packages.py")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "slop_code_own_packages", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == (4 if foreign else 0), done.stderr
    assert (f"packages of the host, from {packages}; nothing was judged" in done.stderr) == foreign
