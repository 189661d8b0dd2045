"""Submissions with 50 MB of output and files of 50 MB: terminal and page stay small, and show why tests broke."""

from __future__ import annotations

import subprocess

import pytest
import yaml
from playwright.sync_api import expect

from tests.command import SLOP_CODE
from tests.e2e.browser import severe_violations

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SIZE = 50_000_000
MARKUP = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\x1b[31m"
TESTS = """
def test_prints_what_it_got(run):
    done = run()
    print(done.stdout)
    assert done.stdout.startswith("hello")


def test_expects_a_text(run):
    assert run().stdout == "hello\\n"
"""
GOOD = "print('hello')\n"
FLOOD = f"""
import sys

line = {MARKUP!r} + "\\n"
for stream in (sys.stdout, sys.stderr):
    for number in range({SIZE} // len(line)):
        stream.write(line)
"""
ENVIRONMENT = {"type": "local", "name": "large", "limits": {"output": "200M", "memory": "2G"}}
MAX_PAGE_BYTES = 8_000_000
MAX_TERMINAL_BYTES = 20_000


def start(*words):
    return subprocess.run([SLOP_CODE, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def evaluated(make_problem, cache, need_bubblewrap, tmp_path_factory):
    """A run whose second checkpoint breaks all tests, and what the commands printed; every snapshot is of 50 MB."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("large")
    problem = make_problem(
        {"test_checkpoint_1.py": TESTS, "test_checkpoint_2.py": "def test_new(): pass"},
        config={"name": "large", "timeout": 1200},
    )
    (folder / "environment.yaml").write_text(yaml.safe_dump(ENVIRONMENT))
    done = []
    for number, main in enumerate([GOOD, FLOOD], start=1):
        checkpoint = folder / "run" / "large" / f"checkpoint_{number}"
        (checkpoint / "snapshot").mkdir(parents=True)
        (checkpoint / "snapshot/main.py").write_text(main)
        row = f"data_{number} = '{MARKUP}'\n"
        (checkpoint / "snapshot/data.py").write_text(row * (SIZE // len(row)))
        done.append(
            start(
                *("eval-snapshot", checkpoint / "snapshot", "-p", problem.path, "-c", number),
                *("-e", folder / "environment.yaml", "-o", checkpoint),
            )
        )
    done.append(start("report", folder / "run", "-o", folder / "report.html"))
    return folder, done


def test_the_terminal_stays_small_and_says_why(evaluated):
    _, (first, second, _) = evaluated
    assert (first.returncode, second.returncode) == (0, 1), second.stderr
    assert len(second.stdout.encode()) < MAX_TERMINAL_BYTES
    assert "NOT PASSED (all-cases): 1 of 3 tests passed" in second.stdout
    assert "\x1b" not in second.stdout + second.stderr


def test_the_page_stays_small_and_shows_the_failure(evaluated, visit, picture):
    folder, (*_, report) = evaluated
    assert report.returncode == 0, report.stderr
    assert (folder / "report.html").stat().st_size < MAX_PAGE_BYTES
    page = visit(folder / "report.html", width=1400)
    expect(page.get_by_role("heading", name="checkpoint_2")).to_contain_text("2 broke")
    for name in ("test_prints_what_it_got", "test_expects_a_text"):
        fragment = f"test_checkpoint_1.py::{name}"
        page.evaluate("(test) => slop.go({...slop.address(), test, checkpoint: 'checkpoint_2'})", fragment)
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("heading", level=2)).to_have_text(fragment)
        expect(dialog.get_by_role("heading", name="Code changed from checkpoint_1 to checkpoint_2")).to_be_visible()
        expect(dialog.locator(".code-diff summary").filter(has_text="main.py")).to_be_visible()
        expect(dialog.get_by_text("1 file of the same size too large to compare")).to_be_visible()
        picture(page, name)
    assert severe_violations(page) == []
    assert page.evaluate("window.pwned") is None
