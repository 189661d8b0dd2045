"""Rule that unit tests start no process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
TESTS = """
import os, socket, subprocess, threading
import pytest

begins, ended = threading.Event(), threading.Event()

def start_later():
    begins.wait()
    subprocess.run(["true"])
    ended.set()

@pytest.fixture(scope="session")
def program():
    subprocess.run(["true"])

def test_plain():
    os.getpid()

def test_starts():
    subprocess.run(["true"])

def test_starts_and_hears_nothing_of_it():
    with pytest.raises(OSError):
        subprocess.run(["/no/such/program"])

def test_asks_for_what_starts(program):
    pass

def test_forks():
    if os.fork() == 0:
        os._exit(0)
    os.wait()

def test_connects():
    with socket.socket() as client, pytest.raises(OSError):
        client.connect(("127.0.0.1", 1))

def test_starts_a_thread_that_starts():
    thread = threading.Thread(target=subprocess.run, args=(["true"],))
    thread.start()
    thread.join()

def test_leaves_a_thread():
    threading.Thread(target=start_later, daemon=True).start()

def test_runs_beside_a_thread_of_another_test():
    begins.set()
    ended.wait()

@pytest.mark.e2e
def test_marked():
    subprocess.run(["true"])
"""


@pytest.mark.long
@pytest.mark.e2e
def test_side_by_side_what_takes_long_comes_first(tmp_path):
    real = "import pytest\n\n@pytest.mark.e2e\n@pytest.mark.parametrize('n', range({}))\ndef test_it(n):\n    pass\n"
    files = {"test_a": "def test_it():\n    pass\n", "test_b": real.format(1), "test_c": real.format(2)}
    for name, text in {**files, "test_ray": real.format(1), "conftest": CONFTEST.read_text()}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = e2e: real\n")
    argv = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-n", "1"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    order = [line.split()[-1] for line in done.stdout.splitlines() if "PASSED" in line]
    assert order == [
        "test_ray.py::test_it[0]",
        "test_c.py::test_it[0]",
        "test_c.py::test_it[1]",
        "test_b.py::test_it[0]",
        "test_a.py::test_it",
    ], done.stdout


@pytest.mark.e2e
def test_a_unit_test_that_starts_something_fails(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_them.py").write_text(TESTS)
    (tmp_path / "e2e").mkdir()
    (tmp_path / "e2e" / "test_more.py").write_text("import no_such_module\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = e2e: real\n")
    argv = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not e2e"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    outcomes = [line.partition("::")[2].split()[:2] for line in done.stdout.splitlines() if "%]" in line]
    assert outcomes == [
        ["test_plain", "PASSED"],
        ["test_starts", "FAILED"],
        ["test_starts_and_hears_nothing_of_it", "FAILED"],
        ["test_asks_for_what_starts", "ERROR"],
        ["test_forks", "FAILED"],
        ["test_connects", "FAILED"],
        ["test_starts_a_thread_that_starts", "FAILED"],
        ["test_leaves_a_thread", "PASSED"],
        ["test_runs_beside_a_thread_of_another_test", "PASSED"],
    ], done.stdout
    assert "a unit test must not do this: subprocess.Popen; mark it @pytest.mark.e2e" in done.stdout
    assert "a unit test must not do this: os.fork" in done.stdout
