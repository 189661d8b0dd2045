"""A virtual machine of QEMU: with KVM where a guest of the host's processor boots with it, else in emulation."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_daemon import UnavailableError, die_with_parent, install, note

from machines.guest_files import INIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from private_daemon import Environment

    from machines.system_disk import SystemDisk
    from machines.targets import Target

KVM = "/dev/kvm"
KVM_FAILURES = ("KVM internal error", "failed to initialize kvm", "emulation failure")
KVM_FIRST_LINE_S = 20.0
"""Where it works, the first line comes after a second or two."""

PACKAGES = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm"}
BOARDS = {"x86_64": ("q35", "ttyS0"), "aarch64": ("virt", "ttyAMA0")}
EMULATED = {
    # With cmpxchg16b (cx16), QEMU 7.2 corrupts memory of the guest's kernel.
    "x86_64": "max,-cx16,-la57",
    "aarch64": "cortex-a72",
}
ROOTS = {"nvme": "/dev/nvme0n1", "virtio": "/dev/vda"}
DEVICES = {"nvme": "nvme,drive=system,serial=system", "virtio": "virtio-blk-pci,drive=system"}
# A processor that is emulated on a busy machine is too slow for the kernel's check of timers. The checks need neither
# self-tests of ciphers nor mitigations, which take time.
PARAMETERS = (
    "rw rootfstype=ext4 loglevel=4 no_timer_check panic=-1 net.ifnames=0 systemd.show_status=0 audit=0 mitigations=off "
    "cryptomgr.notests"
)
NO_ROM = "romfile="
"""Nothing boots from the network, and the file is in a package of its own."""

MACHINE_S = 4 * 3600.0
"""The longest set takes two hours where an emulated machine has half a processor."""

MEMORY = "3G"
PROCESSORS = 2


class KvmError(Exception):
    """This machine's KVM does not boot the guest."""


@dataclass(frozen=True, slots=True)
class Machine:
    target: Target
    system: SystemDisk
    product: Path
    has_systemd: bool


def console_lines(machine: Machine, environment: Environment) -> Iterator[str]:
    """Lines of the guest's console, until it turns itself off."""
    target = machine.target
    program = f"qemu-system-{target.processor}"
    install(program, PACKAGES[target.processor], environment)
    if target.is_native and os.access(KVM, os.R_OK | os.W_OK):
        try:
            yield from _boot([program, "-accel", "kvm", "-cpu", "host"], machine, KVM_FIRST_LINE_S)
        except KvmError as error:
            note(f"{KVM} does not boot this guest ({error}): emulating its processor")
        else:
            return
    emulation = [program, "-accel", "tcg,thread=multi", "-cpu", EMULATED[target.processor]]
    yield from _boot(emulation, machine)


def arguments(machine: Machine) -> list[str]:
    """Those of QEMU."""
    board, terminal = BOARDS[machine.target.processor]
    bus = machine.target.disk
    root = ROOTS[bus]
    parameters = f"{PARAMETERS} root={root} console={terminal}"
    if not machine.has_systemd:
        parameters += f" init=/{INIT}"
    return [
        "-machine", board, "-m", MEMORY, "-smp", str(PROCESSORS),
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-kernel", str(machine.system.kernel), "-append", parameters,
        "-drive", f"file={machine.system.image},format=raw,if=none,id=system,snapshot=on",
        "-device", DEVICES[bus],
        "-drive", f"file={machine.product},format=raw,if=virtio,cache=unsafe",
        "-netdev", "user,id=network", "-device", f"virtio-net-pci,netdev=network,{NO_ROM}",
    ]  # fmt: skip


def _boot(command: list[str], machine: Machine, first_line_s: float | None = None) -> Iterator[str]:
    """`first_line_s`: KvmError if the console has nothing to show by then."""
    argv = [*command, *arguments(machine)]
    with contextlib.ExitStack() as stack:
        guest = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=die_with_parent
        )
        stack.enter_context(guest)
        stack.callback(guest.kill)
        limit = threading.Timer(MACHINE_S, guest.kill)
        stack.callback(limit.cancel)
        limit.start()
        assert guest.stdout is not None
        if not select.select([guest.stdout], [], [], first_line_s)[0]:
            raise KvmError(f"nothing on its console after {first_line_s:g} s")
        for raw in guest.stdout:
            line = raw.decode(errors="replace").rstrip("\r\n")
            if failure := next((words for words in KVM_FAILURES if words in line), None):
                raise KvmError(failure)
            yield line
    if guest.returncode:
        raise UnavailableError(f"{argv[0]} ended with status {guest.returncode}")
