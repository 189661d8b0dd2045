"""The checks that a machine runs in itself, as root and started by systemd; it has no package but Python's own.

Lines with the mark go to the person who called `make vm`; the whole console is in the log.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARK = "VM| "
HOME = Path("/home/tester")
OPEN = Path("/opt/slop-code")
"""The same files in a folder that everyone can read, for root."""

RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
CGROUPS = Path("/sys/fs/cgroup")
LARDER = "examples/problems/larder"
PATIENCE_S = 600
BOX_PROGRAMS = {"bwrap", "slopbox", "slop-run"}


class CheckError(Exception):
    """The reason why a check failed."""


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who calls slop-code."""

    name: str
    files: Path
    prefix: tuple[str, ...]
    """Words before a shell command."""

    before: str = ""
    """Words before the command itself."""

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        words = [*self.prefix, "-c", f"cd {self.folder} && {self.before}{self._variables()} {command}"]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def start(self, command: str) -> subprocess.Popen[bytes]:
        words = [*self.prefix, "-c", f"cd {self.folder} && {self._variables()} exec {command}"]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def folder(self) -> Path:
        return self.files / "slop-code"

    def _variables(self) -> str:
        path = {"PATH": f"{self.files}/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin", "XDG_RUNTIME_DIR": "/run/user/1000"}
        return shlex.join(["env", *(f"{name}={value}" for name, value in {**form["variables"], **path}.items())])

    @property
    def python(self) -> str:
        return f"{self.files}/venv/bin/python"

    @property
    def slop_code(self) -> str:
        return f"{self.python} -m slop_code"


ROOT = Account("root", OPEN, ("bash",))
USER = Account("user", HOME, ("su", "-", "tester"))
SUDO = Account("sudo", HOME, ("su", "-", "tester"), "sudo ")
SCOPE = Account(
    "scope", HOME, ("su", "-", "tester"),
    "XDG_RUNTIME_DIR=/run/user/1000 systemd-run --user --scope --quiet -p Delegate=yes ",
)  # fmt: skip


def tell(text: str) -> None:
    for line in text.splitlines():
        print(f"{MARK}{line}", flush=True)


def prepare() -> None:
    """The network of QEMU, and root's view of the files."""
    for words in ("ip link set lo up", "ip link set eth0 up", "ip addr add 10.0.2.15/24 dev eth0",
                  "ip route add default via 10.0.2.2"):  # fmt: skip
        subprocess.run(words.split(), check=False, capture_output=True)
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").write_text("nameserver 10.0.2.3\n")
    HOME.chmod(0o700)
    for name in ("venv", "slop-code"):
        (OPEN / name).mkdir(parents=True)
        subprocess.run(["mount", "--bind", HOME / name, OPEN / name], check=True)


def facts() -> str:
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    version = 2 if (CGROUPS / "cgroup.controllers").exists() else 1
    first = Path("/proc/1/comm").read_text().strip()
    restricted = RESTRICTED.read_text().strip() if RESTRICTED.exists() else "not there"
    return (
        f"{system}, kernel {platform.release()}, {platform.machine()}, cgroup v{version}, process 1: {first}, "
        f"Python {platform.python_version()}, {RESTRICTED.name}: {restricted}"
    )


def expect(done: subprocess.CompletedProcess[str], status: int = 0) -> None:
    if done.returncode != status:
        raise CheckError(
            f"exit status {done.returncode}, expected {status}\n{done.stderr[-2000:]}{done.stdout[-6000:]}"
        )


def doctor(account: Account) -> str:
    done = account.run(f"{account.slop_code} doctor")
    expect(done)
    shown = ("limits:", "both boxes:")
    return "; ".join(line for line in done.stdout.splitlines() if any(word in line for word in shown))


def larder(account: Account) -> str:
    out = f"/tmp/larder-{account.name}"
    words = f"eval-snapshot {LARDER}/solutions/checkpoint_1 -p {LARDER} -c 1 -o {out}"
    expect(account.run(f"{account.slop_code} {words}"))
    result = json.loads(next(Path(out).rglob("evaluation.json")).read_text())
    return json.dumps(result["isolation"])


def hard_limits(account: Account) -> str:
    """In a delegated group the kernel enforces the limits of an ordinary user's evaluation."""
    if "limits: control groups" not in (limits := doctor(account)):
        raise CheckError(limits)
    return limits


def own_scope(account: Account) -> str:
    """In a login session an evaluator gets its control groups by itself, and the bombs are held by the kernel."""
    if '"control_groups_of": "scope"' not in (isolation := larder(account)):
        raise CheckError(isolation)
    return f"{isolation}; {contract(account, 'bubblewrap and limits')}"


def shipped(account: Account) -> str:
    """Where AppArmor forbids boxes, `doctor` says so, with the way out."""
    done = account.run(f"{account.slop_code} doctor")
    expect(done, 3)
    if "slop-code doctor --apparmor-profile" not in done.stdout:
        raise CheckError(done.stdout)
    return done.stdout


def profile(account: Account) -> str:
    """The commands that `doctor` prints, as they are."""
    printed = account.run(f"{account.slop_code} doctor --apparmor-profile")
    expect(printed)
    commands = [line.partition(" it: ")[2] for line in printed.stderr.splitlines()]
    for command in filter(None, commands):
        expect(account.run(f"sh -c {shlex.quote(command)}"))
    return f"{len(commands)} commands; {doctor(account)}"


def contract(account: Account, chosen: str = "bubblewrap") -> str:
    tests = f"tests/execution/test_sandbox.py -k {shlex.quote(chosen)}"
    done = account.run(f"{account.python} -m pytest -q -p no:cacheprovider {tests}")
    expect(done)
    return done.stdout.splitlines()[-1]


def attacks(account: Account) -> str:
    done = account.run(f"{account.slop_code} doctor --attacks")
    expect(done)
    return done.stdout.splitlines()[-1]


def box_processes() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip() in BOX_PROGRAMS:
                found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise CheckError(f"after {PATIENCE_S} s: {what}")
        time.sleep(0.1)


def kill(account: Account) -> str:
    """An evaluator that is killed leaves no box, and the next one removes its control groups."""
    words = f"eval-snapshot {LARDER}/solutions/checkpoint_1 -p {LARDER} -c 1 -o /tmp/killed-{account.name}"
    with account.start(f"{account.slop_code} {words}") as process:
        wait_until(lambda: bool(box_processes()), "no box was started")
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"killed-" in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                    os.kill(int(entry.name), signal.SIGKILL)
        process.wait()
    wait_until(lambda: not box_processes(), f"processes of boxes are left: {box_processes()}")
    larder(account)
    left = [str(group) for group in CGROUPS.glob("**/slop-code-*") if group.is_dir()]
    if left:
        raise CheckError(f"control groups are left: {left}")
    return "no process and no control group is left"


def checks() -> Iterator[tuple[str, Callable[[], str]]]:
    """The short set first."""
    if RESTRICTED.exists() and RESTRICTED.read_text().strip() == "1":
        yield "doctor as user, as shipped", lambda: shipped(USER)
        yield "profile loaded by user", lambda: profile(USER)
    yield "doctor as user", lambda: doctor(USER)
    yield "doctor by sudo", lambda: doctor(SUDO)
    yield "hard limits in a scope", lambda: hard_limits(SCOPE)
    if form["short"]:
        return
    yield "larder by sudo", lambda: larder(SUDO)
    yield "larder as user, in a scope of its own", lambda: own_scope(USER)
    yield "larder in a scope", lambda: larder(SCOPE)
    yield "kill as user", lambda: kill(USER)
    yield "doctor as root", lambda: doctor(ROOT)
    yield "larder as root", lambda: larder(ROOT)
    yield "bombs in a scope", lambda: contract(SCOPE, "bubblewrap and limits")
    yield "contract as user", lambda: contract(USER)
    yield "contract as root", lambda: contract(ROOT)
    yield "attacks as user", lambda: attacks(USER)


def main() -> None:
    prepare()
    tell(facts())
    failed = 0
    only: str = form["only"]
    for name, check in checks():
        if only and not any(word in name for word in only.split(",")):
            continue
        begin = time.monotonic()
        try:
            verdict, words = "ok", check()
        except CheckError as error:
            verdict, words, failed = "FAILED", str(error), failed + 1
        tell(f"{verdict} {name} ({time.monotonic() - begin:.0f} s): {words}")
    tell(f"end {failed}")


form: dict[str, Any] = {}
if __name__ == "__main__":
    form |= json.loads((HOME / "checks.json").read_text())
    try:
        main()
    except Exception as error:  # noqa: BLE001 - a machine that says nothing looks like one that hangs
        tell(f"the checks broke off: {error!r}")
        sys.exit(1)
