"""The workspace where a tmpfs has no attributes for an overlay, as before Linux 6.6: a copy."""

from __future__ import annotations

import subprocess

import pytest

from slop_code.execution.bubblewrap import bwrap_binary
from slop_code.execution.bubblewrap.system_mounts import system_arguments

pytestmark = pytest.mark.e2e

SPARSE_BYTES = 16 << 20
SCRIPT = """
mkdir /scratch /ws
mount -t $1 none /scratch
exec /slopbox init --mkdir /scratch/up/.evaluation_tests 755 --mkdir /scratch/work 755 \\
  --workspace /upper:/lower /scratch /ws --judge /bin/sh -c "cd /ws; $2"
"""


@pytest.fixture
def workspace(helper, need_bubblewrap, tmp_path):
    """Runs a shell in the workspace; its changes go to a file system of the given type."""
    need_bubblewrap()
    (tmp_path / "lower/inner/deep").mkdir(parents=True)
    (tmp_path / "lower/inner/deep/file").write_text("of the submission")
    (tmp_path / "upper/inner").mkdir(parents=True)
    (tmp_path / "upper/inner/of_setup").write_text("made by set-up")
    (tmp_path / "lower/private").write_text("kept")
    (tmp_path / "lower/private").chmod(0o640)
    with (tmp_path / "lower/sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(SPARSE_BYTES)
        file.write(b"end")
        file.truncate(2 * SPARSE_BYTES)

    def run(file_system: str, words: str) -> str:
        box = [
            bwrap_binary.bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--unshare-pid",
            "--die-with-parent", *system_arguments(), "--proc", "/proc", "--dev", "/dev",
            "--ro-bind", tmp_path / "lower", "/lower", "--ro-bind", tmp_path / "upper", "/upper",
            "--ro-bind", helper, "/slopbox", "--", "/bin/sh", "-c", SCRIPT, "sh", file_system, words,
        ]  # fmt: skip
        done = subprocess.run(list(map(str, box)), capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.mark.parametrize("file_system", ["tmpfs", "ramfs"])
def test_folders_of_the_submission_can_be_removed_and_made_anew(workspace, file_system):
    assert workspace(file_system, "rm -r inner && mkdir inner && ls inner && stat -c %a private") == "640\n"


def test_the_copy_has_what_the_layers_have(workspace):
    listing = "find . ! -path ./.scbench | sort"
    seen = workspace("tmpfs", listing)
    assert "./inner/of_setup" in seen
    assert seen == workspace("ramfs", listing)


def test_holes_of_a_file_take_no_memory(workspace):
    assert workspace("ramfs", "du --block-size=1M sparse && cmp sparse /lower/sparse") == "1\tsparse\n"
