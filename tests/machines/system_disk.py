"""The disk of a machine's system, with its kernel: made once of the distribution's packages, and cached."""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from private_daemon import UnavailableError, call, install, note
from with_docker import cache_folder

from machines import guest_files
from machines.mirrors import keyring_of, mirror_of

if TYPE_CHECKING:
    from private_daemon import Environment

    from machines.targets import Target

SIZE = "6G"  # sparse
QEMU_USER = {"aarch64": "qemu-aarch64-static", "x86_64": "qemu-x86_64-static"}


@dataclass(frozen=True, slots=True)
class SystemDisk:
    image: Path
    kernel: Path
    initial_files: Path


def system_disk(name: str, target: Target, environment: Environment) -> SystemDisk:
    recipe = json.dumps([target.packages, target.suite, target.architecture, inspect.getsource(guest_files)])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    folder = cache_folder(environment) / "machines" / f"{name}-{digest}"
    if not folder.exists():
        note(f"making the disk of {name} from packages")
        make_disk(target, folder, environment)
    return SystemDisk(folder / "system.img", folder / "kernel", folder / "initrd")


def make_disk(target: Target, folder: Path, environment: Environment) -> None:
    for tool, package in (("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs")):
        install(tool, package, environment)
    if not target.is_native:
        prepare_emulation(target, environment)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as unfinished:
        root, result = Path(unfinished, "root"), Path(unfinished, "result")
        result.mkdir()
        unpack(target, root, Path(unfinished), environment)
        for file, names in (("kernel", "vmlinu[xz]-*"), ("initrd", "initrd.img-*")):
            found = sorted(root.glob(f"boot/{names}"))
            if not found:
                raise UnavailableError(f"the system has no boot/{names}")
            shutil.copyfile(found[-1], result / file)
        call(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(result / "system.img"), SIZE], environment)
        result.rename(folder)


def prepare_emulation(target: Target, environment: Environment) -> None:
    """Maintainer scripts of another processor run in QEMU, if the kernel of this machine starts it for them."""
    install(QEMU_USER[target.processor], "qemu-user-static binfmt-support", environment)
    install("arch-test", "arch-test", environment)
    try:
        call(["arch-test", target.architecture], environment)
    except UnavailableError:
        steps = f"mount -t binfmt_misc none /proc/sys/fs/binfmt_misc; update-binfmts --enable qemu-{target.processor}"
        raise UnavailableError(f"this kernel starts no programs of {target.processor}; run `{steps}`") from None


def unpack(target: Target, root: Path, folder: Path, environment: Environment) -> None:
    settings = folder / "settings"
    guest_files.write(settings)
    keyring = keyring_of(target, folder, environment)
    mirror = mirror_of(target.distribution, environment)
    options = [
        "--quiet", "--variant=minbase", f"--architectures={target.architecture}", f"--keyring={keyring}",
        f"--include={','.join(target.packages)}", "--aptopt=Acquire::Check-Valid-Until false",
        # Before the kernel, whose script makes the initial files.
        f'--essential-hook=cp -rT {settings} "$1"',
        f'--customize-hook=chroot "$1" sh -e /{guest_files.SETUP}',
    ]  # fmt: skip
    components = {"debian": "main", "ubuntu": "main universe"}[target.distribution]
    # In a mount namespace, so that a build that is killed leaves no mounts behind.
    private = ["unshare", "--mount", "--propagation=private", "mmdebstrap"]
    call([*private, *options, target.suite, str(root), f"deb {mirror} {target.suite} {components}"], environment)
