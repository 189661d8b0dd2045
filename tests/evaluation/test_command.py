from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from slop_code.evaluation.command import imported_template_command, judge_sources, render_ini
from slop_code.evaluation.config import GroupType, MarkerConfig

if TYPE_CHECKING:
    from pathlib import Path


def marker(description: str) -> MarkerConfig:
    return MarkerConfig(description=description, group=GroupType.CORE)


def run_pytest(folder: Path, ini: str, *arguments: str) -> str:
    (folder / "pytest.ini").write_text(ini, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "--strict-markers", "--strict-config"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_ini_has_markers_and_test_files():
    assert render_ini({"slow": marker("takes a while")}, ["test_a.py", "deep/test_b.py"]) == (
        "[pytest]\n"
        "markers =\n"
        "    error: error-handling / edge-case tests\n"
        "    functionality: non-core / nice-to-have tests\n"
        "    regression: regression tests from prior checkpoints\n"
        "    slow: takes a while\n"
        "python_files =\n"
        "    test_a.py\n"
        "    deep/test_b.py\n"
    )


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("", "    slow:"),
        ("100% of\nit\r\n[pytest]\x85\u2028addopts = -x\x00", "    slow: 100% of it [pytest] addopts = -x"),
        ("  a\t b ", "    slow: a b"),
    ],
)
def test_a_description_is_one_line(description, line):
    assert render_ini({"slow": marker(description)}, []).splitlines()[5:] == [line, "python_files ="]


def test_a_custom_marker_takes_the_place_of_a_built_in():
    lines = render_ini({"error": marker("ours")}, []).splitlines()
    assert lines[2] == "    error: ours"
    assert len(lines) == 6


@pytest.mark.e2e
def test_pytest_knows_every_marker_and_its_text(tmp_path):
    custom = {"slow": marker("50% #1; more\n[pytest]\naddopts = --bogus"), "bare": marker("")}
    shown = run_pytest(tmp_path, render_ini(custom, []), "--markers")
    assert "@pytest.mark.error: error-handling / edge-case tests\n" in shown
    assert "@pytest.mark.slow: 50% #1; more [pytest] addopts = --bogus\n" in shown
    assert "@pytest.mark.bare:" in shown


@pytest.mark.e2e
def test_pytest_collects_what_is_to_run_and_nothing_else(tmp_path):
    run = ["test_a.py", "test_a_b c[1]#'.py", "deep/test_a_deep.py"]
    for name in [*run, "test_other.py", "deep/test_other.py", "a_test.py"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(
            "import pytest\n\n@pytest.mark.slow\n@pytest.mark.error\ndef test_it(): pass\n", encoding="utf-8"
        )
    shown = run_pytest(tmp_path, render_ini({"slow": marker("")}, run), "--collect-only", "-q")
    assert sorted(line for line in shown.splitlines() if "::" in line) == sorted(f"{name}::test_it" for name in run)


def test_an_imported_template_has_the_test_tools_of_the_judge():
    command = ["/slop/bin/uvx", "--with=pytest", "--offline", "pytest", "-c", "pytest.ini", "tests"]
    *tools, script = imported_template_command(command, "/slop/judge/plugin")
    assert tools == ["/slop/bin/uvx", "--with=pytest", "--offline", "--from", "pytest", "python"]
    assert script.removeprefix("/slop/judge/plugin/") in judge_sources()
