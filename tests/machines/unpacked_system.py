"""Stand-in for maintainer scripts, for a system of which no program can run on the host."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from private_daemon import call, install

from machines import guest_files
from machines.guest_files import HOME, USER

if TYPE_CHECKING:
    from pathlib import Path

    from private_daemon import Environment

COPIES = {
    "usr/share/base-passwd/passwd.master": "etc/passwd",
    "usr/share/base-passwd/group.master": "etc/group",
    "usr/share/libc-bin/nsswitch.conf": "etc/nsswitch.conf",
}
ADDED = {
    "etc/passwd": f"{USER}:*:1000:1000::{HOME}:/bin/bash\n",
    "etc/group": f"{USER}:*:1000:\n",
    **{
        f"etc/pam.d/common-{name}": f"{name.partition('-')[0]} required pam_permit.so\n"
        for name in ("account", "auth", "password", "session", "session-noninteractive")
    },
}


def configure(root: Path, environment: Environment) -> None:
    guest_files.write(root)
    for source, name in COPIES.items():
        shutil.copyfile(root / source, root / name)
    for name, text in ADDED.items():
        with (root / name).open("a") as file:
            file.write(text)
    install("depmod", "kmod", environment)
    for modules in (root / "usr/lib/modules").iterdir():
        call(["depmod", "--basedir", str(root), modules.name], environment)
