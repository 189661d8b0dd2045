"""Root of the host is another one than root of a user namespace."""

from __future__ import annotations

import subprocess
import sys

import pytest

from slop_code.execution.bubblewrap.host_root import is_host_root, outside_id

WHOLE = "         0          0 4294967295\n"
ROOTLESS = "         0       1000          1\n         1     100000      65536\n"
IN_A_NAMESPACE = """
import ctypes, os, sys
from pathlib import Path
from slop_code.execution.bubblewrap.box_user import ids_in_force
from slop_code.execution.bubblewrap.cgroups import authority_of
from slop_code.execution.bubblewrap.namespace_causes import MachineFacts

ready, mapped = os.pipe(), os.pipe()
if (child := os.fork()) == 0:
    os.close(mapped[1])
    if ctypes.CDLL(None).unshare(0x10000000):
        os._exit(77)
    os.write(ready[1], b"x")
    os.read(mapped[0], 1)
    os.setuid(0)
    print(os.geteuid(), ids_in_force(None), authority_of([Path("/a/b")]), MachineFacts.read().is_root, flush=True)
    os._exit(0)
os.close(ready[1])
if not os.read(ready[0], 1):
    sys.exit(77)
try:
    Path(f"/proc/{child}/uid_map").write_text(sys.argv[1])
except OSError:
    os.kill(child, 9)
    sys.exit(77)
os.write(mapped[1], b"x")
os.waitpid(child, 0)
"""


@pytest.mark.parametrize(
    ("user", "uid_map", "expected"),
    [
        (0, WHOLE, 0),
        (1000, WHOLE, 1000),
        (0, ROOTLESS, 1000),
        (1, ROOTLESS, 100000),
        (70000, ROOTLESS, None),
        (0, "0 0 1\n", 0),
        (65534, "1000 1000 1\n", None),
    ],
)
def test_the_user_outside_follows_from_the_map(user, uid_map, expected):
    assert outside_id(user, uid_map) == expected


@pytest.mark.e2e
@pytest.mark.skipif(not is_host_root(), reason="only root of the host maps another user than itself")
@pytest.mark.parametrize(
    ("uid_map", "words"), [("0 12345 1", "0 evaluator delegation False"), ("0 0 1", "0 root root True")]
)
def test_root_of_a_user_namespace_is_judged_by_its_mapping(uid_map, words):
    command = [sys.executable, "-c", IN_A_NAMESPACE, uid_map]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("this machine allows no user namespaces")
    assert done.stdout.strip() == words, done.stderr
