"""The protocol of templates, with real processes; what is wrong never becomes an exit status."""

import base64
import json
import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from slop_code.execution.bubblewrap.bwrap_binary import bwrap
from slop_code.execution.helper import helper_path
from tests.marks import in_long
from tests.process_checks import ends
from tests.template_client import JudgeFolder, StartedEvaluation

pytestmark = pytest.mark.e2e
END_S = 60
WAITING = """
    import os, subprocess
    def test_wait():
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        with open("../started", "w") as pipe:
            pipe.write(f"{os.getpid()} {child.pid}")
        child.wait()
"""


@pytest.fixture
def folder(tmp_path):
    return JudgeFolder(tmp_path, {"test_a.py": "def test_a(): pass"})


LEAVES_A_PROCESS = """
    import subprocess
    def test_daemon():
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        open(".scbench/pids", "w").write(str(child.pid))
"""


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A folder and a template of its tests, which every test leaves as it was."""
    folder = JudgeFolder(tmp_path_factory.mktemp("collected"), {"test_a.py": LEAVES_A_PROCESS})
    with folder.collected() as template:
        yield folder, template


@pytest.fixture
def waiting(tmp_path):
    os.mkfifo(tmp_path / "started")
    return JudgeFolder(tmp_path, {"test_wait.py": WAITING})


def started(folder, template):
    """An evaluation whose test runs, and the process ids of the judge and its child."""
    folder.reset()
    evaluation = template.start(folder.request(), folder.root / "pytest.log")
    return evaluation, [int(word) for word in (folder.root / "started").read_text().split()]


def test_packets_and_requests_that_are_damaged_have_no_exit_status_and_change_nothing(folder):
    with folder.imported() as template:
        request = json.dumps(folder.request()).encode()
        for packet in (b"{}", b"[", b'{"evaluate": 2}', b"x" * 100_000):
            assert StartedEvaluation(template, request, folder.root / "log", packet).wait() is None
        template.socket.send(b'{"evaluate": 1}')  # without descriptors
        for number, text in enumerate((b"", b"{", b"[]", b'{"boxes": null}', b'{"boxes": ["/x"], "filter": null}')):
            log = folder.root / f"log-{number}"
            assert StartedEvaluation(template, text, log).wait() is None
            assert "the fork server failed" in log.read_text()
        assert folder.forked(template).exit_code == 0


DIFFERENT = (
    ({"settings": {"tests": "/other"}}, "not the settings of the template: tests"),
    ({"settings": {"limits": {"memory": 1}}}, "not the settings of the template: limits"),
    ({"argv": ["uvx", "pytest", "-x"]}, "the arguments of pytest are not those of the template"),
    ({"cwd": "/"}, "not the settings of the template: cwd"),
)


def test_a_judge_never_goes_on_from_a_template_of_other_tests(collected):
    folder, template = collected
    folder.reset()
    for number, (change, text) in enumerate(DIFFERENT):
        request, log = folder.request(), folder.root / f"log-{number}"
        for key, value in change.items():
            request[key] = {**request[key], **value} if isinstance(value, dict) else value
        assert template.evaluate(request, log) == 125
        assert text in log.read_text()
    assert not (folder.reports / "stream.jsonl").exists()


@pytest.mark.parametrize("kind", ["collected", *in_long("imported")])
def test_judges_run_side_by_side_and_end_with_their_lifeline_or_their_template(waiting, kind):
    with getattr(waiting, kind)() as template:
        first, pids = started(waiting, template)
        second, others = started(waiting, template)
        assert not any(ends(pid, 0) for pid in [*pids, *others])
        for pid in (pids[1], others[1]):
            os.kill(pid, signal.SIGKILL)
        assert [first.wait(), second.wait()] == [0, 0]
        abandoned, pids = started(waiting, template)
        abandoned.abandon()
        assert abandoned.wait() is None
        assert all(ends(pid, END_S) for pid in pids)
        assert template.process.poll() is None
        last, pids = started(waiting, template)
        template.process.send_signal(signal.SIGKILL)
        assert last.wait() is None
        assert ends(pids[0], END_S)
    os.kill(pids[1], signal.SIGKILL)


def test_a_judge_that_stops_its_process_group_ends_with_the_lifeline(waiting):
    waiting.files["test_wait.py"] = dedent(WAITING.replace("child.wait()", "os.kill(0, 19)  # SIGSTOP"))
    with waiting.collected() as template:
        evaluation, pids = started(waiting, template)
        evaluation.abandon()
        assert evaluation.wait() is None
        assert all(ends(pid, END_S) for pid in pids)


def test_a_template_ends_with_its_socket(waiting):
    with waiting.collected() as template:
        evaluation, pids = started(waiting, template)
        template.socket.close()
        assert template.process.wait(60) == 0
        assert evaluation.wait() is None
        assert ends(pids[0], END_S)
    os.kill(pids[1], signal.SIGKILL)


def test_a_judge_leaves_neither_processes_nor_descriptors_of_its_template(collected):
    folder, template = collected
    before = os.listdir(f"/proc/{template.process.pid}/fd")
    for _ in range(3):
        judged = folder.forked(template)
        assert judged.exit_code == 0
        assert ends(int((judged.folder / "pids").read_text()), 0)
    assert os.listdir(f"/proc/{template.process.pid}/fd") == before


IN_BOX = """
    import ctypes, json, os, resource, socket
    from pathlib import Path
    GET_DUMPABLE = 3
    def test_box():
        lines = Path("/proc/self/status").read_text().splitlines()
        names = ("Uid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters")
        status = dict(line.split(":", 1) for line in lines)
        state = {name: status[name].split()[0] for name in names}
        state |= {"host": socket.gethostname(), "net": sorted(name for _, name in socket.if_nameindex())}
        state |= {"size": resource.getrlimit(resource.RLIMIT_FSIZE), "first": Path("/proc/1/comm").read_text()}
        state |= {"namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in os.listdir("/proc/self/ns")}}
        state |= {"session": os.getsid(0) == os.getpid(), "own": os.stat("/proc/self/status").st_uid}
        state["dumpable"] = ctypes.CDLL(None).prctl(GET_DUMPABLE)
        Path(".scbench/box.json").write_text(json.dumps(state))
"""
HOLD = """
import os, socket, sys
names = ("net", "ipc", "uts", "pid", "cgroup", "mnt", "user")
open(sys.argv[2], "w").write(" ".join(os.readlink(f"/proc/self/ns/{name}") for name in names))
with socket.socket(fileno=int(sys.argv[1])) as judge:
    socket.send_fds(judge, [b"N"], [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in names])
    data = judge.recv(4)
os._exit(int.from_bytes(data, sys.byteorder) + 1 if data else 99)
"""
PRIVATE = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]


def boxed_template(folder):
    """A template with all capabilities in a user namespace of its own, in which it makes the boxes."""
    (folder.root / "proc").mkdir()
    command = [
        bwrap(), *PRIVATE, "--uid", "0", "--gid", "0", "--dev-bind", "/", "/", "--cap-add", "ALL", "--die-with-parent",
        # The kernel lets the boxes mount /proc only while a /proc without anything mounted over it is visible.
        "--proc", "/proc", "--bind", "/proc", str(folder.root / "proc"), "--",
    ]  # fmt: skip
    return folder.collected(prefix=command)


def boxed_request(folder):
    (folder.root / "hold.py").write_text(HOLD)
    boxes = [
        bwrap(), *PRIVATE, "--uid", "1000", "--gid", "1000", "--hostname", "box", "--dev-bind", "/", "/",
        "--proc", "/proc", "--die-with-parent", "--cap-drop", "ALL", "--",
        sys.executable, str(folder.root / "hold.py"), "{hold}", str(folder.root / "hold.txt"),
    ]  # fmt: skip
    printed = subprocess.run([helper_path(), "show-filter"], capture_output=True, check=True, text=True).stdout
    filter_code = base64.b64encode(bytes.fromhex(printed)).decode()
    return {**folder.request(), "boxes": boxes, "filter": filter_code, "file_size": 1 << 20}


@pytest.fixture(scope="module")
def boxed(tmp_path_factory):
    """A folder and a template that makes boxes."""
    folder = JudgeFolder(tmp_path_factory.mktemp("boxed"), {"test_box.py": IN_BOX})
    with boxed_template(folder) as template:
        assert template.answer["ready"] == "collected"
        yield folder, template


def test_a_judge_runs_in_the_namespaces_of_its_box_without_privileges(boxed):
    folder, template = boxed
    folder.reset()
    status = template.evaluate(boxed_request(folder), folder.root / "log")
    assert status == 1, (folder.root / "log").read_text()  # that of the boxes: one more than the judge's
    state = json.loads((folder.reports / "box.json").read_text())
    held = (folder.root / "hold.txt").read_text().split()
    namespaces = state.pop("namespaces")
    assert [namespaces[name] for name in ("net", "ipc", "uts", "pid", "cgroup", "mnt", "user")] == held
    none = "0" * 16
    assert state == {
        "Uid": "1000", "CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
        "NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "1", "host": "box", "net": ["lo"],
        "size": [1 << 20, 1 << 20], "first": "bwrap\n", "session": False, "own": 1000, "dumpable": 1,
    }  # fmt: skip


def test_boxes_that_fail_end_with_their_own_status(boxed):
    folder, template = boxed
    folder.reset()
    for boxes, expected in ((["/bin/sh", "-c", "echo broken; exit 77"], 77), (["/nothing"], 125)):
        request = {**boxed_request(folder), "boxes": boxes}
        assert template.evaluate(request, folder.root / "failed") == expected
    assert "broken" in (folder.root / "failed").read_text()
    request = {**boxed_request(folder), "filter": base64.b64encode(b"damaged").decode()}
    assert template.evaluate(request, folder.root / "failed") == 126  # the judge's 125, and one more
    assert "the filter of system calls is damaged" in (folder.root / "failed").read_text()
    assert not (folder.reports / "box.json").exists()
