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
import tarfile
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from slop_code.attacks.attack import read_corpus
from slop_code.execution.bubblewrap import bwrap_binary
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.helper import helper_path
from tests.execution.tar_members import END, attributes, line, member, patched
from tests.fuzz.odd_input import damaged, fuzzed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LONG = settings.get_current_profile_name() == "long"
HELPERS = ["built", *(["sanitised"] if LONG else [])]
MAGIC, REQUEST_FDS = 0x534C4F50, 4
REQUEST, REPLY = struct.Struct("=IIII"), struct.Struct("=iI")
"""As helper.h has them."""

DESCRIPTORS = 40
"""That serve may have: were it to keep those of a call that it refuses, it would soon have none left."""

UNLIMITED = [str(1 << 60), str(1 << 30), str(1 << 60), "0"]
"""Memory, processes, sizes: where there is no limit, nothing is ever ended for being over it."""

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
    """bwrap's words for a box with processes of its own, in which the helper is /slop/helper and /slop/slop-run."""
    need_bubblewrap()
    (tmp_path / "gate").mkdir()
    (tmp_path / "conf").write_text("tests=/tests\0workspace=/workspace\0output=1000\0")

    def words(argv: Sequence[str], helper: str) -> list[str]:
        return [
            bwrap_binary.bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--unshare-pid",
            "--unshare-net", "--unshare-ipc", "--as-pid-1", "--die-with-parent", *system_arguments(), "--proc", "/proc",
            "--dev", "/dev", "--dir", "/workspace", "--dir", "/slop/call/done", "--dir", "/slop/shown",
            "--dir", "/tests", "--tmpfs", "/tmp", "--bind", str(tmp_path / "gate"), "/slop/gate",
            "--ro-bind", str(tmp_path / "conf"), "/slop/call/conf",
            "--ro-bind", helper, "/slop/helper", "--ro-bind", helper, "/slop/slop-run", "--clearenv",
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
    "too many descriptors": Call(*request(CALL), REQUEST_FDS + 1),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_spawner_goes_on_after_a_bad_request(
    box: Callable[..., list[str]], helper: str, tmp_path: Path, name: str
) -> None:
    """What was found: a killed process, memory written to that is not its own, descriptors kept for ever."""
    with serving(box, helper, tmp_path) as address:
        for _ in range(DESCRIPTORS):
            connection, errors = send(address, FOUND[name])
            assert (reply_to(connection), said(errors)) in [(None, b""), ((125 << 8, 0), b"slop-code: bad request\n")]
        connection, errors = send(address, Call(*request(CALL), REQUEST_FDS))
        assert (reply_to(connection), said(errors)) == ((7 << 8, 0), b"")


edges = st.sampled_from([0, 1, 2, 3, 4, 16, 255, 4096, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])


@st.composite
def calls(draw: st.DrawFn) -> Call:
    first, text = request(CALL)
    fields = list(REQUEST.unpack(first))
    for index in draw(st.lists(st.sampled_from([1, 2, 3, 3, 0]), max_size=2)):
        fields[index] = draw(edges | st.integers(0, len(text) + 2))
    first = REQUEST.pack(*fields)
    first = draw(st.just(first) | st.just(first) | damaged(first) | st.binary(max_size=40))
    text = draw(st.just(text) | damaged(text) | st.binary(max_size=60))
    numbers = st.integers(-2, 70).filter(lambda number: number not in STOPS)
    then = draw(st.lists(numbers.map(struct.Struct("=i").pack) | st.binary(max_size=9), max_size=3))
    return Call(first[:1000] or b"x", text, draw(st.sampled_from([4, 4, 4, 4, 0, 1, 2, 3, 5, 8])), then)


def send(address: str, call: Call) -> tuple[socket.socket, int]:
    """The connection, and a file with what was said to the errors of the call."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(PATIENCE)
    connection.connect(address)
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
    address = str(folder / "gate" / "serve")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        few = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh"]
        argv = [*few, "/slop/helper", "serve", str(listener.fileno()), *UNLIMITED]
        with subprocess.Popen(box(argv, helper), pass_fds=[listener.fileno()], stderr=subprocess.PIPE) as process:
            try:
                yield address
                assert process.poll() is None
            finally:
                process.kill()
                assert process.stderr
                assert process.stderr.read() == b""


def test_the_spawner_answers_after_any_requests(box: Callable[..., list[str]], helper: str, tmp_path: Path) -> None:
    """After whatever was asked, the next call is answered; what was asked never crashed a process."""
    with serving(box, helper, tmp_path) as address:

        @fuzzed(3, several=st.lists(calls(), min_size=1, max_size=4))
        def examples(several: list[Call]) -> None:
            for connection, errors in [send(address, call) for call in several]:
                reply = reply_to(connection)
                assert b"Sanitizer" not in (text := said(errors)), text.decode(errors="replace")
                assert b"runtime error" not in text
                if reply is not None and os.WIFSIGNALED(reply[0]):
                    asked = {
                        struct.unpack("=i", packet)[0] for call in several for packet in call.then if len(packet) == 4
                    }
                    number = os.WTERMSIG(reply[0])
                    assert number not in CRASHES or number in asked, number
            connection, errors = send(address, Call(*request(CALL), REQUEST_FDS))
            assert (reply_to(connection), said(errors)) == ((7 << 8, 0), b"")

        examples()


@contextlib.contextmanager
def killed(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """In the end, where it has not ended by itself."""
    try:
        yield
    finally:
        process.kill()


def refuse_calls(listener: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Until the process ends: a launcher looks whether anybody takes calls before it gives up."""
    end = time.monotonic() + PATIENCE
    listener.settimeout(0.02)
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(TimeoutError), listener.accept()[0] as connection:
            connection.recv(100)  # closed without being read, it would be reset, as where nobody takes calls
    listener.settimeout(PATIENCE)


replies = st.one_of(
    st.tuples(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 255), st.integers(0, 5)).map(
        lambda pair: REPLY.pack(*pair)
    ),
    st.integers(0, 127).map(lambda number: REPLY.pack(number, 0)),
    st.binary(max_size=20),
)


def test_the_launcher_ends_whatever_is_answered(box: Callable[..., list[str]], helper: str, tmp_path: Path) -> None:
    """Whatever the other box answers, the launcher ends: as it was told, or in words."""
    address = tmp_path / "gate" / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen(8)
        listener.settimeout(PATIENCE)

        @fuzzed(4, answer=replies | st.none(), output=st.binary(max_size=1200))
        def examples(answer: bytes | None, output: bytes) -> None:
            argv = box(["/bin/sh", "-c", "/slop/slop-run a b; exit $?"], helper)
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
                    refuse_calls(listener, process)
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
            box(["/bin/sh", "-c", "/slop/slop-run a; exit $?"], helper), stdin=subprocess.DEVNULL
        ) as process:
            with listener.accept()[0] as connection, killed(process):
                connection.send(REPLY.pack(signal.SIGSTOP, 0))
                assert process.wait(PATIENCE) == 128 + signal.SIGSTOP


TREE = b"".join([
    member("new/a", content=b"content"), member("new/in", tarfile.DIRTYPE), member("new/in/" + "b" * 200),
    member("new/link", tarfile.SYMTYPE, target="/etc/passwd"), member("new/pipe", tarfile.FIFOTYPE), END,
])  # fmt: skip
NAMES = ["a", "b", "..", ".", "", "a/b", "/", "a\0b", "x" * 255, "x" * 256, "x" * 5000, "\udcff", "\n", "ü"]
KINDS = [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE]
KINDS += [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE, tarfile.XGLTYPE, tarfile.AREGTYPE, b"Q"]
KEYS = [
    b"path=",
    b"path=new/c",
    b"linkpath=",
    b"size=",
    b"uid=",
    b"gid=",
    b"mtime=",
    b"mtime=-1.5",
    b"hdrcharset=BINARY",
]
KEYS += [b"SCHILY.filetype=socket", b"GNU.sparse.map=0,1", b"", b"=", b"path=new/" + b"d/" * 70_000]
numbers = st.integers(-1, 9).map(str) | st.sampled_from(
    ["", "9" * 18, "9" * 19, "1" * 5000, "0.5", "1.2.3", "-", "nan"]
)


@st.composite
def attribute_lines(draw: st.DrawFn) -> bytes:
    """Mostly as they should be, with a key and an end of any kind."""
    text = draw(st.sampled_from(KEYS)) + draw(numbers | st.just("")).encode()
    right = line(text)
    return draw(st.just(right) | st.just(right) | damaged(right) | st.binary(max_size=9))


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    """Members with sums that are right, so that everything behind the sum is reached."""
    made = []
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            made.append(attributes(b"".join(draw(st.lists(attribute_lines(), max_size=3)))))
        name = "/".join(["new", *draw(st.lists(st.sampled_from(NAMES), max_size=3))])
        right = member(name, draw(st.sampled_from(KINDS)), content=draw(st.binary(max_size=600)), target="a")
        offset, field = draw(st.integers(0, 511)), draw(st.binary(max_size=3))
        made.append(draw(st.just(right) | st.just(patched(right, offset, field[: 512 - offset]))))
    return b"".join(made) + END


def test_every_build_unpacks_or_refuses_an_archive_alike(
    box: Callable[..., list[str]], helpers: dict[str, str]
) -> None:
    """An archive is unpacked or refused in words, and by every build of the helper alike."""

    @fuzzed(5, raw=damaged(TREE) | archives())
    def examples(raw: bytes) -> None:
        answers = {}
        for name, helper in helpers.items():
            unpack = ["--tree", "new", "/tmp/new", "--unpack", "0", "0", "--ready", "--hold"]
            done = subprocess.run(
                box(["/slop/helper", "init", *unpack], helper), input=raw, capture_output=True, timeout=PATIENCE
            )
            assert b"Sanitizer" not in done.stderr, done.stderr
            assert b"runtime error" not in done.stderr
            answers[name] = (done.returncode, done.stdout)
            assert done.returncode in (0, 125), done.stderr
            assert done.stderr == b"" if done.returncode == 0 else done.stderr.startswith(b"slop-code: ")
        assert len(set(answers.values())) == 1, answers

    examples()


def test_every_kind_of_member_is_unpacked(box: Callable[..., list[str]], helper: str) -> None:
    """Else nothing of the above would say much."""
    look = ["/bin/sh", "-c", "cd /tmp/new && find . | sort >&2"]
    argv = ["/slop/helper", "init", "--tree", "new", "/tmp/new", "--unpack", "0", "0", "--judge", *look]
    done = subprocess.run(box(argv, helper), input=TREE, capture_output=True, timeout=PATIENCE)
    assert done.stderr.decode().split() == [".", "./a", "./in", "./in/" + "b" * 200, "./link", "./pipe"]


def test_the_attack_on_the_launchers_socket_works_where_it_reaches_the_socket(
    box: Callable[..., list[str]], helper: str, tmp_path: Path
) -> None:
    """In a box it must not: no careless evaluator could show that the attack is real."""
    attack = next(attack for attack in read_corpus() if attack.name == "socket_of_the_launcher")
    names: dict[str, Any] = {}
    exec(compile(attack.files["cheat.py"], "cheat.py", "exec"), names)  # noqa: S102  (our own file)
    with serving(box, helper, tmp_path) as address:
        assert names["answered"](address)
