"""The helper's modes that need no box: wrong use, `seal`, `join`, `reap`; and an installation without a helper."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution import helper as helper_package
from slop_code.execution.helper import HelperMissingError, helper_path

LIBRARY_SIGNALS = 3 << 31
"""Signals 32 and 33, which no program can set; under make they are ignored."""

KEYCTL = {"x86_64": 250, "aarch64": 219}
INTERPRETER = os.path.realpath(sys.executable)


def call(*argv, **options):
    return subprocess.run(list(map(str, argv)), capture_output=True, timeout=60, **options)


def test_a_missing_helper_is_an_infrastructure_error_that_says_how_to_build_it():
    with pytest.raises(HelperMissingError) as raised:
        helper_path("riscv64")
    message = str(raised.value)
    assert isinstance(raised.value, InfrastructureError)
    assert message.startswith(f"{Path(helper_package.__file__).with_name('slopbox-riscv64')}: ")
    assert "SLOPBOX_TARGETS=riscv64 pip install" in message
    assert "ziglang" in message


@pytest.mark.e2e
def test_it_is_the_launcher_when_it_is_called_run(helper, tmp_path):
    shutil.copy(helper, tmp_path / "run")
    done = call(tmp_path / "run")
    assert (done.returncode, done.stderr) == (125, b"slop-code: usage: run COMMAND...\n")


@pytest.mark.e2e
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
def test_wrong_use_ends_in_words(helper, words):
    done = call(helper, *words.split())
    assert (done.returncode, done.stdout) == (125, b"")
    assert done.stderr.startswith(b"slop-code: ")


@pytest.mark.e2e
def test_seal_takes_every_privilege(helper):
    done = call(helper, "seal", "0", "0", "--", "cat", "/proc/self/status")
    seen = dict(line.split(":\t", 1) for line in done.stdout.decode().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk", "SigIgn"):
        assert int(seen[name], 16) & ~LIBRARY_SIGNALS == 0, name
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2")


@pytest.mark.e2e
def test_seal_bounds_files(helper):
    code = "import resource; print(*resource.getrlimit(resource.RLIMIT_FSIZE))"
    done = call(helper, "seal", "1000000", "0", "--", INTERPRETER, "-c", code)
    assert done.stdout == b"1000000 1000000\n"


@pytest.mark.e2e
def test_seal_hands_over_just_these_variables(helper):
    given = {"PATH": os.environ["PATH"], "SAME": "a", "EMPTY": ""}
    options = ["--setenv", "NEW", "b=c", "--setenv", "SAME", "d"]
    kept = call(helper, "seal", "0", "0", *options, "--", "env", env=given).stdout.splitlines()
    assert {line for line in kept if not line.startswith(b"PATH=")} == {b"SAME=d", b"EMPTY=", b"NEW=b=c"}
    cleared = call(helper, "seal", "0", "0", "--clearenv", *options, "--", "env", env=given)
    assert sorted(cleared.stdout.splitlines()) == [b"NEW=b=c", b"SAME=d"]


@pytest.mark.e2e
def test_seal_forbids_what_no_namespace_holds_back(helper):
    code = f"""
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall({KEYCTL[platform.machine()]}, 0, -3, 0), errno.errorcode[ctypes.get_errno()])
socket.socket(socket.AF_UNIX).close()
try:
    socket.socket(socket.AF_VSOCK)
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    done = call(helper, "seal", "0", "0", "--", INTERPRETER, "-c", code)
    assert (done.stdout, done.stderr) == (b"-1 ENOSYS\nEAFNOSUPPORT\n", b"")


@pytest.mark.e2e
def test_join_enters_the_groups(helper, tmp_path):
    groups = [tmp_path / name for name in ("a", "b")]
    for group in groups:
        group.touch()
    done = call(helper, "join", *groups, "--", shutil.which("env"), env={"ONLY": "this"})
    assert (done.stdout, [group.read_text() for group in groups]) == (b"ONLY=this\n", ["0", "0"])


@pytest.mark.e2e
@pytest.mark.parametrize(("end", "status"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_reap_leaves_nobody(helper, end, status):
    done = call(helper, "reap", "sh", "-c", f"setsid sleep 1000 >/dev/null 2>&1 & echo $!; {end}")
    assert done.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


@pytest.mark.e2e
def test_reap_ends_when_it_is_told_to(helper):
    process = subprocess.Popen([helper, "reap", "sh", "-c", "echo $$; exec sleep 1000"], stdout=subprocess.PIPE)
    inner = int(process.stdout.readline())
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(inner, 0)
