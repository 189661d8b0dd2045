"""Submissions as file systems can hold them and nobody expects: judged or refused, and never changed."""

import hashlib
import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from slop_code.errors import SubmissionError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.execution.submission import tree_digest
from tests.marks import in_long

pytestmark = pytest.mark.e2e

MAIN = """
    import os

    for name in sorted(os.listdir("odd")):
        print(name, len(os.listdir(os.fsencode(f"odd/{name}"))))
"""
COUNTS = {
    "dependency_files": 0, "names": 8, "loops": 4, "links_outside": 4, "special_files": 2, "unreadable": 2,
    "many_files": 3_000, "deep": 1, "sparse": 1, "modes": 4,
}  # fmt: skip
TESTS = """
    def test_counts(run):
        assert run().stdout == {expected!r}
"""


def names(odd):
    for name in [b"caf\xe9", b"\xff\xfe", b"new\nline", b"-rf", b" ", b"\x1b[2J", b"a" * 255, "ü".encode()]:
        (odd / os.fsdecode(name)).write_bytes(name)


def loops(odd):
    (odd / "self").symlink_to("self")
    (odd / "up").symlink_to("..")
    (odd / "ping").symlink_to("pong")
    (odd / "pong").symlink_to("ping")


def links_outside(odd):
    for name, target in [("etc", "/etc"), ("root", "/"), ("above", "../../../.."), ("nowhere", "/no/such/file")]:
        (odd / name).symlink_to(target)


def special_files(odd):
    os.mkfifo(odd / "pipe")
    folder = os.open(odd, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{folder}/socket")
    finally:
        os.close(folder)


def unreadable(odd):
    (odd / "file").write_text("secret")
    (odd / "file").chmod(0)
    (odd / "folder").mkdir()
    (odd / "folder" / "inner").write_text("secret")
    (odd / "folder").chmod(0)


def many_files(odd):
    for number in range(3_000):
        (odd / f"{number}").touch()


def deep(odd, depth=300):
    folder = os.open(odd, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 60, dir_fd=folder)
        inner = os.open("d" * 60, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


def sparse(odd):
    with (odd / "large").open("wb") as file:
        file.truncate(1 << 28)  # more than a box may fill: holes do not count


def modes(odd):
    for mode in (0o777, 0o4755, 0o1777, 0o200):
        (odd / f"{mode:o}").touch()
        (odd / f"{mode:o}").chmod(mode)


def dependency_files(odd):
    submission = odd.parents[1]
    os.mkfifo(submission / "requirements.txt")
    (submission / "pyproject.toml").symlink_to("/dev/zero")


TREES = [dependency_files, names, loops, links_outside, special_files, unreadable, many_files, deep, sparse, modes]


def fingerprint(root):
    """Names, kinds, modes, times of change and small contents; by descriptors, so that no path is too long."""
    digest = hashlib.sha256()
    for _, folders, files, folder in os.fwalk(root):
        folders.sort()
        for name in sorted([*folders, *files]):
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            digest.update(repr((name, info.st_mode, info.st_size, info.st_nlink, info.st_mtime_ns)).encode())
            if stat.S_ISREG(info.st_mode) and info.st_size < 1 << 20 and info.st_mode & stat.S_IRUSR:
                with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def problem(make_problem):
    return make_problem({"test_checkpoint_1.py": "def test_runs(run): assert run().returncode == 0"})


@pytest.fixture
def submission(make_submission):
    folder = make_submission({"main.py": MAIN})
    (folder / "odd").mkdir()
    yield folder
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "none")])
def test_odd_trees_are_judged(make_problem, submission, evaluate, sandbox):
    """All in one, as each is among the attacks; where there are no boxes, what cannot be copied is left out."""
    closed = {unreadable, modes} if os.geteuid() != 0 else set()
    trees = [tree for tree in TREES if sandbox != "none" or tree not in {deep, *closed}]
    for tree in trees:
        (submission / "odd" / tree.__name__).mkdir()
        tree(submission / "odd" / tree.__name__)
    names = sorted(tree.__name__ for tree in trees)
    expected = "".join(f"{name} {COUNTS[name]}\n" for name in names)
    problem = make_problem({"test_checkpoint_1.py": TESTS.format(expected=expected)})
    before = fingerprint(submission)
    results = evaluate(problem, submission, sandbox=sandbox)
    assert fingerprint(submission) == before
    assert results.infrastructure_failure_reason is None
    assert results.passed["all-cases"], [test.failure_message for test in results.tests]
    assert results.provenance.digests.submission


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_tree_is_an_infrastructure_failure_without_boxes(problem, submission, evaluate):
    unreadable(submission / "odd")
    assert "cannot be copied" in evaluate(problem, submission, sandbox="none").infrastructure_failure_reason


def test_a_tree_that_cannot_be_copied_is_a_verdict(problem, submission, evaluate):
    """Boxes need no copy; without them its paths are longer than the system takes."""
    deep(submission / "odd")
    results = evaluate(problem, submission, sandbox="none")
    reason = "set-up failed: the tree has a path of more than 3000 bytes, and without a sandbox it is copied"
    assert (results.setup_failure, results.infrastructure_failure) == (reason, False)


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "none")])
def test_a_tree_that_is_too_deep_is_a_verdict(problem, submission, evaluate, sandbox):
    deep(submission / "odd", 600)
    before = fingerprint(submission)
    results = evaluate(problem, submission, sandbox=sandbox)
    assert fingerprint(submission) == before
    assert results.setup_failure == "set-up failed: the tree has folders nested more than 400 deep"
    assert [(test.status, test.failure_message) for test in results.tests] == [("failed", results.setup_failure)]
    assert results.provenance.digests.submission == tree_digest(submission)
    assert not results.infrastructure_failure


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("missing", Path.exists, "there is no such folder"),
        ("file", Path.touch, "not a folder"),
        ("loop", lambda path: path.symlink_to(path.name), "cannot be read|there is no such folder"),
        ("pipe", os.mkfifo, "not a folder"),
    ],
)
def test_a_submission_that_is_no_folder_is_refused(problem, evaluate, tmp_path, name, make, message):
    make(tmp_path / name)
    with pytest.raises(SubmissionError, match=message):
        evaluate(problem, tmp_path / name)


def test_a_link_to_a_folder_is_accepted(problem, make_submission, evaluate, tmp_path):
    folder = make_submission({"main.py": MAIN, "odd/folder/file": ""})
    (tmp_path / "link").symlink_to(folder)
    assert evaluate(problem, tmp_path / "link").passed["all-cases"]


TESTS_OF_ODD_NAMES = """
    import importlib.util, os

    import pytest

    HERE = os.path.dirname(__file__)
    SPEC = importlib.util.spec_from_file_location("code", os.path.join(HERE, os.fsdecode(b"c\\xe9.py")))
    SPEC.loader.exec_module(importlib.util.module_from_spec(SPEC))

    @pytest.mark.parametrize("name", os.listdir(os.path.join(HERE, "data")))
    def test_reads(run, name):
        assert run(os.path.join(HERE, "data", name)).stdout == "read"

    @pytest.mark.parametrize("name", os.listdir(os.path.join(HERE, "data")))
    def test_fails(name):
        assert name == "other", name
"""
READ = "import sys; open(sys.argv[1]).close(); print('read', end='')"


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker")])
def test_tests_with_names_that_are_not_utf8_are_run(sandbox, evaluate, make_problem, make_submission):
    """Names of code, of data, of a submission's file, and of tests that take theirs from files."""
    problem = make_problem({"test_checkpoint_1.py": TESTS_OF_ODD_NAMES})
    submission = make_submission({"main.py": READ})
    (problem.path / "tests/data").mkdir()
    (problem.path / "tests/data/\udce9.txt").write_text("no code")
    for path in (problem.path / "tests/c\udce9.py", submission / "\udce9.py"):
        path.write_text("given = 1")
    for _ in range(3):  # the last one with a judge that was forked, where there are templates
        results = evaluate(problem, submission, sandbox=sandbox)
        assert results.infrastructure_failure_reason is None
        assert [test.status for test in results.tests] == ["passed", "failed"]
        assert CorrectnessResults.model_validate_json(results.model_dump_json()) == results
