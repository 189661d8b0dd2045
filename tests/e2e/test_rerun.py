"""A stored result evaluated again from the command line, as a whole and one test of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from slop_code.evaluation import CorrectnessResults

pytestmark = pytest.mark.e2e

SLOP_CODE = Path(sys.executable).with_name("slop-code")
TESTS = {
    "test_checkpoint_1.py": """
        import pytest
        def test_says(run): assert run("a").stdout == "a\\n"
        @pytest.mark.parametrize("word", ["b::c", "d[0] -k x", "\\x1b[2J"])
        def test_words(run, word):
            print("now", word)
            assert run(word).stdout == f"{word}\\n"
        def test_loud(run): assert run("--loud").stdout == "LOUD\\n"
    """
}
SAYS = "import sys\nprint(*sys.argv[1:])\n"
ODD = "test_checkpoint_1.py::test_words[d[0] -k x]"


@pytest.fixture(scope="module")
def stored(make_problem, make_submission, evaluate, tmp_path_factory):
    """A run folder with one evaluated checkpoint: never changed, copied by each test."""
    folder = tmp_path_factory.mktemp("stored")
    problem = make_problem(TESTS, config={"name": "words"})
    shutil.copytree(problem.path, folder / "problems" / "words")
    place = folder / "run" / "words" / "checkpoint_1"
    shutil.copytree(make_submission({"main.py": SAYS}), place / "snapshot")
    results = evaluate(problem, place / "snapshot", output_dir=place)
    results.save(place / "evaluation.json")
    (folder / "run" / "environment.yaml").write_text(yaml.safe_dump({"type": "local", "name": "test"}))
    assert [test.status for test in results.tests] == ["passed", "passed", "passed", "passed", "failed"]
    return folder


@pytest.fixture
def again(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "copy")
    return tmp_path / "copy"


def rerun(folder, *arguments, result="run/words/checkpoint_1"):
    argv = [SLOP_CODE, "rerun", result, *arguments]
    if "--problems-dir" not in arguments:
        argv += ["--problems-dir", "problems"]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def files(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same(again):
    before = files(again)
    done = rerun(again)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "THE SAME: statuses and verdicts")
    assert done.stdout.splitlines()[0] == "words checkpoint_1: 4 of 5 tests passed before, 4 of 5 now"
    assert "differ" not in done.stdout
    assert files(again) == before


def test_another_submission_environment_and_file_for_the_result(again):
    (again / "run/words/checkpoint_1/snapshot/main.py").write_text("print('LOUD')\n")
    (again / "other.yaml").write_text(yaml.safe_dump({"type": "local", "name": "test", "limits": {"processes": 50}}))
    done = rerun(again, "-e", "other.yaml", "-o", "out", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    changed = {one["test"].partition("::")[2]: (one["old"], one["new"]) for one in told["statuses"]}
    assert (changed["test_says"], changed["test_loud"]) == (("passed", "failed"), ("failed", "passed"))
    assert [one["what"] for one in told["digests"]] == ["submission", "environment"]
    assert (told["flaky"], told["same"], told["versions"]) == (False, False, [])
    assert CorrectnessResults.load(again / "out/evaluation.json").model_dump(mode="json") == told["results"]
    assert (again / "out/.scbench/stream.jsonl").is_file()


def test_what_changed_by_itself_is_flaky(again):
    path = again / "run/words/checkpoint_1/evaluation.json"
    results = CorrectnessResults.load(path)
    tests = [test.model_copy(update={"status": "failed"}) if test.id == "test_says" else test for test in results.tests]
    results.model_copy(update={"tests": tests}).save(path)
    done = rerun(again)
    assert done.returncode == 1
    assert "  test_checkpoint_1.py::test_says: failed before, passed now" in done.stdout.splitlines()
    last = "DIFFERS, and nothing that went in does: 1 test flaky, or bound to this time and machine"
    assert done.stdout.splitlines()[-1] == last


def test_one_test_runs_alone_and_live(again):
    done = rerun(again, ODD)
    assert done.returncode == 0
    assert "now d[0] -k x\n" in done.stdout
    assert "1 passed" in done.stdout
    assert "test_says" not in done.stdout
    assert f"{ODD}: passed before, passed now" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "THE SAME: statuses and verdicts"


def test_what_a_test_prints_is_no_control_sequence(again):
    done = rerun(again, "2J")
    assert done.returncode == 0
    assert "now \\x1b[2J\n" in done.stdout
    assert "\x1b" not in done.stdout


def test_one_test_that_changed(again):
    (again / "run/words/checkpoint_1/snapshot/main.py").write_text("print('LOUD')\n")
    done = rerun(again, "test_loud", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(one["old"], one["new"], one["message"]) for one in told["statuses"]] == [("failed", "passed", True)]
    assert [one["what"] for one in told["times"]] == ["test_checkpoint_1.py::test_loud"]
    assert "1 passed" in done.stderr
    assert not any(told["results"]["passed"].values())  # one test is no verdict


def test_a_test_that_is_gone(again):
    tests = again / "problems/words/tests/test_checkpoint_1.py"
    tests.write_text(tests.read_text().replace("test_loud", "test_louder"))
    done = rerun(again, "test_loud")
    assert done.returncode == 2
    assert "test_checkpoint_1.py::test_loud is no longer among the tests" in done.stderr
    whole = rerun(again)
    assert whole.returncode == 1
    assert "  test_checkpoint_1.py::test_loud: failed before, not there now" in whole.stdout.splitlines()
    assert "  test_checkpoint_1.py::test_louder: not there before, failed now" in whole.stdout.splitlines()
    assert "the problem's test files, data or assets have changed" in whole.stdout


def test_an_infrastructure_failure(again):
    broken = {"type": "local", "name": "test", "setup": {"commands": ["false"]}}
    (again / "run" / "environment.yaml").write_text(yaml.safe_dump(broken))
    done = rerun(again)
    assert done.returncode == 3
    assert "there is no verdict now: set-up: `false` exited with 1" in done.stdout
