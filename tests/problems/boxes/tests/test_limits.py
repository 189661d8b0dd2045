"""A call beyond a limit fails, and the next call works as usual.

The environment allows 300M of memory, 50 processes, 40M on disk and 8M of output.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

MEMORY_TOGETHER = """
import os, signal
for _ in range(6):
    if os.fork() == 0:
        signal.alarm(60)
        held = bytearray(os.urandom(1 << 20)) * 90
        signal.pause()
        os._exit(0)
for _ in range(6):
    os.wait()
print("all there")
"""
PROCESSES = """
import os, signal, sys
try:
    for _ in range(150):  # small ones, as a kernel without shared memory would count a Python for each
        os.posix_spawn("/bin/sleep", ["sleep", "90"], {})
except BlockingIOError as error:  # those it has would leave the next call just one
    print(repr(error), file=sys.stderr, flush=True)
    os.killpg(0, signal.SIGKILL)
signal.alarm(60)
signal.pause()
"""

LEFT = """
import os, signal
for _ in range(48):
    if os.fork() == 0:
        signal.alarm(20)
        signal.pause()
"""
TEN = """
import os, signal
for _ in range(10):
    if os.fork() == 0:
        signal.pause()
os.write(1, b"ten")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.killpg(0, signal.SIGTERM)
"""


@pytest.fixture(autouse=True)
def others_work_before_and_after(says):
    assert says("print(6 * 7)") == "42"
    yield
    assert says("print(6 * 7)") == "42"


def test_memory_of_one(call):
    assert call("held = bytearray(1_400_000_000); print('had it')").stdout == ""
    done = call("import mmap; held = mmap.mmap(-1, 1_400_000_000); held.write(b'x' * 1_400_000_000); print('had it')")
    assert (done.returncode != 0, done.stdout) == (True, "")


def test_memory_at_a_stroke(call):
    """The kernel may be quicker than the watch."""
    flags = "mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE"
    done = call(f"import mmap, signal; signal.alarm(60); held = mmap.mmap(-1, 800 << 20, {flags}); signal.pause()")
    assert done.returncode == -9


def test_shared_memory(call):
    code = "held = mmap.mmap(-1, 800 << 20)\nfor _ in range(800): held.write(b'x' * (1 << 20))\nsignal.pause()"
    done = call(f"import mmap, signal\nsignal.alarm(60)\n{code}")
    assert done.returncode == -9


def test_memory_of_several_together(call):
    done = call(MEMORY_TOGETHER)
    assert done.returncode != 0
    assert "more memory than its limit of 300 MiB" in done.stderr
    assert done.stdout == ""


def test_processes(call):
    done = call(PROCESSES)
    assert done.returncode != 0
    assert "more processes than its limit of 50" in done.stderr or "BlockingIOError" in done.stderr


def test_the_next_call_has_room_after_one_that_left_as_many_processes_as_allowed(call, says):
    call(LEFT)
    assert says(TEN) == "ten"


@pytest.mark.parametrize("chunk", [100, 5])
@pytest.mark.parametrize("location", ["workspace", "tmp"])
def test_disk(call, tmp_path, location, chunk):
    folder = Path.cwd() / "filled" if location == "workspace" else tmp_path / "filled"
    folder.mkdir()
    code = """
import sys
folder, chunk = sys.argv[2], int(sys.argv[3])
for number in range(100 // chunk):
    with open(f"{folder}/{number}", "wb") as file:
        for _ in range(chunk):
            file.write(b"x" * (1 << 20))
print("all there")
"""
    done = call(code, folder, chunk)
    shutil.rmtree(folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "OSError" in done.stderr


@pytest.mark.parametrize("stream", [1, 2])
def test_output(call, stream):
    done = call(f"import os\nfor _ in range(64): os.write({stream}, b'x' * (1 << 20))\nprint('all out')", text=False)
    assert done.returncode != 0
    assert b"all out" not in done.stdout
    assert b"printed more than its limit of 8 MiB" in done.stderr[-200:]
    assert len(done.stdout) + len(done.stderr) < 12 << 20


def test_output_to_a_file_of_the_test(call, tmp_path):
    with (tmp_path / "out").open("wb") as out:
        done = call(
            "import os\nfor _ in range(64): os.write(1, b'x' * (1 << 20))", stdout=out, stderr=subprocess.PIPE, capture_output=False
        )
    size = (tmp_path / "out").stat().st_size
    (tmp_path / "out").unlink()
    assert done.returncode != 0
    assert size <= 40 << 20


def test_core_files_are_not_written(call):
    assert call("import os; os.abort()").returncode == -6
    assert list(Path.cwd().glob("core*")) == []
