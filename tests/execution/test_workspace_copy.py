"""The workspace where a tmpfs has no attributes for an overlay, as before Linux 6.6: a copy.

A ramfs has no such attributes either, and ignores limits of its size. That the disk limit holds after a copy is shown
by `make vm TARGET=debian12-x86_64`, which runs the contract suite of the boxes on Linux 6.1.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from slop_code.execution.bubblewrap import bubblewrap_sandbox, bwrap_binary
from slop_code.execution.bubblewrap.box_arguments import outer_arguments
from slop_code.execution.bubblewrap.bubblewrap_sandbox import WORKSPACE_TOO_LARGE
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.environment import MAX_WORKSPACE

pytestmark = pytest.mark.e2e

SPARSE_BYTES = 16 << 20
OTHER_ENTRIES = 5
"""Of the layers, in addition to the sparse file: two folders and three files of less than a page."""

CLOSED_USER = 4711
"""Owner of files that the boxes' user may not read."""

SCRIPT = """
mkdir /scratch /ws
mount -t $1 none /scratch
exec /slopbox init --mkdir /scratch/up/.evaluation_tests 755 --mkdir /scratch/work 755 \\
  --workspace /upper:/lower /scratch /ws "$3" --judge /bin/sh -c "cd /ws; $2"
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

    def run(file_system: str, words: str, max_bytes: int = MAX_WORKSPACE, status: int = 0) -> str:
        box = [
            bwrap_binary.bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--unshare-pid",
            "--die-with-parent", *system_arguments(), "--proc", "/proc", "--dev", "/dev",
            "--ro-bind", tmp_path / "lower", "/lower", "--ro-bind", tmp_path / "upper", "/upper",
            "--ro-bind", helper, "/slopbox", "--", "/bin/sh", "-c", SCRIPT, "sh", file_system, words, max_bytes,
        ]  # fmt: skip
        done = subprocess.run(list(map(str, box)), capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stderr) == (status, "")
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
@pytest.mark.parametrize("file_system", ["tmpfs", "ramfs"])
def test_what_another_user_closed_stays_closed(workspace, tmp_path, file_system):
    (tmp_path / "lower/closed").mkdir()
    (tmp_path / "lower/closed/file").write_text("unseen")
    (tmp_path / "lower/secret").write_text("unseen")
    for name, mode in (("closed/file", 0o644), ("closed", 0o700), ("secret", 0o600)):
        os.chown(tmp_path / "lower" / name, CLOSED_USER, CLOSED_USER)
        (tmp_path / "lower" / name).chmod(mode)
    reads = "cat secret || cat closed/file || ls closed || cat private"
    seen = workspace(file_system, f"exec /slopbox restrict 0 0 -- /bin/sh -c '{reads}' 2>&1")
    assert seen.count("Permission denied") == 3
    assert seen.endswith("kept")


def test_a_workspace_beyond_the_limit_is_not_copied(workspace):
    needed = 2 * SPARSE_BYTES + OTHER_ENTRIES * os.sysconf("SC_PAGE_SIZE")
    assert workspace("ramfs", "cat private", needed) == "kept"
    assert workspace("ramfs", "cat private", needed - 1, WORKSPACE_TOO_LARGE) == ""
    assert workspace("tmpfs", "cat private", 0) == "kept"


def test_a_workspace_that_was_too_large_fails_every_test(evaluate, make_problem, make_submission, monkeypatch):
    def arguments(job, *others):
        return outer_arguments(job, *others) if job.collecting else ["/bin/sh", "-c", f"exit {WORKSPACE_TOO_LARGE}"]

    problem = make_problem({"test_checkpoint_1.py": "def test_it(): pass"})
    with monkeypatch.context() as patch:
        patch.setattr(bubblewrap_sandbox, "outer_arguments", arguments)
        results = evaluate(problem, make_submission({"main.py": ""}))
    assert results.infrastructure_failure_reason is None
    assert results.setup_failure.startswith("set-up failed: the workspace has more than 2 GiB")
    assert [test.status for test in results.tests] == ["failed"]
