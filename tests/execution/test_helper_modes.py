"""The helper's modes that need no box (`restrict`, `join-cgroups`, `reap`), wrong use, and a missing helper."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution import helper as helper_package
from slop_code.execution.helper import LAUNCHER, HelperError, helper_path

LIBRARY_SIGNALS = 3 << 31
"""Signals 32 and 33, which no program can set; under make they are ignored."""

INTERPRETER = os.path.realpath(sys.executable)


def call(*argv, **options):
    return subprocess.run(list(map(str, argv)), capture_output=True, timeout=600, **options)


def test_a_missing_helper_is_an_infrastructure_error_that_says_how_to_build_it():
    with pytest.raises(HelperError) as raised:
        helper_path("riscv64")
    message = str(raised.value)
    assert isinstance(raised.value, InfrastructureError)
    assert message.startswith(f"{Path(helper_package.__file__).with_name('slopbox-riscv64')}: ")
    assert "SLOPBOX_TARGETS=riscv64 pip install" in message
    assert "ziglang" in message


@pytest.mark.e2e
def test_it_is_the_launcher_under_the_name_of_that_command(helper, tmp_path):
    shutil.copy(helper, tmp_path / LAUNCHER)
    done = call(tmp_path / LAUNCHER)
    assert done.returncode == 125
    assert done.stderr.startswith(b"slop-code: cannot read /slop/call/conf")


@pytest.mark.e2e
@pytest.mark.parametrize(
    "words",
    [
        "", "nonsense", "run", "serve 3", "reap", "reap 0", "count", "merge-output",
        "join-cgroups", "join-cgroups -- ", "join-cgroups /no/such -- true",
        "restrict", "restrict 0 0 --", "restrict 0 0 -- no-such", "restrict 0 0 --nonsense 1 --", "init",
        "init --mkdir /tmp", "init --nonsense", "init --subject 3 a b", "init --subject 0 a", "init --judge",
        "init --judge /no/such",
        "init --listen /no/such/socket --judge true", "init --chown /no/such 0 0 --judge true",
        "init --bind /no/such /no/other ro --judge true", "init --copy /no/such /tmp 0 0 --judge true",
    ],
)  # fmt: skip
def test_wrong_use_ends_in_words(helper, words):
    done = call(helper, *words.split())
    assert (done.returncode, done.stdout) == (125, b"")
    assert done.stderr.startswith(b"slop-code: ")


@pytest.mark.e2e
def test_restrict_takes_every_privilege(helper):
    done = call(helper, "restrict", "0", "0", "--", "cat", "/proc/self/status")
    seen = dict(line.split(":\t", 1) for line in done.stdout.decode().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk", "SigIgn"):
        assert int(seen[name], 16) & ~LIBRARY_SIGNALS == 0, name
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2")


@pytest.mark.e2e
def test_restrict_bounds_files(helper):
    code = "import resource; print(*resource.getrlimit(resource.RLIMIT_FSIZE))"
    done = call(helper, "restrict", "1000000", "0", "--", INTERPRETER, "-c", code)
    assert done.stdout == b"1000000 1000000\n"


@pytest.mark.e2e
def test_restrict_hands_over_just_these_variables(helper):
    given = {"PATH": os.environ["PATH"], "SAME": "a", "EMPTY": ""}
    options = ["--setenv", "NEW", "b=c", "--setenv", "SAME", "d"]
    kept = call(helper, "restrict", "0", "0", *options, "--", "env", env=given).stdout.splitlines()
    assert {line for line in kept if not line.startswith(b"PATH=")} == {b"SAME=d", b"EMPTY=", b"NEW=b=c"}
    cleared = call(helper, "restrict", "0", "0", "--clearenv", *options, "--", "env", env=given)
    assert sorted(cleared.stdout.splitlines()) == [b"NEW=b=c", b"SAME=d"]


@pytest.mark.e2e
def test_join_cgroups_enters_the_groups(helper, tmp_path):
    groups = [tmp_path / name for name in ("a", "b")]
    for group in groups:
        group.touch()
    done = call(helper, "join-cgroups", *groups, "--", shutil.which("env"), env={"ONLY": "this"})
    assert (done.stdout, [group.read_text() for group in groups]) == (b"ONLY=this\n", ["0", "0"])


@pytest.mark.e2e
@pytest.mark.parametrize(("end", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_reap_leaves_no_process(helper, end, status):
    done = call(helper, "reap", os.getpid(), "sh", "-c", f"setsid sleep 1000 >/dev/null 2>&1 & echo $!; {end}")
    assert done.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def ignore_ends_of_children():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@pytest.mark.e2e
def test_reap_waits_for_its_command_where_the_caller_ignores_ends_of_children(helper):
    assert call(helper, "reap", os.getpid(), "sh", "-c", "exit 7", preexec_fn=ignore_ends_of_children).returncode == 7


@pytest.mark.e2e
def test_reap_ends_everything_on_sigterm(helper):
    process = subprocess.Popen(
        [helper, "reap", str(os.getpid()), "sh", "-c", "echo $$; exec sleep 1000"], stdout=subprocess.PIPE
    )
    inner = int(process.stdout.readline())
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(inner, 0)


@pytest.mark.e2e
def test_reap_starts_nothing_for_a_parent_that_has_ended(helper, tmp_path):
    # Process 1 may be the caller in a container; 0 is none that this one sees.
    done = call(helper, "reap", "0", "touch", tmp_path / "started")
    assert (done.returncode, done.stderr) == (125, b"slop-code: reap: the parent has ended\n")
    assert not (tmp_path / "started").exists()


@pytest.mark.e2e
def test_reap_says_that_a_command_cannot_be_run(helper):
    done = call(helper, "reap", os.getpid(), "/no/such")
    assert (done.returncode, done.stderr) == (125, b"slop-code: cannot run /no/such: No such file or directory\n")


UNPRIVILEGED = ("launcher.c", "handover.c", "spawner.c", "resource_watch.c", "reaper.c")


@pytest.mark.parametrize("name", UNPRIVILEGED)
def test_unprivileged_sources_use_nothing_that_needs_privileges(name):
    source = Path(helper_package.__file__).with_name(name).read_text()
    assert "privileged.h" not in source
    for word in ("sys/mount.h", "linux/capability.h", "chown(", "setresuid", "unshare("):
        assert word not in source
