"""The checks that a machine runs in itself. Each returns what it saw, or raises CheckError."""

from __future__ import annotations

import contextlib
import json
import os
import re
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
BOMBS = {
    "limits": "{memory: 300M, processes: 50, disk: 40M, output: 8M}",
    "unseen": "{memory: 64M, disk: 16M}",
}
"""Checkpoints with bombs, and the limits that their tests expect."""

GROUPS = ("slop-code-[0-9]*", "slop-code.user-*")
"""Control groups of a subject, and of the boxes of root."""

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
    profile_name = re.search(r'^profile (slop-code-bwrap-\w+) "/', printed.stdout, re.MULTILINE)
    commands = list(filter(None, (line.partition(" it: ")[2] for line in printed.stderr.splitlines())))
    if not profile_name or not all(f"/{profile_name[1]}" in command for command in commands):
        raise CheckError(printed.stdout + printed.stderr)
    for command in commands:
        account.check(f"sh -c {shlex.quote(command)}")
    return "; ".join(commands)


def larder(account: Account, checkpoint: int = 1, *, hard: bool = False) -> str:
    """`hard`: the kernel has to enforce the limits."""
    out = f"/tmp/larder-{account.name}"
    words = f"{LARDER}/solutions/checkpoint_{checkpoint} -p {LARDER} -c {checkpoint}"
    account.check(f"{account.slop_code} eval-snapshot {words} -o {out}")
    result = evaluation(out)
    if hard and not result["isolation"]["control_groups"]:
        raise CheckError(json.dumps(result["isolation"]))
    return f"{all_passed(result)}; {json.dumps(result['isolation'])}"


def evaluation(out: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(next(Path(out).rglob("evaluation.json")).read_text())
    return result


def all_passed(result: dict[str, Any]) -> str:
    """The policy of a command may be satisfied by less."""
    tests = result["tests"]
    bad = [test for test in tests if test["status"] != "passed"]
    failures = [f"{test['id']}: {test['status']}: {test['failure_message']}" for test in bad]
    if failures or not tests:
        raise CheckError("\n".join([f"{len(tests) - len(failures)} of {len(tests)} tests passed", *failures]))
    return f"{len(tests)} of {len(tests)} tests passed"


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
    """Bombs of memory and processes in a delegated group, whose counter says that the kernel stopped one of memory.

    That is the one of the checkpoint `unseen`: in emulation the watch notices any other before the kernel has to act.
    Its test fails if the kernel ends the whole box.
    """
    commands = []
    for checkpoint, limits in BOMBS.items():
        environment = Path(f"/tmp/{checkpoint}.yaml")
        environment.write_text(f"name: bombs\ntype: local\nlimits: {limits}\n")
        words = f"eval-snapshot {BOXES}/submission -p {BOXES} -c {checkpoint} -e {environment} -o /tmp/{checkpoint}"
        commands.append(f"{account.slop_code} {words}")
    # The evaluator moves this shell to a group in the delegated one, whose file `grep` reads.
    counter = f"cd {CGROUPS}$(sed s/0::// /proc/self/cgroup)/.. && grep -H '^oom_kill ' memory.events"
    script = f"{commands[0]} && {{ {commands[1]}; [ $? -le 1 ]; }} && {counter}"
    done = account.check(f"sh -c {shlex.quote(script)}")
    counted = re.findall(r"^memory\.events:oom_kill [1-9]\d*$", done.stdout, re.MULTILINE)
    bounded, killed = (evaluation(f"/tmp/{checkpoint}") for checkpoint in BOMBS)
    struck = [limit["kind"] for test in killed["tests"] for limit in test["limits"]]
    isolation = killed["isolation"]
    text = f"{all_passed(bounded)}; counted by the kernel: {counted}; struck unseen: {struck}; {json.dumps(isolation)}"
    if not (isolation["control_groups"] and counted and struck == ["memory"]):
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
    left = [str(group) for pattern in GROUPS for group in CGROUPS.glob(f"**/{pattern}")]
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
