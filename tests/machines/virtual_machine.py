"""A virtual machine of QEMU: with KVM where a guest of the host's processor boots with it, else in emulation."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from typing import TYPE_CHECKING

from private_daemon import UnavailableError, die_with_parent, install, note

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from private_daemon import Environment

    from machines.system_disk import SystemDisk
    from machines.targets import Target

KVM = "/dev/kvm"
KVM_FAILURES = ("KVM internal error", "failed to initialize kvm", "emulation failure")
KVM_FIRST_LINE_S = 60.0
"""Where it works, the first line comes after a second or two."""

PACKAGES = {"x86_64": "qemu-system-x86", "aarch64": "qemu-system-arm"}
MACHINES = {"x86_64": ("q35", "ttyS0"), "aarch64": ("virt", "ttyAMA0")}
EMULATED = {
    # With cmpxchg16b (cx16), QEMU 7.2 corrupts memory of the guest's kernel.
    "x86_64": "max,-cx16,-la57",
    "aarch64": "cortex-a72",
}
MEMORY = "3G"
PROCESSORS = 2


class KvmError(Exception):
    """This machine's KVM does not boot the guest."""


def console_lines(target: Target, system: SystemDisk, product: Path, environment: Environment) -> Iterator[str]:
    """Lines of the guest's console, until it turns itself off."""
    program = f"qemu-system-{target.processor}"
    install(program, PACKAGES[target.processor], environment)
    if target.is_native and os.access(KVM, os.R_OK | os.W_OK):
        try:
            yield from _boot([program, "-accel", "kvm", "-cpu", "host"], target, system, product, KVM_FIRST_LINE_S)
        except KvmError as error:
            note(f"{KVM} does not boot this guest ({error}): emulating its processor")
        else:
            return
    emulation = [program, "-accel", "tcg,thread=multi", "-cpu", EMULATED[target.processor]]
    yield from _boot(emulation, target, system, product)


def _boot(
    command: list[str], target: Target, system: SystemDisk, product: Path, first_line_s: float | None = None
) -> Iterator[str]:
    """`first_line_s`: KvmError if the console has nothing to show by then."""
    machine, terminal = MACHINES[target.processor]
    # A processor that is emulated on a busy machine is too slow for the kernel's check of timers.
    settings = "root=/dev/vda rw loglevel=4 no_timer_check panic=-1 net.ifnames=0 systemd.show_status=0"
    parameters = f"{settings} console={terminal}"
    argv = [
        *command, "-machine", machine, "-m", MEMORY, "-smp", str(PROCESSORS),
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-kernel", str(system.kernel), "-initrd", str(system.initial_files), "-append", parameters,
        "-drive", f"file={system.image},format=raw,if=virtio,snapshot=on",
        "-drive", f"file={product},format=raw,if=virtio,cache=unsafe",
        "-nic", "user,model=virtio-net-pci",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        guest = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=die_with_parent
        )
        stack.enter_context(guest)
        stack.callback(guest.kill)
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
