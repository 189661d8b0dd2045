"""Things that the subject must not see or do. `host.json` in the workspace names paths of the host."""

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest

TRACER = """
import ctypes, os, sys, time
if os.fork():
    sys.exit()
os.setsid()
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
deadline = time.monotonic() + 60
with open(sys.argv[2], "w", buffering=1) as log:
    for stream in range(3):
        os.close(stream)
    while time.monotonic() < deadline and os.path.exists(sys.argv[2]):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        next_call = child + 1
        for _ in range(100_000):
            if ptrace(SEIZE, next_call, None, None) == 0:
                ptrace(INTERRUPT, next_call, None, None)
                os.waitpid(next_call, WALL)
                with open(f"/proc/{next_call}/status") as status:
                    log.writelines(line for line in status if line.startswith("Seccomp:"))
                ptrace(DETACH, next_call, None, None)
                break
"""
HOST = json.loads(Path("host.json").read_text()) if Path("host.json").exists() else {}
TESTS = Path(__file__).parent


def test_the_tests_are_out_of_sight(says):
    assert says("import os, sys; print(os.listdir(sys.argv[2]))", TESTS) == "['assets']"
    for name in ("test_walls.py", "conftest.py", "pytest.ini", "data", "data/expected.json", "__pycache__"):
        assert says("import os, sys; print(os.path.lexists('.evaluation_tests/' + sys.argv[2]))", name) == "False"


def test_what_lies_beside_a_handed_file_is_out_of_sight(says, data):
    code = "import os, sys; print(open(sys.argv[2]).read().strip(), os.listdir(os.path.dirname(sys.argv[2])))"
    assert says(code, data / "handed.txt") == "handed ['handed.txt']"


def test_naming_the_tests_folder_shows_nothing_new(says):
    code = "import os, sys; print(sorted(set(os.listdir(sys.argv[2])) - {'assets', 'data'}))"
    assert says(code, TESTS, f"{TESTS}/", f"{TESTS}/data/..", cwd=TESTS.parent) == "[]"


def test_the_tests_themselves_are_found_nowhere(says):
    code = """
import os, sys
mark, found = "MARK-OF-THE" + "-WALLS", []
for root in ("/workspace", "/tmp", "/slop", "/dev", "/etc", "/home", "/root", "/run", "/var", "/box"):
    for folder, inner, names in os.walk(root):
        if folder == sys.base_prefix:
            inner.clear()
        for name in names:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and mark in open(path, errors="replace").read(1 << 20):
                    found.append(path)
            except OSError:
                pass
print(found)
"""
    assert says(code) == "[]"
    assert "MARK-OF-THE-WALLS" in Path(__file__).read_text()


def test_the_reports_are_out_of_sight(says):
    assert says("import os; print(os.listdir('.scbench'))") == "[]"
    assert os.listdir(".scbench") != []


@pytest.mark.parametrize("path_name", ["problem", "cache", "output", "submission", "source", "tmp"])
def test_places_of_the_host_are_out_of_sight(says, path_name):
    assert says("import os, sys; print(os.path.exists(sys.argv[2]))", HOST[path_name]) == "False"


def test_of_the_host_s_home_at_most_the_interpreter_is_seen(says):
    code = """
import os, sys
home = sys.argv[2]
kept = os.path.relpath(sys.base_prefix, home).split("/")[0]
print([name for name in (os.listdir(home) if os.access(home, os.R_OK) else []) if name != kept])
"""
    assert says(code, HOST["home"]) == "[]"


def test_processes_of_the_host_and_the_judge_are_out_of_sight(says):
    code = """
import os
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        print(open(f"/proc/{pid}/cmdline").read().replace(chr(0), " "))
    except OSError:
        pass
"""
    seen = says(code)
    assert "main.py" in seen
    assert "pytest" not in seen.replace(code, "")
    assert os.getpid() != 1


@pytest.mark.parametrize("deed", ["open('/proc/1/mem', 'rb')", "open('/proc/1/environ', 'rb').read()", "os.readlink('/proc/1/fd/3')", "os.listdir('/proc/1/root')"])
def test_the_supervisor_of_the_box_cannot_be_looked_into(call, deed):
    found = call(f"import os; {deed}").stderr
    assert "PermissionError" in found or "FileNotFoundError" in found


@pytest.mark.parametrize(
    "deed",
    [
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))",
        "os.setpriority(os.PRIO_PROCESS, 1, 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.sched_setaffinity(1, {min(os.sched_getaffinity(0))})",
        "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
        "os.sched_setparam(1, os.sched_param(0))",
    ],
)
def test_the_supervisor_of_the_box_cannot_be_held_back(call, deed):
    assert "PermissionError" in call(f"import os, resource; {deed}").stderr


def test_no_call_can_be_traced_before_it_is_restricted(call, says, tmp_path):
    """A process of an earlier call may trace the next call, where the kernel lets it, but only under the same filter."""
    log = tmp_path / "log"
    call(TRACER, log)
    for _ in range(20):
        assert says("print(6 * 7)") == "42"
    seen = log.read_text()
    log.unlink()
    assert "Seccomp:\t0" not in seen


def test_a_process_may_bound_itself(says):
    code = """
import os, resource, threading
resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (64, 64))
os.setpriority(os.PRIO_PROCESS, 0, 19)
os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0))
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    assert says(code) == "(64, 64)"


def test_the_supervisor_of_the_box_cannot_be_killed(call, says):
    for number in (1, 2, 9, 11, 15, 19):
        call(f"import os; os.kill(1, {number})")
    assert says("print('still here')") == "still here"


@pytest.mark.parametrize(
    "path",
    [
        "/planted", "/usr/planted", "/usr/bin/planted", "/etc/planted", "/etc/passwd", "/dev/planted", "/slop/planted",
        "/slop/bin/uv", "/slop/box", "/slop/subject/planted", "/slop/subject/bin/planted",
        ".scbench/planted", ".evaluation_tests/planted", ".evaluation_tests/assets/planted",
        ".evaluation_tests/assets/note",
    ],
)  # fmt: skip
def test_nothing_outside_is_writable(call, path):
    done = call("import sys; open(sys.argv[2], 'ab').write(b'x')", path)
    assert done.returncode == 1
    assert any(name in done.stderr for name in ("OSError", "PermissionError", "FileNotFoundError")), done.stderr


def test_settings_of_the_kernel_are_read_only(says):
    """Only opened, never written: what can be opened for writing is a hole already.

    Engines of containers put /dev/null over some, and leave pressure, where anyone may ask to be woken.
    """
    code = """
import os
CONTAINER = os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")
found, beside = [], ["self", "thread-self", "net", *(["pressure"] if CONTAINER else [])]
null = os.stat("/dev/null").st_rdev
for name in os.listdir("/proc"):
    if name.isdigit() or name in beside or os.lstat(f"/proc/{name}").st_rdev == null:
        continue
    for path in [f"/proc/{name}", *(os.path.join(f, n) for f, _, names in os.walk(f"/proc/{name}") for n in names)]:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            found.append(path)
        except OSError:
            pass
print(found)
"""
    assert says(code) == "[]"


def test_pytest_s_own_variables_do_not_reach_the_subject(says):
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert says("import os; print([name for name in os.environ if name.startswith('PYTEST_')])") == "[]"


def test_handed_files_are_read_only(call, data):
    path = data / "handed.txt"
    for deed in ("open(sys.argv[2], 'w')", "os.unlink(sys.argv[2])", "os.chmod(sys.argv[2], 0o777)", "os.rename(sys.argv[2], 'x')"):
        assert "OSError" in call(f"import os, sys; {deed}", path).stderr, deed
    assert path.read_text() == "handed\n"


@pytest.mark.parametrize("name", [".evaluation_tests", ".scbench"])
@pytest.mark.parametrize("deed", ["os.rename(name, 'gone')", "os.rmdir(name)", "shutil.rmtree(name)", "os.unlink(name)", "os.rename('/workspace', '/tmp/gone')"])
def test_reserved_folders_stay(call, name, deed):
    done = call(f"import os, shutil, sys; name = sys.argv[2]; {deed}", name)
    assert "Error" in done.stderr
    assert (TESTS / "data/expected.json").is_file()


@pytest.mark.parametrize(("folder", "target"), [
    ("tmp", "/workspace/.evaluation_tests/data/expected.json"),
    ("workspace", ".evaluation_tests/data/expected.json"),
    ("workspace", "/workspace/.evaluation_tests/data/expected.json"),
    ("tmp", "/slop/judge/settings.json"),
])  # fmt: skip
def test_a_planted_link_is_not_followed(says, tmp_path, data, folder, target):
    out = (tmp_path if folder == "tmp" else Path.cwd()) / "out.json"
    out.unlink(missing_ok=True)
    says("import os, sys; os.symlink(sys.argv[2], sys.argv[3])", target, out)
    assert out.is_symlink()
    with pytest.raises(OSError):
        out.read_text()
    with pytest.raises(OSError):
        out.write_text("forged")
    assert json.loads((data / "expected.json").read_text()) == {"answer": 42}


def test_a_planted_link_to_a_folder_is_not_followed(says, tmp_path):
    says("import os, sys; os.symlink('/workspace/.evaluation_tests/data', sys.argv[2])", tmp_path / "out")
    with pytest.raises(OSError):
        (tmp_path / "out/expected.json").read_text()


def test_there_is_no_way_to_the_host_s_loopback(call):
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[2])), 5)"
    assert "ConnectionRefusedError" in call(code, HOST["port"]).stderr


def test_there_is_no_other_network(says):
    assert says("import socket; print([name for _, name in socket.if_nameindex()])") == "['lo']"
    assert "Error" in says("import socket\ntry: socket.create_connection(('192.0.2.1', 80), 5)\nexcept OSError as e: print(repr(e))")


@pytest.mark.parametrize("flag", [0x10000000, 0x00020000, 0x40000000])
def test_no_new_namespaces(says, flag):
    code = f"import ctypes; print(ctypes.CDLL(None).unshare({flag}))"
    assert says(code) == "-1"


def test_no_capabilities_and_no_way_to_any(says):
    code = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapBnd', 'NoNewPrivs'))])"
    assert set(says(code).strip("[]").replace("'", "").split(", ")) == {"0000000000000000", "1"}


def test_no_descriptor_but_the_three(says):
    code = "import os, sys; os.execvp('ls', ['ls', '/proc/self/fd'])"
    assert says(code).split() == ["0", "1", "2", "3"]  # the last is the folder that ls reads


def test_a_timeout_ends_the_whole_group(entrypoint, tmp_path):
    lock = tmp_path / "lock"
    code = """
import fcntl, os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, done = os.pipe()
if os.fork() == 0:
    file = open(sys.argv[2], "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(done, b"x")
else:
    os.read(ready, 1)
    open(sys.argv[2] + ".held", "w").close()
signal.alarm(40)
while True:
    signal.pause()
"""
    held = Path(f"{lock}.held")
    for seconds in (2, 8, 32):  # a busy machine takes longer to start it
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run([*entrypoint, code, str(lock)], timeout=seconds, capture_output=True)
        if held.exists():
            break
    assert held.exists()
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def test_a_port_that_the_host_uses_is_free_here(says):
    code = "import socket, sys; print(socket.create_server(('127.0.0.1', int(sys.argv[2]))).getsockname()[1])"
    assert says(code, HOST["port"]) == str(HOST["port"])
    assert says(code, 8080) == "8080"


def test_nothing_is_asked_for_behind_the_filter_s_back(says):
    """What goes through io_uring no filter of system calls sees: a socket to the host of a virtual machine, say."""
    code = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
space = ctypes.create_string_buffer(256)
for number in (425, 426, 427):
    print(libc.syscall(number, 1, space, 0, 0, 0, 0), errno.errorcode[ctypes.get_errno()])
"""
    assert says(code) == "\n".join(["-1 ENOSYS"] * 3)
