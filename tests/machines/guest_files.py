"""Files of a machine's system beside its packages: the user, the start of the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

USER = "tester"
HOME = f"/home/{USER}"
LABEL = "slop-code-home"
"""Of the file system of the user's home."""

INIT = "usr/local/sbin/checks-as-process-1"
SETUP = "etc/slop-code-setup.sh"
RUN_CHECKS = f"/usr/bin/env PYTHONPATH={HOME}/slop-code/tests /usr/bin/python3 -m machines.guest"
MODULES = ("overlay", "virtio_pci", "virtio_blk", "virtio_net")
FILES = {
    "etc/modules-load.d/slop-code.conf": "".join(f"{name}\n" for name in MODULES),
    "etc/hostname": "machine\n",
    "etc/hosts": "127.0.0.1 localhost machine\n",
    "etc/fstab": "",
    # An emulated machine takes its time.
    "etc/systemd/system.conf.d/patience.conf": (
        "[Manager]\nDefaultTimeoutStartSec=infinity\nDefaultDeviceTimeoutSec=infinity\n"
    ),
    "etc/sudoers.d/tester": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
    f"var/lib/systemd/linger/{USER}": "",
    SETUP: f"""
useradd --uid 1000 --user-group --no-create-home --home-dir {HOME} --shell /bin/bash {USER}
systemctl enable slop-code-checks.service
systemctl mask getty@tty1.service serial-getty@.service systemd-networkd-wait-online.service apt-daily.timer \
  apt-daily-upgrade.timer
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
ExecStart=/bin/mount -L {LABEL} {HOME}
ExecStart={RUN_CHECKS}

[Install]
WantedBy=multi-user.target
""",
    # Instead of systemd, whose start takes minutes in emulation. Its files of settings mean the same.
    INIT: f"""
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=755 tmpfs /run
for folder in /dev/shm /tmp; do mount -t tmpfs tmpfs $folder; done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security
hostname -F /etc/hostname
modprobe -a $(cat /etc/modules-load.d/slop-code.conf)
sysctl -q --system
until mount -L {LABEL} {HOME}; do sleep 1; done
{RUN_CHECKS}
sync
echo o > /proc/sysrq-trigger
sleep 60
""",
}


def write(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.lstrip("\n"))
    (folder / INIT).chmod(0o755)
    (folder / "etc/sudoers.d/tester").chmod(0o440)
    for name in (HOME, "/opt/slop-code"):
        (folder / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
