"""A full disk and a missing network, for real: each is called what it is."""

import os
import shutil
import subprocess

import pytest

from tests.command import SLOP_CODE


@pytest.fixture
def without(tmp_path):
    """`slop-code cache warm` with an empty cache, in namespaces of its own. `size` is that of the disk of the cache."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rmn", "true"], check=False).returncode != 0:
        pytest.skip("unshare cannot make namespaces here")

    def warm(namespaces, size=None):
        disk = tmp_path / "disk"
        disk.mkdir()
        mount = f"mount -t tmpfs -o size={size} none {disk} && " if size else ""
        environment = {**os.environ, "SCBENCH_CACHE_DIR": str(disk / "cache")}
        argv = ["unshare", namespaces, "sh", "-c", f"{mount}exec {SLOP_CODE} cache warm"]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stdout) == (3, "")
        return done.stderr

    return warm


@pytest.mark.long
def test_a_missing_network_is_named(without):
    shown = without("-rmn")
    assert "the package index cannot be reached: check the network" in shown
    assert "disk is full" not in shown


@pytest.mark.long
@pytest.mark.parametrize("size", ["16k", "64k"])
def test_a_full_disk_is_named_also_without_a_network(without, size):
    shown = without("-rmn", size)
    assert "the disk is full: free space" in shown
    assert "network" not in shown.splitlines()[-1]
