"""The helper in Python stands in for the native one: alone, mixed with it, and in real boxes."""

from __future__ import annotations

import ast
import contextlib
import os
import platform
import shutil
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.evaluation import ProblemConfig
from slop_code.execution import helper as launcher
from slop_code.execution import unsandboxed as none
from slop_code.execution.archive import measure
from slop_code.execution.bubblewrap import boxes as bubblewrap
from slop_code.execution.bubblewrap import cgroups
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.helper import fallback
from slop_code.execution.helper.fallback.kernel import processor

pytestmark = pytest.mark.e2e

HELPERS = ("native", "fallback")
LIBRARY_S_OWN = 3 << 31
"""Signals 32 and 33, which no program can set; under make they are ignored."""

BOXES = Path(__file__).parents[1] / "problems" / "boxes"
OWNERS = [str(os.getuid()), str(os.getgid())]
INTERPRETER = os.path.realpath(sys.executable)
HEADER = struct.Struct("<BBHIIIQq")
GENEROUS = [str(1 << 32), "500", str(1 << 30), "0"]


@pytest.fixture(scope="module")
def helpers(tmp_path_factory):
    """Both, by name; the native one only where there is one."""
    script = tmp_path_factory.mktemp("helper") / "slopbox"
    script.write_text(fallback.script(INTERPRETER))
    script.chmod(0o755)
    native = launcher.native(platform.machine())
    return {"fallback": str(script), **({"native": str(native)} if native else {})}


@pytest.fixture
def named(helpers):
    def get(name):
        if name not in helpers:
            pytest.skip("no native helper for this processor")
        return helpers[name]

    return get


@pytest.fixture(params=HELPERS)
def helper(request, named):
    return named(request.param)


def call(*argv, **options):
    return subprocess.run(list(map(str, argv)), capture_output=True, timeout=60, **options)


# The script


@pytest.mark.parametrize("part", fallback.PARTS)
def test_a_part_needs_python_3_9_and_nothing_else(part):
    tree = ast.parse(Path(fallback.__file__).with_name(f"{part}.py").read_text(), feature_version=(3, 9))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    modules = {alias.name for node in imports for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name for name in foreign if not name.startswith(fallback.__name__)} == set()


def test_every_part_travels():
    folder = Path(fallback.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *fallback.PARTS}


@pytest.fixture
def shell_script(tmp_path):
    (tmp_path / "box").write_text(fallback.script())
    (tmp_path / "box").chmod(0o755)
    (tmp_path / "python3").write_text("#!/bin/sh\necho planted\n")
    (tmp_path / "python3").chmod(0o755)
    return tmp_path / "box"


@pytest.mark.skipif(not any(map(os.path.exists, fallback.PLACES)), reason="no interpreter in the places that count")
def test_a_shell_finds_the_interpreter_whatever_the_path_says(shell_script):
    done = call(shell_script, "id", env={"PATH": str(shell_script.parent)})
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [word.encode() for word in OWNERS], b"")


def test_a_shell_that_finds_none_says_so(shell_script):
    shell_script.write_text(fallback.script().replace("/python3", "/no-python3"))
    done = call(shell_script, "id", env={"PATH": str(shell_script.parent)})
    assert (done.returncode, done.stdout) == (125, b"")
    assert done.stderr.startswith(b"slop-code: no Python for the helper: none of /usr/local/bin/no-python3, ")


def test_it_is_the_launcher_when_it_is_called_so(helper, tmp_path):
    shutil.copy(helper, tmp_path / "run")
    done = call(tmp_path / "run")
    assert (done.returncode, done.stderr) == (125, b"slop-code: usage: run COMMAND...\n")


@pytest.mark.parametrize(
    "words",
    [
        "", "nonsense", "run", "serve 3", "reap", "reap /no/such", "join", "join -- ", "join /no/such -- true",
        "seal", "seal 0 0 --", "seal 0 0 -- no-such", "seal 0 0 --nonsense 1 --", "measure", "pair",
        "pair --mkdir /tmp", "pair --nonsense", "pair --subject 3 a b", "pair --subject 0 a", "pair --judge",
        "pair --judge /no/such",
        "pair --listen /no/such/socket --judge true", "pair --own /no/such 0 0 --judge true",
        "pair --bind /no/such /no/other ro --judge true", "pair --copy /no/such /tmp 0 0 --judge true",
    ],
)  # fmt: skip
def test_wrong_use_is_answered_alike(named, words):
    native, python = (call(named(name), *words.split()) for name in HELPERS)
    assert (python.returncode, python.stdout, python.stderr) == (native.returncode, native.stdout, native.stderr)
    assert python.returncode == 125
    assert python.stderr.startswith(b"slop-code: ")


# seal, join, reap


def test_seal_takes_every_privilege(helper):
    done = call(helper, "seal", "0", "0", "--", "cat", "/proc/self/status")
    seen = dict(line.split(":\t", 1) for line in done.stdout.decode().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk", "SigIgn"):
        assert int(seen[name], 16) & ~LIBRARY_S_OWN == 0, name
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2")


def test_seal_bounds_files(helper):
    code = "import resource; print(*resource.getrlimit(resource.RLIMIT_FSIZE))"
    done = call(helper, "seal", "1000000", "0", "--", INTERPRETER, "-c", code)
    assert done.stdout == b"1000000 1000000\n"


def test_seal_hands_over_just_these_variables(helper):
    given = {"PATH": os.environ["PATH"], "SAME": "a", "EMPTY": ""}
    options = ["--setenv", "NEW", "b=c", "--setenv", "SAME", "d"]
    kept = call(helper, "seal", "0", "0", *options, "--", "env", env=given).stdout.splitlines()
    assert {line for line in kept if not line.startswith(b"PATH=")} == {b"SAME=d", b"EMPTY=", b"NEW=b=c"}
    cleared = call(helper, "seal", "0", "0", "--clearenv", *options, "--", "env", env=given)
    assert sorted(cleared.stdout.splitlines()) == [b"NEW=b=c", b"SAME=d"]


def test_seal_forbids_what_no_namespace_holds_back(helper):
    code = f"""
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall({processor()[1]["keyctl"]}, 0, -3, 0), errno.errorcode[ctypes.get_errno()])
socket.socket(socket.AF_UNIX).close()
try:
    socket.socket(socket.AF_VSOCK)
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    done = call(helper, "seal", "0", "0", "--", INTERPRETER, "-c", code)
    assert (done.stdout, done.stderr) == (b"-1 ENOSYS\nEAFNOSUPPORT\n", b"")


def test_join_enters_the_groups(helper, tmp_path):
    groups = [tmp_path / name for name in ("a", "b")]
    for group in groups:
        group.touch()
    done = call(helper, "join", *groups, "--", shutil.which("env"), env={"ONLY": "this"})
    assert (done.stdout, [group.read_text() for group in groups]) == (b"ONLY=this\n", ["0", "0"])


@pytest.mark.parametrize(("end", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_reap_leaves_nobody(helper, end, status):
    done = call(helper, "reap", "sh", "-c", f"setsid sleep 1000 >/dev/null 2>&1 & echo $!; {end}")
    assert done.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_reap_ends_when_it_is_told_to(helper):
    process = subprocess.Popen([helper, "reap", "sh", "-c", "echo $$; exec sleep 1000"], stdout=subprocess.PIPE)
    inner = int(process.stdout.readline())
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(inner, 0)


# Archives


def give(helper, folder) -> bytes:
    """What `pair` sends of a folder after its judge, up to and with the end record."""
    argv = [helper, "pair", "--ready", "--give", str(folder), "--judge", "/bin/true"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready 0 0 0\n"
        archive = process.stdout.read()
    assert process.returncode == 0
    return archive


def take(helper, archive):
    argv = [helper, "pair", "--unpack", *OWNERS, "--ready", "--hold"]
    done = call(*argv, input=archive)
    return done.returncode, done.stdout, done.stderr


def record(kind, name=b"", content=b"", *, flags=0, mode=0) -> bytes:
    return HEADER.pack(ord(kind), flags, 0, mode, len(name), 0, len(content), 0) + name + content


def moved(archive: bytes, target: Path, *, users: bool) -> bytes:
    """The same tree for another place."""
    kind, _, _, _, length, *_ = HEADER.unpack_from(archive)
    assert chr(kind) == "T"
    return record("T", os.fsencode(target), flags=int(users)) + archive[HEADER.size + length :]


def entries(archive: bytes) -> list[tuple]:
    """Kind, mode, name and content of each record."""
    found, at = [], 0
    while at < len(archive):
        kind, _, _, mode, length, _, size, _ = HEADER.unpack_from(archive, at)
        content = at + HEADER.size + length
        found.append((chr(kind), mode, archive[at + HEADER.size : content], archive[content : content + size]))
        at = content + size
    return found


def described(root: Path) -> dict[str, tuple]:
    found = {}
    for path in sorted(root.rglob("*")):
        information = path.lstat()
        kind, mode = stat.S_IFMT(information.st_mode), stat.S_IMODE(information.st_mode)
        if path.is_symlink():
            found[str(path.relative_to(root))] = (kind, 0, os.readlink(path))
        elif path.is_file():
            found[str(path.relative_to(root))] = (kind, mode, path.read_bytes(), information.st_mtime_ns)
        else:
            found[str(path.relative_to(root))] = (kind, mode)
    return found


def tally(root: Path) -> bytes:
    found = measure(root, 1 << 30)
    return b"ready %d %d %d\n" % (found.entries, found.size, found.sum)


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "inner/deeper").mkdir(parents=True)
    (root / "inner").chmod(0o750)
    files = {"a": b"", "inner/large": bytes(range(256)) * 1000, "inner/deeper/with space\nand line": b"x"}
    for name, content in files.items():
        (root / name).write_bytes(content)
    odd = Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe"))
    odd.write_bytes(b"odd")
    odd.chmod(0o600)
    (root / "program").write_text("#!/bin/sh\n")
    (root / "program").chmod(0o4750)
    os.utime(root / "a", ns=(1, 1_234_567_890_123_456_789))
    (root / "link").symlink_to("/no/such/" + "long" * 100)
    (root / "to_a_folder").symlink_to("inner")
    os.mkfifo(root / "pipe", 0o640)
    os.mknod(root / "socket", stat.S_IFSOCK | 0o600)
    return root


@pytest.mark.parametrize("users", [True, False])
@pytest.mark.parametrize("packer", HELPERS)
@pytest.mark.parametrize("unpacker", HELPERS)
def test_a_tree_travels(named, tree, tmp_path, packer, unpacker, users):
    archive = moved(give(named(packer), tree), tmp_path / "new/copy", users=users)
    assert take(named(unpacker), archive) == (0, tally(tree), b"")
    expected = described(tree)
    for name, (kind, mode, *rest) in expected.items():
        ours = 0 if stat.S_ISLNK(kind) else mode & 0o755 | 0o444 | (0o111 if mode & 0o111 else 0)
        expected[name] = (kind, mode & 0o1777 if users else ours, *rest)
    assert described(tmp_path / "new/copy") == expected


def test_a_copy_is_what_a_journey_would_give(helper, tree, tmp_path):
    for name in (".evaluation_tests", ".scbench", "inner/.scbench"):
        (tree / name).mkdir()
    done = call(helper, "pair", "--copy", tree, tmp_path / "copy", *OWNERS, "--judge", "/bin/true")
    assert (done.returncode, done.stderr) == (0, b"")
    expected = described(tree)
    del expected[".evaluation_tests"], expected[".scbench"]
    expected["program"] = (expected["program"][0], 0o750, *expected["program"][2:])
    assert described(tmp_path / "copy") == expected


@pytest.fixture
def deep(tmp_path):
    """A file below more folders than any path may name."""
    root = tmp_path / "deep"
    root.mkdir()
    folder = os.open(root, os.O_RDONLY)
    for _ in range(480):
        os.mkdir("0123456789", dir_fd=folder)
        inner = os.open("0123456789", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("bottom", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder))
    os.close(folder)
    yield root
    call("rm", "-rf", root, tmp_path / "copy")


def test_a_deep_tree_travels(helper, deep, tmp_path):
    archive = give(helper, deep)
    assert take(helper, moved(archive, tmp_path / "copy", users=True)) == (0, tally(deep), b"")
    assert entries(give(helper, tmp_path / "copy"))[1:] == entries(archive)[1:]
    assert len(entries(archive)) == 1 + 480 + 1 + 480 + 1
    assert call(helper, "measure", tmp_path / "copy").stdout == b"481 0\n"


def test_a_tree_may_be_deeper_than_there_are_descriptors(helpers, deep):
    few = ["sh", "-c", 'ulimit -n 32; exec "$@"', "few"]
    assert call(*few, helpers["fallback"], "measure", deep).stdout == b"481 0\n"


def test_measure(helper, tree):
    assert call(helper, "measure", tree).stdout == b"%d %d\n" % (
        measure(tree, 1 << 30).entries,
        measure(tree, 1 << 30).size,
    )


@pytest.mark.parametrize(
    "records",
    [
        [record("F", b"../out", b"x")],
        [record("D", b".."), record("F", b"out", b"x")],
        [record("D", b"in"), record("U"), record("U"), record("F", b"out", b"x")],
        [record("L", b"in", b".."), record("D", b"in"), record("F", b"out", b"x")],
        [record("F", b"", b"x")],
        [record("Q", b"in")],
        [record("F", b"in", bytes(100))[:-100]],
        [record("F", b"in", b"x"), record("F", b"in", b"y")],
    ],
    ids=["path", "parent", "up", "link", "nameless", "kind", "short", "twice"],
)
def test_what_is_no_tree_is_refused(helpers, tmp_path, records):
    archive = b"".join([record("T", os.fsencode(tmp_path / "copy"), flags=1), *records, record("E")])
    status, out, err = take(helpers["fallback"], archive)
    assert (status, out) == (125, b"")
    assert err.startswith(b"slop-code: ")
    assert not (tmp_path / "out").exists()


# Across boxes


@pytest.fixture
def box(need_bubblewrap, tmp_path):
    """`box(argv, {"/inside": path})`: bwrap's words for a box with processes of its own and the helpers' folders."""
    need_bubblewrap()
    (tmp_path / "tests").mkdir()
    (tmp_path / "gate").mkdir()
    (tmp_path / "conf").write_text("tests=/tests\nworkspace=/workspace\noutput=1000000\n")

    def words(argv, mounts):
        mounts = {"/tests": tmp_path / "tests", "/slop/call/conf": tmp_path / "conf", **mounts}
        return [
            bubblewrap.bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--unshare-pid",
            "--unshare-ipc", "--as-pid-1", "--die-with-parent", *system_arguments(), "--proc", "/proc", "--dev", "/dev",
            "--dir", "/workspace", "--dir", "/slop/call/done", "--dir", "/slop/shown", "--dir", "/tmp",
            "--bind", str(tmp_path / "gate"), "/slop/gate",
            *[word for inside, path in mounts.items() for word in ("--ro-bind", str(path), inside)],
            "--chdir", "/workspace", "--", *argv,
        ]  # fmt: skip

    return words


JUDGE = """
import subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
print(done.returncode, done.stderr, done.stdout, sep="|", end="")
"""
SUBJECT = r"""
/usr/bin/env; pwd; cat "$1" /slop/shown/handed.txt; ls /proc/self/fd | wc -w
grep -E '^(SigBlk|NoNewPrivs|Seccomp):' /proc/self/status; cat /proc/self/oom_score_adj
grep '^SigIgn:' /proc/self/status | sed 's/0000000180000000\|0000000080000000/0000000000000000/'
echo aside >&2; kill -USR1 $$
"""
SEEN = sorted(
    [
        *["ONLY=this", "EMPTY=", "PATH=/usr/bin:/bin", "PWD=/workspace", "/workspace"],  # PWD is the shell's
        *["handed over", "handed over", "4"],
        *[f"SigBlk:\t{0:016x}", f"SigIgn:\t{0:016x}", "NoNewPrivs:\t1", "Seccomp:\t2", "1000"],
    ]
)


@pytest.mark.parametrize("server", HELPERS)
@pytest.mark.parametrize("launched", HELPERS)
def test_a_call_is_the_same_whoever_passes_it_on(named, box, tmp_path, server, launched):
    (tmp_path / "tests/handed.txt").write_text("handed over\n")
    environment = ["env", "-i", "ONLY=this", "EMPTY=", "PATH=/usr/bin:/bin", "PYTEST_CURRENT_TEST=private"]
    judge = [INTERPRETER, "-c", JUDGE, *environment, "/slop/run", "sh", "-c", SUBJECT, "sh", "/tests/handed.txt"]
    subject = ["/slop/server", "serve", "3", *GENEROUS]
    argv = ["/slop/server", "pair", "--listen", "/slop/gate/socket", "--subject", str(len(subject)), *subject]
    mounts = {"/slop/server": named(server), "/slop/run": named(launched)}
    done = call(*box([*argv, "--judge", *judge], mounts))
    assert (done.returncode, done.stderr) == (0, b"")
    status, err, out = done.stdout.decode().split("|")
    assert (int(status), err, sorted(out.splitlines())) == (-signal.SIGUSR1, "aside\n", SEEN)


WAITING = ["/bin/sh", "-c", "echo started; exec sleep 1000"]


@contextlib.contextmanager
def two_boxes(box, pair, server, judge):
    """As two containers are: `pair` in one admits `serve` of the other."""
    steps = ["--mkdir", "/given/folder", "755", "--listen", "/slop/gate/socket", "--ready", "--admit", "60"]
    argv = ["/slop/pair", "pair", *steps, "--give", "/given", "--judge", *judge]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(box(argv, {"/slop/pair": pair, "/slop/run": pair}), **pipes) as first:
        assert first.stdout.readline() == b"ready 0 0 0\n"
        serve = ["/slop/server", "serve", "/slop/gate/socket", *GENEROUS]
        with subprocess.Popen(box(serve, {"/slop/server": server})) as second:
            try:
                yield first, second
            finally:
                first.kill()
                second.kill()


@pytest.mark.parametrize("pair", HELPERS)
@pytest.mark.parametrize("server", HELPERS)
def test_one_box_admits_the_other(named, box, pair, server):
    judge = ["/slop/run", "sh", "-c", "echo for the log; exit 3"]
    with two_boxes(box, named(pair), named(server), judge) as (first, second):
        archive, log = first.stdout.read(), first.stderr.read()
        assert (first.wait(60), second.wait(60), log) == (3, 0, b"for the log\n")
    assert archive.startswith(record("T", b"/given"))
    assert archive.endswith(record("U") + record("E", mode=3 << 8))


@pytest.mark.parametrize("pair", HELPERS)
def test_the_end_of_the_other_box_is_noticed(named, box, pair):
    with two_boxes(box, named(pair), named("fallback"), WAITING) as (first, second):
        assert first.stderr.readline() == b"started\n"
        second.kill()
        archive, log = first.stdout.read(), first.stderr.read()
        assert (first.wait(60), log) == (124, b"slop-code: the subject's box ended before the tests\n")
    assert archive.endswith(record("E", mode=124 << 8))


@pytest.mark.parametrize("pair", HELPERS)
def test_it_stops_when_nobody_waits_any_more(named, box, pair):
    with two_boxes(box, named(pair), named("fallback"), WAITING) as (first, second):
        assert first.stderr.readline() == b"started\n"
        first.stdin.close()
        archive = first.stdout.read()
        assert (first.wait(60), second.wait(60)) == (128 + signal.SIGKILL, 0)
    assert archive.endswith(record("E", mode=signal.SIGKILL))


# In real boxes


@pytest.fixture(scope="module")
def stand_in(helpers):
    """Wherever the native helper's path is asked for, the script's is given."""
    original = launcher.helper_path
    with pytest.MonkeyPatch.context() as patch:
        for module in (launcher, bubblewrap, cgroups, none):
            assert module.helper_path is original
            patch.setattr(module, "helper_path", lambda: Path(helpers["fallback"]))
        yield


@pytest.mark.parametrize(
    ("checkpoint", "environment"),
    [("contract", {}), ("limits", {"limits": {"memory": "300M", "processes": 50, "disk": "40M", "output": "8M"}})],
)
def test_the_boxes_keep_their_promises(stand_in, evaluate, checkpoint, environment):
    problem = ProblemConfig.from_yaml(BOXES)
    results = evaluate(problem, BOXES / "submission", checkpoint, environment=environment)
    assert results.infrastructure_failure_reason is None
    assert results.isolation["sandbox"] == "bubblewrap"
    assert [f"{test.id}: {test.failure_message}" for test in results.tests if test.status != "passed"] == []
    inner = ast.parse((BOXES / f"tests/test_{checkpoint}.py").read_text()).body
    names = {node.name for node in inner if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    assert {test.id.partition("[")[0] for test in results.tests} == names


def test_containers_work_without_a_native_helper(evaluate, monkeypatch):
    """The image's own interpreter runs it then, in both containers and in that of set-up."""
    monkeypatch.setattr(launcher, "native", lambda _machine: None)
    problem = ProblemConfig.from_yaml(BOXES)
    results = evaluate(problem, BOXES / "submission", "contract", sandbox="docker")
    assert results.infrastructure_failure_reason is None
    assert results.isolation["launcher"] == "python"
    assert [f"{test.id}: {test.failure_message}" for test in results.tests if test.status != "passed"] == []
