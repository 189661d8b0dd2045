"""Results in a folder of the user's choice: an infrastructure failure replaces no verdict on the same submission."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from slop_code import evaluate, load_results
from slop_code.cli.main import run
from slop_code.errors import UsageError
from slop_code.evaluation import ProblemConfig
from slop_code.execution.cache import Cache
from tests.run_world import interrupt_replacement

TESTS = {"test_checkpoint_1.py": "def test_a(run): assert run().stdout == 'a\\n'\n"}
FAILS = "--tb=no-such-style"
"""pytest refuses it."""


@pytest.fixture(scope="module")
def evaluated(cache, need_bubblewrap, make_problem, make_submission, tmp_path_factory):
    """A problem, a submission and the folder of its verdict, which the tests copy."""
    need_bubblewrap()
    problem, submission = make_problem(TESTS), make_submission({"main.py": "print('a')\n"})
    output = tmp_path_factory.mktemp("verdict") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCBENCH_CACHE_DIR", str(cache.root))
        assert evaluate(submission, problem, 1, "local", output=output).passes()
    return problem.path, submission, output


@pytest.fixture
def problem(evaluated, tmp_path):
    return ProblemConfig.from_yaml(shutil.copytree(evaluated[0], tmp_path / evaluated[0].name))


@pytest.fixture
def submission(evaluated, tmp_path):
    return shutil.copytree(evaluated[1], tmp_path / "submission")


@pytest.fixture
def output(cache, evaluated, monkeypatch, tmp_path):
    """The folder of a verdict."""
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache.root))
    return shutil.copytree(evaluated[2], tmp_path / "out", symlinks=True)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_infrastructure_failure_leaves_a_verdict_and_its_evidence(problem, submission, output, capsys):
    before, attempt = files(output), output / ".scbench/attempt-1"
    interrupt_replacement(output)
    results = evaluate(submission, problem, 1, "local", output=output, pytest_args=[FAILS])
    assert results.infrastructure_failure
    assert load_results(attempt) == results
    snapshot = [str(submission), "-p", str(problem.path), "-e", "local", "-o", str(output)]
    assert run(["eval-snapshot", *snapshot, "-c", "1", f"--pytest-arg={FAILS}"]) == 3
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1].startswith("INFRASTRUCTURE FAILURE: no verdict")
    assert f"{output}/evaluation.json keeps its verdict: not looked at again" in shown.err
    assert f"what that left is in {attempt}" in shown.err
    assert run(["rerun", str(attempt), "--snapshot", *snapshot, "--json"]) == 3
    again = capsys.readouterr()
    assert json.loads(again.out)["results"]["infrastructure_failure"]
    assert "keeps its verdict" in again.err
    after = files(output)
    assert {name: content for name, content in after.items() if "attempt-1" not in name} == before
    assert b"no-such-style" in after[".scbench/attempt-1/pytest.log"]
    evaluate(submission, problem, 1, "local", output=output)
    assert not attempt.exists()


def test_a_verdict_on_another_submission_is_replaced(problem, submission, output):
    (submission / "main.py").write_text("print('b')\n")
    results = evaluate(submission, problem, 1, "local", output=output, pytest_args=[FAILS])
    assert results.infrastructure_failure
    assert load_results(output) == results


def test_a_mistake_in_changed_tests_leaves_the_verdict(problem, submission, output):
    before = load_results(output)
    (problem.path / "tests/test_checkpoint_1.py").write_text("import no_such_module\n")
    results = evaluate(submission, problem, 1, "local", output=output)
    assert results.infrastructure_failure
    assert load_results(output) == before
    assert load_results(output / ".scbench/attempt-1") == results


def test_a_part_of_the_tests_replaces_no_verdict(problem, submission, output, capsys):
    before = files(output)
    interrupt_replacement(output)
    with pytest.raises(UsageError, match="has a verdict, which a part of the tests must not replace"):
        evaluate(submission, problem, 1, "local", output=output, pytest_args=["-k", "a"])
    snapshot = [str(submission), "-p", str(problem.path), "-e", "local", "-o", str(output)]
    assert run(["eval-snapshot", *snapshot, "-c", "1", "--group", "Core"]) == 2
    assert "must not replace" in capsys.readouterr().err
    assert files(output) == before


@pytest.mark.e2e
def test_a_finished_result_is_kept_where_its_folder_has_no_room(
    cache, problem, submission, capsys, unshared, tmp_path, monkeypatch
):
    """A disk of 16 KB that only the evaluation sees; no other test replaces the last result of the cache meanwhile."""
    own = Cache.at(tmp_path / "cache")
    for part in ("tests", "tools", "uv"):
        (own.root / part).symlink_to(cache.root / part)
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(own.root))
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size=16k none {disk} && head -c 12000 /dev/zero > {disk}/rest && exec "$@"'
    command = [sys.executable, "-m", "slop_code", "eval-snapshot", submission, "-p", problem.path, "-c", "1"]
    command += ["-e", "local", "-o", disk / "out"]
    done = subprocess.run([*unshared, "sh", "-c", script, "sh", *command], capture_output=True, text=True)
    assert done.returncode == 3
    assert "No space left on device; it is kept as the last result, which `slop-code show` prints\n" in done.stderr
    assert run(["show"]) == 0
    shown = capsys.readouterr()
    assert "PASSED (all-cases): 1 of 1 tests passed" in shown.out
    assert str(submission) in shown.err
