"""An overlay that the kernel refuses names the file systems of its layers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.execution.bubblewrap.overlay_error import file_system, overlay_error
from slop_code.execution.sandbox import SetupJob

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:5 / /mnt/my\\040disk rw - nfs4 server:/home rw
23 21 0:6 / /mnt/my\\040disk/inner rw - tmpfs tmpfs rw
24 23 0:7 / /mnt/my\\040disk/inner rw - xfs /dev/sdb rw
"""
CACHE_ON_AN_OVERLAY = """
cd "$0" && mkdir lower upper work merged && mount -t tmpfs tmpfs work && mkdir work/upper work/work &&
mount -t overlay overlay -o lowerdir=lower,upperdir=work/upper,workdir=work/work merged || exit 77
SCBENCH_CACHE_DIR=$0/merged/cache exec "$@"
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me", "ext4"),
        ("/mnt/my disk", "nfs4"),
        ("/mnt/my disk/cache", "nfs4"),
        ("/mnt/my disks", "ext4"),
        ("/mnt/my disk/inner/cache", "xfs"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(path, kind):
    assert file_system(Path(path), MOUNTS) == kind


def test_another_error_is_not_of_an_overlay(tmp_path):
    job = SetupJob(submission=tmp_path, environment={}, scratch=tmp_path, keep_workspace=True)
    assert overlay_error(job, "bwrap: No permissions to create new namespace") is None


@pytest.mark.e2e
def test_doctor_names_the_file_system_of_a_cache_that_cannot_keep_set_up(need_bubblewrap, unshared, tmp_path):
    need_bubblewrap()
    command = [*unshared, "sh", "-c", CACHE_ON_AN_OVERLAY, str(tmp_path)]
    variables = {**os.environ, "PATH": "/usr/bin:/bin", "PYENV_ROOT": "/nowhere"}
    done = subprocess.run(
        [*command, sys.executable, "-m", "slop_code", "doctor"], env=variables, capture_output=True, text=True
    )
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.returncode == 3, done.stdout + done.stderr
    [fact] = [line for line in done.stdout.splitlines() if line.startswith("no set-up: ")]
    assert "the kernel refuses an overlay with " in fact
    assert fact.endswith("(overlay)")
    assert "\nset-up: set SCBENCH_CACHE_DIR to a folder on a local disk" in done.stdout
