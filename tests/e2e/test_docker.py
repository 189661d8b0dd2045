"""The two containers seen from inside, and the effect of each option of an environment."""

from __future__ import annotations

import ast
import os
import subprocess
from textwrap import dedent

import pytest

from tests.factories import statuses_by_id
from tests.marks import in_long

pytestmark = pytest.mark.e2e

IMAGE = os.environ.get("SLOP_CODE_TEST_IMAGE", "slop-code-test:latest")
OBEDIENT = "import sys\nexec(sys.argv[1])\n"
SHELL = {"entry_file": "{entry_file}.sh", "command": "sh"}


def statuses_of_verdict(results):
    assert results.infrastructure_failure_reason is None
    return statuses_by_id(results)


def check(results, name):
    """The inner test of this name passed."""
    assert results.infrastructure_failure_reason is None
    (mine,) = (test for test in results.tests if test.id == name)
    assert mine.status == "passed", mine.failure_message


def names_in(tests):
    return [node.name for node in ast.parse(dedent(tests)).body if getattr(node, "name", "").startswith("test_")]


def docker(**settings):
    return {"image": IMAGE, **settings}


HARDENING = """
    import errno, os, socket
    from pathlib import Path

    import pytest

    def status(text):
        return dict(line.split(":\\t", 1) for line in text.splitlines())

    @pytest.fixture
    def judge():
        return status(Path("/proc/self/status").read_text())

    @pytest.fixture
    def subject(run):
        return status(run("print(open('/proc/self/status').read(), end='')").stdout)

    def says(run, code):
        done = run(code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")

    def test_the_subject_has_no_capability_and_no_way_to_one(subject):
        assert {name: int(subject[name], 16) for name in SETS} == dict.fromkeys(SETS, 0)

    def test_the_judge_has_no_capability_left(judge):
        assert {name: int(judge[name], 16) for name in SETS} == dict.fromkeys(SETS, 0)

    def test_neither_gains_privileges(judge, subject):
        assert (judge["NoNewPrivs"], subject["NoNewPrivs"]) == ("1", "1")
        assert (judge["Seccomp"], subject["Seccomp"]) == ("2", "2")

    def test_both_are_one_user_and_not_root(judge, subject):
        for name in ("Uid", "Gid"):
            assert judge[name] == subject[name] == "1000\\t1000\\t1000\\t1000"
        assert {*judge["Groups"].split(), *subject["Groups"].split()} <= {"1000"}

    TRY = "import os; os.close(os.open({path!r}, os.O_CREAT | os.O_WRONLY))"

    @pytest.mark.parametrize("path", ["/planted", "/usr/bin/planted", "/etc/planted", "/var/tmp/planted"])
    def test_the_root_is_read_only(run, path):
        assert "Read-only file system" in run(TRY.format(path=path)).stderr
        with pytest.raises(OSError) as caught:
            os.open(path, os.O_CREAT | os.O_WRONLY)
        assert caught.value.errno == errno.EROFS

    HOME = os.environ["HOME"]

    @pytest.mark.parametrize("folder", ["/workspace", "/tmp", HOME])
    def test_these_can_be_written_to(run, folder):
        says(run, TRY.format(path=f"{folder}/of-the-subject"))
        Path(folder, "of-the-judge").touch()

    def test_workspace_and_tmp_are_shared_and_home_is_not(run):
        for folder, shared in (("/workspace", True), ("/tmp", True), (HOME, False)):
            Path(folder, "note").touch()
            assert says(run, f"import os; print(os.path.exists('{folder}/note'))") == str(shared)

    def test_nothing_of_the_host_s_environment(run):
        assert "SLOP_CODE_TEST_SECRET" not in os.environ
        assert "of the host" not in says(run, "import os; print(dict(os.environ))")

    def test_no_network_but_loopback(run):
        assert [name for _, name in socket.if_nameindex()] == ["lo"]
        assert says(run, "import socket; print([name for _, name in socket.if_nameindex()])") == "['lo']"

    def test_limits_of_the_control_group(run):
        places = {
            "memory": ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"),
            "processes": ("/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/pids.max"),
        }
        code = "import os; print(*[open(path).read() for path in {!r} if os.path.exists(path)])"
        found = {name: says(run, code.format(paths)) for name, paths in places.items()}
        assert 100 << 20 < int(found["memory"]) < 1 << 30  # its own 300M and the files that it may keep in memory
        assert 40 < int(found["processes"]) < 100

    def test_the_judge_is_not_bound_by_the_subject_s_limits():
        for path in ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"):
            if os.path.exists(path):
                assert Path(path).read_text().strip() == "max" or int(Path(path).read_text()) >= 1 << 30
        assert len(bytearray(os.urandom(1 << 20)) * 700) == 700 << 20
"""
LIMITS = {"memory": "300M", "processes": 40, "disk": "50M"}


@pytest.fixture(scope="module")
def hardening(make_problem, make_submission, evaluate):
    problem = make_problem({"test_checkpoint_1.py": HARDENING})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLOP_CODE_TEST_SECRET", "of the host")
        submission = make_submission({"main.py": OBEDIENT})
        return evaluate(problem, submission, sandbox="docker", environment={"limits": LIMITS})


@pytest.mark.parametrize("name", names_in(HARDENING))
def test_containers_are_hardened(hardening, name):
    mine = [test for test in hardening.tests if test.id.partition("[")[0] == name]
    assert hardening.infrastructure_failure_reason is None
    assert mine
    assert [test.failure_message for test in mine if test.status != "passed"] == []


@pytest.mark.long
def test_exhaustion_fails_its_own_tests_only(make_problem, make_submission, evaluate):
    bombs = """
        import os, signal, sys
        signal.alarm(20)
        if sys.argv[1] == "memory":
            held = [bytearray(os.urandom(1 << 20)) * 50 for _ in range(20)]
        elif sys.argv[1] == "processes":
            for _ in range(300):
                if os.fork() == 0:
                    signal.alarm(20)
                    signal.pause()
            signal.pause()
        elif sys.argv[1] == "disk":
            for folder in ("/workspace", "/tmp"):
                try:
                    with open(f"{folder}/filled", "wb") as file:
                        for _ in range(200):
                            file.write(b"x" * (1 << 20))
                except OSError:
                    pass
                else:
                    print("all of it")
        print("done")
    """
    tests = """
        import os
        import pytest

        BOMBS = {"memory": "done\\n", "processes": "done\\n", "disk": "all of it\\nall of it\\ndone\\n"}
        held = bytearray(os.urandom(1 << 20)) * 400

        def test_before(run):
            assert run("nothing").stdout == "done\\n"

        @pytest.mark.parametrize("kind", BOMBS)
        def test_bomb(run, kind):
            assert run(kind).stdout == BOMBS[kind]

        @pytest.mark.parametrize("kind", BOMBS)
        def test_after(run, kind):
            assert run("nothing").stdout == "done\\n"

        def test_the_judge_has_its_memory():
            assert held == held[:1 << 20] * 400
    """
    problem = make_problem({"test_checkpoint_1.py": tests})
    results = evaluate(
        problem, make_submission({"main.py": bombs}), sandbox="docker", environment={"limits": {**LIMITS, "cpus": 2}}
    )
    found = statuses_of_verdict(results)
    assert {name for name, status in found.items() if status != "passed"} == {
        "test_bomb[memory]",
        "test_bomb[processes]",
        "test_bomb[disk]",
    }
    assert len(found) == 8


IDENTITY = """
    import os, stat
    from pathlib import Path

    def test_the_user_of_both(run):
        told = run("import os; print(os.getuid(), os.getgid(), os.getcwd())").stdout.split()
        assert told == [str(os.getuid()), str(os.getgid()), os.getcwd()] == WANTED

    def test_it_may_write(run):
        assert run("open('made', 'w').write('x'); open('main.py', 'a').close()").returncode == 0
        assert Path("made").read_text() == "x"

    def test_no_capability_whoever_it_is(run):
        code = "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('Cap')])"
        assert set(run(code).stdout.split()) == {"0" * 16}
        assert {line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")} == {"0" * 16}

    def test_wrong(run):
        assert run("print('a')").stdout == "b"
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"user": "1234:2345", "workdir": "/app/deep", "mount_workspace": False}, ["1234", "2345", "/app/deep"]),
        *in_long(
            ({"user": "daemon"}, ["1", "1", "/workspace"]),
            ({"user": "root", "mount_workspace": False}, ["0", "0", "/workspace"]),
            ({"mount_workspace": False}, ["1000", "1000", "/workspace"]),
        ),
    ],
    ids=lambda value: value.get("user", "default") if isinstance(value, dict) else "",
)
def test_user_and_workdir_change_no_verdict(make_problem, make_submission, evaluate, settings, wanted):
    problem = make_problem({"test_checkpoint_1.py": f"WANTED = {wanted!r}\n" + dedent(IDENTITY)})
    submission = make_submission({"main.py": OBEDIENT})
    results = evaluate(problem, submission, sandbox="docker", environment={"docker": docker(**settings)})
    assert statuses_of_verdict(results) == dict.fromkeys(names_in(IDENTITY), "passed") | {"test_wrong": "failed"}


def test_extra_mounts_are_visible_and_read_only_by_default(make_problem, make_submission, evaluate, tmp_path):
    tests = """
        import os
        from pathlib import Path
        import pytest

        READ = "print(open('/given/read/note').read())"
        WRITE = "open('/given/{}/by-{}', 'w').write('x')"

        def test_both_read(run):
            assert run(READ).stdout == "of the host\\n"
            assert Path("/given/read/note").read_text() == "of the host"

        def test_read_only_is_read_only(run):
            assert "Read-only file system" in run(WRITE.format("read", "subject")).stderr
            with pytest.raises(OSError):
                Path("/given/read/by-judge").touch()

        def test_both_write_where_they_may(run):
            assert run(WRITE.format("write", "subject")).returncode == 0
            assert Path("/given/write/by-subject").read_text() == "x"
            Path("/given/write/by-judge").write_text("x")

        def test_a_planted_link_is_not_followed(run):
            assert run("import os; os.symlink('/etc/passwd', '/given/write/link')").returncode == 0
            assert Path("/given/write/link").is_symlink()
            with pytest.raises(OSError):
                Path("/given/write/link").read_text()
    """
    for name in ("read", "with, comma"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    (tmp_path / "read" / "note").write_text("of the host")
    mounts = [f"{tmp_path}/read:/given/read", {f"{tmp_path}/with, comma": {"bind": "/given/write", "mode": "rw"}}]
    problem = make_problem({"test_checkpoint_1.py": tests})
    results = evaluate(
        problem,
        make_submission({"main.py": OBEDIENT}),
        sandbox="docker",
        environment={"docker": docker(extra_mounts=mounts)},
    )
    for name in names_in(tests):
        check(results, name)
    assert sorted(path.name for path in (tmp_path / "with, comma").iterdir()) == ["by-judge", "by-subject", "link"]
    assert [path.name for path in (tmp_path / "read").iterdir()] == ["note"]


def test_network_full_reaches_the_network(make_problem, make_submission, evaluate, need_docker):
    need_docker()
    listed = subprocess.run(["docker", "network", "ls", "--format", "{{.Name}}"], capture_output=True, check=True)
    if b"bridge" not in listed.stdout.split():
        pytest.skip("this daemon has no bridge")
    tests = """
        import socket

        def test_there_is_more_than_loopback(run):
            code = "import socket; print(sorted(name for _, name in socket.if_nameindex()))"
            mine = sorted(name for _, name in socket.if_nameindex())
            assert run(code).stdout.strip() == str(mine)
            assert len(mine) > 1
    """
    problem = make_problem({"test_checkpoint_1.py": tests})
    results = evaluate(
        problem, make_submission({"main.py": OBEDIENT}), sandbox="docker", environment={"network": "full"}
    )
    check(results, "test_there_is_more_than_loopback")
    assert results.isolation["network"] == "full"


IN_A_SHELL = """
    import os, shutil, subprocess
    from pathlib import Path

    def test_right(run):
        assert run("echo", "right").stdout == "right\\n"

    def test_wrong(run):
        assert run("echo", "right").stdout == "wrong\\n"

    def test_what_set_up_made_is_there(run):
        assert run("tool").stdout == "of set-up\\n"
        assert run("cat", "made").stdout == "in the workspace\\n"

    def test_the_judge_is_as_the_image_is():
        assert shutil.which("tool") is None
        assert not Path("/usr/local/bin/tool").exists()
        done = subprocess.run(["/usr/bin/python3", "-c", "print(6 * 7)"], capture_output=True, text=True)
        assert done.stdout == "42\\n"

    def test_the_subject_s_python(run):
        assert "42" in run("/usr/bin/python3", "-c", "print(6 * 7)").stdout
"""
MAKE_TOOL = "printf '#!/bin/sh\\necho of set-up\\n' > /usr/local/bin/tool; chmod 755 /usr/local/bin/tool"
MAKE_FILE = "echo in the workspace > made"
LIE = (
    "for each in /usr/bin/python3*; do rm $each; printf '#!/bin/sh\\necho 5 passed, nothing failed\\n' > $each; "
    "chmod 755 $each; done"
)
REMOVE = "rm -rf /usr/bin/python* /usr/lib/python3*"


@pytest.mark.parametrize(
    ("commands", "changed"),
    [
        ([MAKE_TOOL, MAKE_FILE, LIE], {"test_the_subject_s_python": "failed"}),
        *in_long(
            ([], {"test_what_set_up_made_is_there": "failed"}),
            ([MAKE_TOOL, MAKE_FILE], {}),
            ([MAKE_TOOL, MAKE_FILE, REMOVE], {"test_the_subject_s_python": "failed"}),
        ),
    ],
    ids=["a lying python", "none", "a tool", "no python"],
)
def test_set_up_changes_the_subject_s_root_and_not_the_judge_s(
    make_problem, make_submission, evaluate, commands, changed
):
    problem = make_problem({"test_checkpoint_1.py": IN_A_SHELL}, config={"entry_file": "main"})
    environment = {"commands": SHELL, "setup": {"commands": commands}}
    results = evaluate(problem, make_submission({"main.sh": '"$@"\n'}), sandbox="docker", environment=environment)
    expected = dict.fromkeys(names_in(IN_A_SHELL), "passed") | {"test_wrong": "failed"} | changed
    assert statuses_of_verdict(results) == expected
