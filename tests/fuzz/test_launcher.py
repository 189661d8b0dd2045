"""The helper between the boxes, with another side that says anything: it goes on, or it ends in words.

In the long profile a second helper takes part: the same sources, built with the compiler's sanitisers.
"""

from __future__ import annotations

import array
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from slop_code.execution.bubblewrap import boxes as bubblewrap
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.helper import helper_path
from tests.fuzz.odd import damaged, fuzzed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LONG = settings.get_current_profile_name() == "long"
HELPERS = ["built", *(["sanitised"] if LONG else [])]
MAGIC, REQUEST_FDS = 0x534C4F50, 4
REQUEST, REPLY = struct.Struct("=IIII"), struct.Struct("=iI")
"""As slopbox.h has them."""

DESCRIPTORS = 40
"""That serve may have: were it to keep those of a call that it refuses, it would soon have none left."""

UNLIMITED = [str(1 << 60), str(1 << 30), str(1 << 60), "0"]
"""Memory, processes, sizes: where there is no limit, nothing is ever ended for being over it."""

HEADER = struct.Struct("<BBHIIIQq")
CRASHES = [signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE, signal.SIGSYS]
STOPS = [signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU]
"""A call that is told to stop stays so until its launcher is gone, as any process does."""

CALL = [b"/", b"sh", b"-c", b"exit 7", b"PATH=/usr/bin:/bin"]
PATIENCE = 40
SANITISERS = "detect_leaks=0:exitcode=99:handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"
"""Signals are told as what they are: some of them are asked for."""


@pytest.fixture(autouse=True, scope="module")
def bounded_memory() -> None:
    """It would be that of the helpers as well, and sanitisers want all addresses that there are."""


@pytest.fixture(scope="module")
def helpers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    programs = {"built": str(helper_path())}
    if LONG and (compiler := shutil.which("cc")):
        programs["sanitised"] = str(tmp_path_factory.mktemp("helpers") / "sanitised")
        flags = ["-std=gnu11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
        sources = helper_path().parent.glob("*.c")
        subprocess.run([compiler, *flags, "-o", programs["sanitised"], *sources], check=True)
    return programs


@pytest.fixture(params=HELPERS)
def helper(request: pytest.FixtureRequest, helpers: dict[str, str]) -> str:
    if request.param not in helpers:
        pytest.skip("no C compiler for the sanitised helper")
    return helpers[request.param]


@pytest.fixture
def box(need_bubblewrap: Callable[[], None], tmp_path: Path) -> Callable[[Sequence[str], str], list[str]]:
    """bwrap's words for a box with processes of its own, in which the helper is /slop/helper and /slop/run."""
    need_bubblewrap()
    (tmp_path / "gate").mkdir()
    (tmp_path / "conf").write_text("tests=/tests\nworkspace=/workspace\noutput=1000\n")

    def words(argv: Sequence[str], helper: str) -> list[str]:
        return [
            bubblewrap.bwrap() or "", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--unshare-pid",
            "--unshare-net", "--unshare-ipc", "--as-pid-1", "--die-with-parent", *system_arguments(), "--proc", "/proc",
            "--dev", "/dev", "--dir", "/workspace", "--dir", "/slop/call/done", "--dir", "/slop/shown",
            "--dir", "/tests", "--tmpfs", "/tmp", "--bind", str(tmp_path / "gate"), "/slop/gate",
            "--ro-bind", str(tmp_path / "conf"), "/slop/call/conf",
            "--ro-bind", helper, "/slop/helper", "--ro-bind", helper, "/slop/run", "--clearenv",
            "--setenv", "ASAN_OPTIONS", SANITISERS, "--setenv", "PATH", "/usr/bin:/bin",
            "--chdir", "/workspace", "--", *argv,
        ]  # fmt: skip

    return words


@dataclass(frozen=True)
class Call:
    """What somebody sends who wants a command started: first a packet with descriptors, then others."""

    first: bytes
    text: bytes
    descriptors: int
    then: list[bytes] = field(default_factory=list)


def request(words: Sequence[bytes], argc: int = 3) -> tuple[bytes, bytes]:
    text = b"\0".join([*words, b""])
    return REQUEST.pack(MAGIC, argc, len(words) - 1 - argc, len(text)), text


FOUND = {
    "a file shorter than it is said to be": Call(REQUEST.pack(MAGIC, 3, 1, 4096), request(CALL)[1], REQUEST_FDS),
    "more words than fit into a number": Call(REQUEST.pack(MAGIC, 2**32 - 1, 2, 2), b"a\0", REQUEST_FDS),
    "too few descriptors, ever again": Call(*request(CALL), 3),
}


@pytest.mark.parametrize("name", FOUND)
def test_serve_goes_on(box: Callable[..., list[str]], helper: str, tmp_path: Path, name: str) -> None:
    """What was found: a killed process, memory written to that is not its own, descriptors kept for ever."""
    with serving(box, helper, tmp_path) as place:
        for _ in range(DESCRIPTORS):
            connection, errors = send(place, FOUND[name])
            assert (reply_to(connection), said(errors)) in [(None, b""), ((125 << 8, 0), b"slop-code: bad request\n")]
        connection, errors = send(place, Call(*request(CALL), REQUEST_FDS))
        assert (reply_to(connection), said(errors)) == ((7 << 8, 0), b"")


edges = st.sampled_from([0, 1, 2, 3, 4, 16, 255, 4096, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])


@st.composite
def calls(draw: st.DrawFn) -> Call:
    first, text = request(CALL)
    fields = list(REQUEST.unpack(first))
    for place in draw(st.lists(st.sampled_from([1, 2, 3, 3, 0]), max_size=2)):
        fields[place] = draw(edges | st.integers(0, len(text) + 2))
    first = REQUEST.pack(*fields)
    first = draw(st.just(first) | st.just(first) | damaged(first) | st.binary(max_size=40))
    text = draw(st.just(text) | damaged(text) | st.binary(max_size=60))
    numbers = st.integers(-2, 70).filter(lambda number: number not in STOPS)
    then = draw(st.lists(numbers.map(struct.Struct("=i").pack) | st.binary(max_size=9), max_size=3))
    return Call(first[:1000] or b"x", text, draw(st.sampled_from([4, 4, 4, 4, 0, 1, 2, 3, 5, 8])), then)


def send(place: str, call: Call) -> tuple[socket.socket, int]:
    """The connection, and a file with what was said to the errors of the call."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(PATIENCE)
    connection.connect(place)
    memory, errors = os.memfd_create("call"), os.memfd_create("errors")
    os.write(memory, call.text)
    null = os.open(os.devnull, os.O_RDWR)
    given = [null, null, errors, memory, null, null, null, null][: call.descriptors]
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))] if given else []
    with contextlib.suppress(ConnectionError):  # it may have ended the call already
        connection.sendmsg([call.first], rights)
        for packet in call.then:
            connection.send(packet)
    os.close(null)
    os.close(memory)
    return connection, errors


def reply_to(connection: socket.socket) -> tuple[int, int] | None:
    """None where the call was refused."""
    try:
        packet = connection.recv(100)
    except ConnectionError:
        packet = b""
    connection.close()
    return REPLY.unpack(packet) if packet else None


def said(errors: int) -> bytes:
    text = os.pread(errors, 1 << 16, 0)
    os.close(errors)
    return text


@contextlib.contextmanager
def serving(box: Callable[..., list[str]], helper: str, folder: Path) -> Iterator[str]:
    place = str(folder / "gate" / "serve")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen(64)
        few = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh"]
        argv = [*few, "/slop/helper", "serve", str(listener.fileno()), *UNLIMITED]
        with subprocess.Popen(box(argv, helper), pass_fds=[listener.fileno()], stderr=subprocess.PIPE) as process:
            try:
                yield place
                assert process.poll() is None
            finally:
                process.kill()
                assert process.stderr
                assert process.stderr.read() == b""


def test_serve(box: Callable[..., list[str]], helper: str, tmp_path: Path) -> None:
    """After whatever was asked, the next call is answered; what was asked never crashed a process."""
    with serving(box, helper, tmp_path) as place:

        @fuzzed(3, several=st.lists(calls(), min_size=1, max_size=4))
        def examples(several: list[Call]) -> None:
            for connection, errors in [send(place, call) for call in several]:
                reply = reply_to(connection)
                assert b"Sanitizer" not in (text := said(errors)), text.decode(errors="replace")
                assert b"runtime error" not in text
                if reply is not None and os.WIFSIGNALED(reply[0]):
                    asked = {
                        struct.unpack("=i", packet)[0] for call in several for packet in call.then if len(packet) == 4
                    }
                    number = os.WTERMSIG(reply[0])
                    assert number not in CRASHES or number in asked, number
            connection, errors = send(place, Call(*request(CALL), REQUEST_FDS))
            assert (reply_to(connection), said(errors)) == ((7 << 8, 0), b"")

        examples()


@contextlib.contextmanager
def killed(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """In the end, where it has not ended by itself."""
    try:
        yield
    finally:
        process.kill()


replies = st.one_of(
    st.tuples(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 255), st.integers(0, 5)).map(
        lambda pair: REPLY.pack(*pair)
    ),
    st.integers(0, 127).map(lambda number: REPLY.pack(number, 0)),
    st.binary(max_size=20),
)


def test_run(box: Callable[..., list[str]], helper: str, tmp_path: Path) -> None:
    """Whatever the other box answers, the launcher ends: as it was told, or in words."""
    place = tmp_path / "gate" / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(place))
        listener.listen(8)
        listener.settimeout(PATIENCE)

        @fuzzed(4, answer=replies | st.none(), output=st.binary(max_size=1200))
        def examples(answer: bytes | None, output: bytes) -> None:
            argv = box(["/bin/sh", "-c", "/slop/run a b; exit $?"], helper)
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            with subprocess.Popen(argv, stdin=subprocess.DEVNULL, **pipes) as process:
                connection = listener.accept()[0]
                packet, given, _, _ = socket.recv_fds(connection, 100, 8)
                assert REQUEST.unpack(packet)[:2] == (MAGIC, 2)
                with contextlib.suppress(OSError):  # it may have had enough
                    os.write(given[1], output)
                for descriptor in given:
                    os.close(descriptor)
                if answer is not None:
                    connection.send(answer)
                connection.close()
                with killed(process):
                    out, err = process.communicate(timeout=PATIENCE)
            assert b"Sanitizer" not in err, err
            assert b"runtime error" not in err
            assert 0 <= process.returncode <= 255
            if len(answer or b"") == REPLY.size and len(output) <= 1000:
                assert out == output
            else:
                assert process.returncode == 125 or len(answer or b"") > REPLY.size, err

        examples()


def test_run_does_not_stop(box: Callable[..., list[str]], helper: str, tmp_path: Path) -> None:
    """What was found: told that the process died of SIGSTOP, of which none does, it waited for ever."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(tmp_path / "gate" / "socket"))
        listener.listen(8)
        listener.settimeout(PATIENCE)
        with subprocess.Popen(
            box(["/bin/sh", "-c", "/slop/run a; exit $?"], helper), stdin=subprocess.DEVNULL
        ) as process:
            with listener.accept()[0] as connection, killed(process):
                connection.send(REPLY.pack(signal.SIGSTOP, 0))
                assert process.wait(PATIENCE) == 128 + signal.SIGSTOP


def record(kind: int, name: bytes = b"", content: bytes = b"", flags: int = 0) -> bytes:
    return HEADER.pack(kind, flags, 0, 0o644, len(name), 0, len(content), 0) + name + content


TREE = b"".join([
    record(ord("T"), b"/tmp/new", flags=1), record(ord("F"), b"a", b"content"), record(ord("D"), b"in"),
    record(ord("L"), b"link", b"/etc/passwd"), record(ord("P"), b"pipe"), record(ord("U")), record(ord("E")),
])  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> bytes:
    names = st.sampled_from([b"a", b"b", b"..", b".", b"", b"a/b", b"/", b"a\0b", b"x" * 255, b"x" * 5000, b"\xff"])
    one = st.builds(record, st.sampled_from(list(b"FDULPSTEQ\0")), names, st.binary(max_size=9), st.integers(0, 255))
    return record(ord("T"), b"/tmp/new", flags=1) + b"".join(draw(st.lists(one, max_size=6))) + record(ord("E"))


@pytest.mark.parametrize("kind", ["T", "F", "L"])
def test_no_name_ends_early(box: Callable[..., list[str]], helper: str, kind: str) -> None:
    """What was found: the helper took what stands before a NUL for the name."""
    odd = {"T": record(ord("T"), b"/tmp/a\0b"), "F": record(ord("F"), b"a\0b"), "L": record(ord("L"), b"a", b"b\0c")}
    raw = record(ord("T"), b"/tmp/new", flags=1) + odd[kind] + record(ord("E"))
    argv = box(["/slop/helper", "pair", "--unpack", "0", "0", "--ready", "--hold"], helper)
    done = subprocess.run(argv, input=raw, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (125, b"", b"slop-code: what was sent is no tree\n")


def test_unpack(box: Callable[..., list[str]], helpers: dict[str, str]) -> None:
    """All helpers make the same of what was sent: a tree, or nothing of it, and that in words."""

    @fuzzed(5, raw=damaged(TREE) | records())
    def examples(raw: bytes) -> None:
        told = {}
        for name, helper in helpers.items():
            argv = box(["/slop/helper", "pair", "--unpack", "0", "0", "--ready", "--hold"], helper)
            done = subprocess.run(argv, input=raw, capture_output=True, timeout=PATIENCE)
            assert b"Sanitizer" not in done.stderr, done.stderr
            assert b"runtime error" not in done.stderr
            told[name] = (done.returncode, done.stdout)
            assert done.returncode in (0, 125), done.stderr
            assert done.stderr == b"" if done.returncode == 0 else done.stderr.startswith(b"slop-code: ")
        assert len(set(told.values())) == 1, told

    examples()
