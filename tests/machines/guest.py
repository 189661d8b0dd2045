"""Work of a machine that has booted: `python3 -m machines.guest`, as root, with no package but Python's own.

Lines with the mark go to the person who called `make vm`; the whole console is in the log.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from machines.guest_accounts import (
    CGROUPS,
    HOME,
    OPEN,
    ROOT,
    SUDO,
    USER,
    CheckError,
    delegate,
    has_systemd,
    scope,
    settings,
)
from machines.guest_checks import (
    attacks,
    bombs,
    contract,
    doctor,
    hard_limits,
    kill,
    larder,
    own_scope,
    profile,
    shipped,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARK = "VM| "
RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
NETWORK = (
    "ip link set lo up", "ip link set eth0 up", "ip addr add 10.0.2.15/24 dev eth0",
    "ip route add default via 10.0.2.2",
)  # fmt: skip
"""That of QEMU."""


def tell(text: str) -> None:
    for line in text.splitlines():
        print(f"{MARK}{line}", flush=True)


def prepare() -> None:
    """The network, root's view of the files, and a delegated group."""
    for words in NETWORK:
        subprocess.run(words.split(), check=False, capture_output=True)
    Path("/etc/resolv.conf").unlink(missing_ok=True)
    Path("/etc/resolv.conf").write_text("nameserver 10.0.2.3\n")
    HOME.chmod(0o700)
    for name in ("venv", "slop-code"):
        (OPEN / name).mkdir(parents=True)
        subprocess.run(["mount", "--bind", HOME / name, OPEN / name], check=True)
    if not has_systemd():
        delegate()


def facts() -> str:
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    version = 2 if (CGROUPS / "cgroup.controllers").exists() else 1
    first = Path("/proc/1/comm").read_text().strip()
    restricted = RESTRICTED.read_text().strip() if RESTRICTED.exists() else "not there"
    return (
        f"{system}, kernel {platform.release()}, {platform.machine()}, cgroup v{version}, process 1: {first}, "
        f"Python {platform.python_version()}, {RESTRICTED.name}: {restricted}"
    )


def checks(*, short: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    """The short set first; what is built once for an account makes its later checks quicker."""
    delegated = scope()
    if RESTRICTED.exists() and RESTRICTED.read_text().strip() == "1":
        yield "doctor as user, as shipped", lambda: shipped(USER)
        yield "profile loaded by user", lambda: profile(USER)
    yield "doctor as user", lambda: doctor(USER)
    yield "doctor by sudo", lambda: doctor(SUDO)
    yield "doctor in a scope", lambda: hard_limits(delegated)
    if short:
        return
    yield "doctor as root", lambda: doctor(ROOT)
    if has_systemd():
        yield "larder as user, in a scope of its own", lambda: own_scope(USER)
    else:
        yield "larder as user", lambda: larder(USER)
    yield "larder in a scope", lambda: larder(delegated, hard=True)
    yield "bombs in a scope", lambda: bombs(delegated)
    yield "kill in a scope", lambda: kill(delegated)
    yield "larder as root", lambda: larder(ROOT, 3, hard=True)
    yield "larder by sudo", lambda: larder(SUDO, hard=True)
    yield "kill as root", lambda: kill(ROOT)
    yield "attacks as user", lambda: attacks(USER)
    yield "contract in a scope", lambda: contract(delegated)


def main() -> None:
    prepare()
    tell(facts())
    form = settings()
    words = list(filter(None, form["only"].split(",")))
    failed = 0
    for name, check in checks(short=form["short"]):
        if words and not any(word in name for word in words):
            continue
        begin = time.monotonic()
        try:
            verdict, text = "ok", check()
        except CheckError as error:
            verdict, text, failed = "FAILED", str(error), failed + 1
        tell(f"{verdict} {name} ({time.monotonic() - begin:.0f} s): {text}")
    tell(f"end {failed}")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # noqa: BLE001 - a machine that says nothing looks like one that hangs
        tell(f"the checks broke off: {error!r}")
        sys.exit(1)
