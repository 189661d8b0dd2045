"""Boxes of an evaluator that is root run as a user of the host that nobody else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slop_code.execution.bubblewrap.box_arguments import HOME, mount_error
from slop_code.execution.bubblewrap.box_user import FIRST_UID, box_user, ids_in_force
from slop_code.execution.bubblewrap.bwrap_binary import bwrap
from slop_code.execution.bubblewrap.closed_folders import can_map, open_paths
from slop_code.execution.bubblewrap.delegation import LEAF
from slop_code.execution.bubblewrap.root_groups import group_of_boxes
from slop_code.execution.bubblewrap.system_mounts import system_arguments

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root's boxes have another user")
UNIFIED = Path("/sys/fs/cgroup/unified")

TESTS = {
    "test_checkpoint_1.py": """
    import os
    from pathlib import Path


    def test_the_system_is_not_the_submissions_own(run):
        seen = run("import os; print(os.getuid(), os.stat('/usr').st_uid, os.stat('.').st_uid)").stdout
        assert seen == "1000 65534 1000\\n"
        assert (os.getuid(), os.stat("/usr").st_uid) == (1000, 65534)


    def test_both_change_what_the_other_made(run, tmp_path):
        run("open('private', 'a').write(' changed'); import os; os.makedirs('made/inner')")
        assert Path("private").read_text() == "closed changed"
        Path("made/inner").rmdir()
        (tmp_path / "mine").write_text("one")
        run(f"import os; os.rename({str(tmp_path / 'mine')!r}, {str(tmp_path / 'theirs')!r})")
        assert (tmp_path / "theirs").read_text() == "one"
        (tmp_path / "theirs").unlink()
    """
}


@pytest.fixture
def user(empty_cache):
    if (user := box_user(empty_cache.root)) is None:
        pytest.skip("the file system, or the kernel, maps no users of mounts")
    return user


@ROOT
@pytest.mark.e2e
def test_the_user_is_no_other_evaluators(user):
    assert user == FIRST_UID + os.getpid()
    assert ids_in_force(user) == "unprivileged"


@ROOT
@pytest.mark.parametrize("warm", [False, True])
def test_judge_and_subject_are_not_the_hosts_root(user, make_problem, make_submission, evaluate, warm):
    submission = make_submission({"main.py": "import sys; exec(sys.argv[1])", "private": "closed"})
    (submission / "private").chmod(0o600)
    submission.chmod(0o700)
    problem = make_problem(TESTS)
    for _ in range(3 if warm else 1):
        results = evaluate(problem, submission)
        assert [test.failure_message for test in results.tests] == [None, None]
        assert results.isolation["ids"] == "unprivileged"


@ROOT
@pytest.mark.e2e
def test_a_kept_overlay_is_written_in_a_closed_folder(user, tmp_path):
    """Both folders of its upper layer have to be on one mount."""
    closed = tmp_path / "closed"
    for name in ("upper", "work", "lower"):
        (closed / name).mkdir(parents=True)
    closed.chmod(0o700)
    layers = ["--overlay-src", str(closed / "lower"), "--overlay", str(closed / "upper"), str(closed / "work"), "/kept"]
    box = [bwrap(), "--unshare-user", *system_arguments(), *layers, "--", "/bin/sh", "-c", "echo made > /kept/file"]
    done = subprocess.run(open_paths(box, user), capture_output=True, text=True)
    assert done.stderr == ""
    assert (closed / "upper/file").stat().st_uid == 0


@pytest.mark.e2e
def test_not_every_file_system_can_have_other_owners():
    assert not can_map("/proc")


@pytest.mark.parametrize(("user", "own", "words"), [(1, 0, "unprivileged"), (None, 0, "root"), (None, 5, "evaluator")])
def test_the_result_says_whose_user_it_is(monkeypatch, user, own, words):
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert ids_in_force(user) == words


@pytest.fixture
def unified():
    if not (UNIFIED / "cgroup.procs").exists():
        pytest.skip("there is no tree of version 2 beside that of version 1")


@ROOT
@pytest.mark.e2e
@pytest.mark.usefixtures("unified")
def test_a_group_that_could_not_be_made_is_tried_again():
    user = FIRST_UID + os.getpid() + 1
    assert group_of_boxes(UNIFIED, user, controllers=("+nothing",)) is None
    assert not list(UNIFIED.glob(f"slop-code.user-{user}-*"))
    assert group_of_boxes(UNIFIED, user, controllers=()).is_dir()


@ROOT
@pytest.mark.e2e
@pytest.mark.usefixtures("unified")
def test_a_command_removes_its_group_at_its_end():
    program = f"""
import sys
from pathlib import Path
from slop_code.__main__ import main
from slop_code.execution.bubblewrap.root_groups import group_of_boxes
group = group_of_boxes(Path({str(UNIFIED)!r}), {FIRST_UID}, controllers=())
print(group, group.is_dir(), flush=True)
sys.argv = ["slop-code", "--version"]
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    group, made, version = done.stdout.split(maxsplit=2)
    assert (made, version.startswith("slop-code"), done.returncode) == ("True", True, 0)
    assert not Path(group).exists()


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("/usr", None),
        ("/home/agent-2/python", None),
        ("/tmp/python", "where submissions write; use one outside of /tmp"),
        ("/workspace/python", "where submissions write; use one outside of /workspace"),
        (f"{HOME}/.local/share/uv/python/cpython-3.12", f"where submissions write; use one outside of {HOME}"),
        ("/", "holds the home folder"),
    ],
)
def test_an_interpreter_is_refused_in_folders_that_boxes_cover(prefix, message):
    error = mount_error(prefix)
    assert error is None if message is None else message in error


@ROOT
@pytest.mark.e2e
@pytest.mark.usefixtures("unified")
def test_boxes_enter_groups_of_version_2_from_the_group_in_which_they_begin(helper, tmp_path):
    user = FIRST_UID + os.getpid()
    group = group_of_boxes(UNIFIED, user, controllers=())
    assert group == group_of_boxes(UNIFIED, user)
    (group / "slop-code-1").mkdir()
    os.chown(group / "slop-code-1/cgroup.procs", user, user)
    copy_for_all = shutil.copy(helper, tmp_path)  # the checkout may be closed to the user
    os.chmod(copy_for_all, 0o755)
    program = os.open(copy_for_all, os.O_RDONLY)
    join = [f"/proc/self/fd/{program}", "join-cgroups", f"{group}/slop-code-1/cgroup.procs", "--"]
    join += ["/bin/cat", "/proc/self/cgroup"]
    command = [helper, "open-paths", "--as", str(user), "--map", str(tmp_path), "--", *join]
    begin = [helper, "join-cgroups", f"{group}/{LEAF}/cgroup.procs", "--"]
    try:
        assert "cannot enter" in subprocess.run(command, capture_output=True, text=True, pass_fds=[program]).stderr
        done = subprocess.run([*begin, *command], capture_output=True, text=True, pass_fds=[program])
        assert f"0::/{group.name}/slop-code-1\n" in done.stdout
    finally:
        os.close(program)
        (group / "slop-code-1").rmdir()
