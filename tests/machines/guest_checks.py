"""The checks that a machine runs in itself. Each returns what it saw, or raises CheckError."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from machines.guest_accounts import CGROUPS, CheckError

if TYPE_CHECKING:
    from collections.abc import Callable

    from machines.guest_accounts import Account

LARDER = "examples/problems/larder"
BOXES = "tests/problems/boxes"
CONTRACT = "tests/execution/test_sandbox.py tests/execution/test_cgroups.py"
LIMITS = "{memory: 300M, processes: 50, disk: 40M, output: 8M}"
"""Those that the tests of bombs expect."""

BOX_PROGRAMS = {"bwrap", "slopbox", "slop-run"}
PATIENCE_S = 600


def doctor(account: Account) -> str:
    done = account.check(f"{account.slop_code} doctor")
    shown = ("python:", "limits:", "both boxes:")
    lines = [line.strip() for line in done.stdout.splitlines()]
    return "; ".join(line for line in lines if any(word in line for word in shown))


def hard_limits(account: Account) -> str:
    """In a delegated group the kernel enforces the limits of an ordinary user's evaluation."""
    if "limits: control groups" not in (limits := doctor(account)):
        raise CheckError(limits)
    return limits


def shipped(account: Account) -> str:
    """Where AppArmor forbids boxes, `doctor` says so, with the way out."""
    done = account.check(f"{account.slop_code} doctor", 3)
    if "slop-code doctor --apparmor-profile" not in done.stdout:
        raise CheckError(done.stdout)
    return done.stdout


def profile(account: Account) -> str:
    """The commands that `doctor` prints, as they are."""
    printed = account.check(f"{account.slop_code} doctor --apparmor-profile")
    commands = list(filter(None, (line.partition(" it: ")[2] for line in printed.stderr.splitlines())))
    for command in commands:
        account.check(f"sh -c {shlex.quote(command)}")
    return "; ".join(commands)


def larder(account: Account, checkpoint: int = 1, *, hard: bool = False) -> str:
    """`hard`: the kernel has to enforce the limits."""
    out = f"/tmp/larder-{account.name}"
    words = f"{LARDER}/solutions/checkpoint_{checkpoint} -p {LARDER} -c {checkpoint}"
    account.check(f"{account.slop_code} eval-snapshot {words} -o {out}")
    result: dict[str, Any] = json.loads(next(Path(out).rglob("evaluation.json")).read_text())
    if hard and not result["isolation"]["control_groups"]:
        raise CheckError(json.dumps(result["isolation"]))
    passed = [test for test in result["tests"] if test["status"] == "passed"]
    return f"{len(passed)} of {len(result['tests'])} tests passed; {json.dumps(result['isolation'])}"


def own_scope(account: Account) -> str:
    """In a login session of systemd an evaluator gets its control groups by itself."""
    if '"control_groups_of": "scope"' not in (seen := larder(account, hard=True)):
        raise CheckError(seen)
    return seen


def contract(account: Account, chosen: str = "not none and not docker") -> str:
    options = f"-q -p no:cacheprovider -k {shlex.quote(chosen)}"
    done = account.check(f"{account.python} -m pytest {options} {CONTRACT}")
    return done.stdout.splitlines()[-1]


def bombs(account: Account) -> str:
    """Memory and fork bombs in a delegated group; its counters say that the kernel stopped the fork bomb.

    In emulation no bomb fills memory before the watch sees it, so that the kernel does not have to.
    """
    environment = Path("/tmp/bombs.yaml")
    environment.write_text(f"name: bombs\ntype: local\nlimits: {LIMITS}\n")
    out = "/tmp/bombs"
    words = f"eval-snapshot {BOXES}/submission -p {BOXES} -c limits -e {environment} -o {out}"
    # The evaluator moves this shell to a group in the delegated one, whose files are named in what `grep` prints.
    counters = (
        f"cd {CGROUPS}$(sed s/0::// /proc/self/cgroup)/.. && grep -E '^(max|oom_kill) ' memory.events pids.events"
    )
    done = account.check(f"sh -c {shlex.quote(f'{account.slop_code} {words} && {counters}')}")
    counted = [line for line in done.stdout.splitlines() if ".events:" in line]
    isolation = json.loads(next(Path(out).rglob("evaluation.json")).read_text())["isolation"]
    text = f"counted by the kernel: {', '.join(counted)}; {json.dumps(isolation)}"
    stopped = any(line.startswith("pids.events:max ") and not line.endswith(" 0") for line in counted)
    if not isolation["control_groups"] or not stopped:
        raise CheckError(text)
    return text


def attacks(account: Account) -> str:
    return account.check(f"{account.slop_code} doctor --attacks").stdout.splitlines()[-1]


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
    wait_until(lambda: not box_processes(), "processes of boxes are left")
    text = larder(account)
    left = [str(group) for group in CGROUPS.glob("**/slop-code-[0-9]*")]
    if left:
        raise CheckError(f"control groups are left: {left}")
    return f"no process and no control group is left; {text}"


def box_processes() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip() in BOX_PROGRAMS:
                found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise CheckError(f"after {PATIENCE_S} s: {otherwise}")
        time.sleep(0.1)
