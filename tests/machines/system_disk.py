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

from machines import guest_files, unpacked_system
from machines.mirrors import keyring_of, mirror_of
from machines.product_disk import compile_bytecode

if TYPE_CHECKING:
    from private_daemon import Environment

    from machines.targets import Target

SIZE = "6G"  # sparse


@dataclass(frozen=True, slots=True)
class SystemDisk:
    image: Path
    kernel: Path


def system_disk(name: str, target: Target, environment: Environment) -> SystemDisk:
    modules = (guest_files,) if target.is_native else (guest_files, unpacked_system)
    recipe = json.dumps([target.packages, target.suite, target.architecture, *map(inspect.getsource, modules)])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    folder = cache_folder(environment) / "machines" / f"{name}-{digest}"
    if not folder.exists():
        note(f"making the disk of {name} from packages")
        make_disk(target, folder, environment)
    return SystemDisk(folder / "system.img", folder / "kernel")


def make_disk(target: Target, folder: Path, environment: Environment) -> None:
    for tool, package in (("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs")):
        install(tool, package, environment)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as unfinished:
        root, result = Path(unfinished, "root"), Path(unfinished, "result")
        result.mkdir()
        unpack(target, root, Path(unfinished), environment)
        if not target.is_native:
            unpacked_system.configure(root, environment)
            library = f"usr/lib/python{target.python}"
            compile_bytecode(target, root / library, f"/{library}", environment)
        kernels = sorted(root.glob("boot/vmlinu[xz]-*"))
        if not kernels:
            raise UnavailableError("the system has no boot/vmlinu[xz]-*")
        shutil.copyfile(kernels[-1], result / "kernel")
        call(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(result / "system.img"), SIZE], environment)
        result.rename(folder)


def unpack(target: Target, root: Path, folder: Path, environment: Environment) -> None:
    keyring = keyring_of(target, folder, environment)
    mirror = mirror_of(target.distribution, environment)
    options = [
        "--quiet", f"--architectures={target.architecture}", f"--keyring={keyring}",
        f"--include={','.join(target.packages)}", "--aptopt=Acquire::Check-Valid-Until false",
    ]  # fmt: skip
    if target.is_native:
        settings = folder / "settings"
        guest_files.write(settings)
        options += ["--variant=minbase", f'--essential-hook=cp -rT {settings} "$1"']
        options += [f'--customize-hook=chroot "$1" sh -e /{guest_files.SETUP}']
    else:
        options += ["--variant=extract", "--include=?essential"]
    components = {"debian": "main", "ubuntu": "main universe"}[target.distribution]
    # In a mount namespace, so that a build that is killed leaves no mounts behind. The kernel needs no initial files.
    private = ["unshare", "--mount", "--propagation=private", "env", "INITRD=No", "mmdebstrap"]
    call([*private, *options, target.suite, str(root), f"deb {mirror} {target.suite} {components}"], environment)
