"""Lock of a problem's test_dependencies."""

from __future__ import annotations

import pytest

from slop_code.authoring.check.check_problem import CheckListener, CheckRequest, check_problem
from slop_code.errors import ConfigError
from slop_code.evaluation.problem.dependency_lock import lock_path, read_test_lock

DEPENDENCIES = ["six<1.17"]
HEADER = "# Locked test_dependencies of this problem, written by `slop-code problems check --lock`\n# for: six<1.17\n"
HASH = "--hash=sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"
OLDER = f"{HEADER}six==1.15.0 \\\n    --hash=sha256:8b74bedcbbbaca38ff6d7491d76f2b06b3592611af620f8426e82dddb04a5ced\n"
TESTS = {"test_checkpoint_1.py": "import six\n\ndef test_it():\n    assert six.__version__ == EXPECTED\n"}


@pytest.fixture
def problem(make_problem):
    """`problem("1.16.0", "text of the lock")`: its test asks for that version of six."""

    def make(version="1.16.0", lock=None, dependencies=DEPENDENCIES):
        tests = {name: text.replace("EXPECTED", repr(version)) for name, text in TESTS.items()}
        files = {} if lock is None else {"tests/requirements.lock": lock}
        return make_problem(tests, config={"test_dependencies": dependencies}, files=files)

    return make


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        (f"six==1.16.0 {HASH}\n", "was not written for the test_dependencies"),
        (f"{HEADER.replace('<1.17', '')}six==1.16.0 {HASH}\n", "was not written for the test_dependencies"),
        (f"{HEADER}six==1.16.0\n", "is not a version with hashes"),
        (f"{HEADER}six {HASH}\n", "is not a version with hashes"),
        (f"{HEADER}--index-url x\nsix==1.16.0 {HASH}\n", "is not a version with hashes"),
        (f"{HEADER}six @ file:///six.whl {HASH}\n", "is not a version with hashes"),
        (b"\xff", "cannot be read"),
    ],
)
def test_a_damaged_lock_is_a_configuration_error(problem, lock, message):
    with pytest.raises(ConfigError, match=message):
        read_test_lock(problem(lock=lock))


def test_a_lock_is_read(problem):
    assert read_test_lock(problem(lock=OLDER)) == OLDER
    assert read_test_lock(problem()) is None
    assert read_test_lock(problem(lock="", dependencies=[])) is None


def test_evaluations_use_the_lock(problem, evaluate, make_submission):
    submission = make_submission({"main.py": ""})
    locked = evaluate(problem("1.15.0", OLDER), submission, sandbox="none")
    assert [test.status for test in locked.tests] == ["passed"], locked.infrastructure_failure_reason
    assert (locked.provenance.test_dependencies["six"], len(locked.provenance.test_lock)) == ("1.15.0", 64)
    assert not [warning for warning in locked.warnings if "resolved on" in warning]
    resolved = evaluate(problem("1.16.0"), submission, sandbox="none")
    assert (resolved.provenance.test_dependencies["six"], resolved.provenance.test_lock) == ("1.16.0", None)
    [warning] = [warning for warning in resolved.warnings if "resolved on" in warning]
    assert warning.startswith("test_dependencies (six<1.17) were resolved on 2")


@pytest.mark.long
def test_forked_judges_use_the_lock_of_their_own_problem(problem, evaluate, make_submission, need_bubblewrap):
    need_bubblewrap()
    submission = make_submission({"main.py": ""})
    for version, lock in [("1.15.0", OLDER), ("1.15.0", OLDER), ("1.16.0", None)]:
        results = evaluate(problem(version, lock), submission, sandbox="bubblewrap")
        assert [test.status for test in results.tests] == ["passed"], results.infrastructure_failure_reason


def test_a_package_that_does_not_exist_is_a_mistake_of_the_problem(problem, cache, evaluate, make_submission, tmp_path):
    own = problem(dependencies=["six==99.1"])
    path = tmp_path / "environment.yaml"
    path.write_text("type: local\nname: bare\nisolation: none\n")
    listener = CheckListener(lambda _: None, lambda *_: None, lambda *_: None, lambda _: None)
    request = CheckRequest(steps=["layout", "reference"], environment=str(path), lock=True)
    report = check_problem(own.path, request, listener)
    [finding] = report.findings
    assert (finding.location.file, finding.message[:36]) == ("config.yaml", "test_dependencies: the package index")
    assert (report.broken, [step.name for step in report.undone]) == ([], ["reference"])
    with pytest.raises(
        ConfigError, match=r"config.yaml: test_dependencies: the package index has no version of six==99.1"
    ):
        evaluate(own, make_submission({"main.py": ""}), sandbox="none")


def test_a_check_writes_a_lock_that_is_used(problem, cache, tmp_path):
    own, changed = problem(), []
    path = tmp_path / "environment.yaml"
    path.write_text("type: local\nname: bare\nisolation: none\n")
    listener = CheckListener(lambda _: None, lambda *_: None, lambda *_: None, changed.append)
    request = CheckRequest(steps=["layout"], environment=str(path), lock=True)
    check_problem(own.path, request, listener)
    assert changed == [f"{lock_path(own)}: written; every evaluation uses these versions of test_dependencies"]
    text = read_test_lock(own)
    assert "six==1.16.0" in text
    assert HASH in text
    assert "://" not in text
