"""Files of a machine's system beside its packages: users, the service that runs the checks, the initial files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

USER = "tester"
HOME = f"/home/{USER}"
SETUP = "etc/slop-code-setup.sh"
FILES = {
    # Few modules: in emulation, unpacking all of them takes a minute.
    "etc/initramfs-tools/conf.d/few-modules": "MODULES=list\nCOMPRESS=gzip\n",
    "usr/share/initramfs-tools/modules.d/slop-code": "virtio_pci\nvirtio_blk\next4\n",
    "etc/modules-load.d/slop-code.conf": "overlay\nvirtio_net\n",
    "etc/hostname": "machine\n",
    "etc/fstab": "",
    # An emulated machine takes its time.
    "etc/systemd/system.conf.d/patience.conf": (
        "[Manager]\nDefaultTimeoutStartSec=infinity\nDefaultDeviceTimeoutSec=infinity\n"
    ),
    "etc/sudoers.d/tester": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
    f"var/lib/systemd/linger/{USER}": "",
    SETUP: f"""
useradd --uid 1000 --user-group --no-create-home --home-dir {HOME} --shell /bin/bash {USER}
mkdir -p {HOME} /opt/slop-code
chmod 440 /etc/sudoers.d/tester
systemctl enable slop-code-checks.service
systemctl mask getty@tty1.service serial-getty@.service systemd-networkd-wait-online.service apt-daily.timer \
  apt-daily-upgrade.timer
rm /{SETUP}
""",
    "etc/systemd/system/slop-code-checks.service": f"""
[Unit]
Description=Checks of slop-code
After=systemd-user-sessions.service systemd-logind.service dbus.service
SuccessAction=poweroff-force
FailureAction=poweroff-force

[Service]
Type=oneshot
TimeoutStartSec=infinity
StandardInput=null
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
ExecStart=/bin/mount /dev/vdb {HOME}
ExecStart=/usr/bin/python3 {HOME}/slop-code/tests/machines/guest.py

[Install]
WantedBy=multi-user.target
""",
}


def write(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.lstrip("\n"))
