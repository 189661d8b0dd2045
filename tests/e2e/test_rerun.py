"""A stored result evaluated again from the command line, as a whole and one test of it."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess

import pytest
import yaml

from slop_code.evaluation import CorrectnessResults
from tests.command import SLOP_CODE, slop_code
from tests.e2e.conftest import Evaluator
from tests.marks import in_long

pytestmark = pytest.mark.e2e

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
MAIN = "run/words/checkpoint_1/snapshot/main.py"
MINE = {"type": "local", "name": "test", "limits": {"processes": 50}}
ODD = "test_checkpoint_1.py::test_words[d[0] -k x]"


@pytest.fixture(scope="module")
def stored(make_problem, make_submission, evaluate, tmp_path_factory):
    """A run folder with one evaluated checkpoint: never changed, copied by each test."""
    folder = tmp_path_factory.mktemp("stored")
    problem = make_problem(TESTS, config={"name": "words"})
    shutil.copytree(problem.path, folder / "problems" / "words")
    result_folder = folder / "run" / "words" / "checkpoint_1"
    shutil.copytree(make_submission({"main.py": SAYS}), result_folder / "snapshot")
    results = evaluate(problem, result_folder / "snapshot", output_dir=result_folder)
    results.save(result_folder / "evaluation.json")
    (folder / "run" / "environment.yaml").write_text(yaml.safe_dump({"type": "local", "name": "test"}))
    assert [test.status for test in results.tests] == ["passed", "passed", "passed", "passed", "failed"]
    return folder


@pytest.fixture
def again(stored, tmp_path, monkeypatch):
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    shutil.copytree(stored, tmp_path / "copy")
    return tmp_path / "copy"


def rerun(folder, *arguments):
    return slop_code("rerun", "run/words/checkpoint_1", *arguments, "--problems-dir", "problems", cwd=folder)


@pytest.fixture
def started(again, cache):
    """`started("-o", "out")`: a rerun that runs meanwhile, and not beyond the test."""
    with contextlib.ExitStack() as stack:

        def start(*arguments):
            ours, theirs = os.pipe()
            stack.callback(os.close, ours)
            process = subprocess.Popen(
                [SLOP_CODE, "rerun", "run/words/checkpoint_1", *arguments, "--problems-dir", "problems"],
                cwd=again,
                stdin=subprocess.DEVNULL,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
            os.close(theirs)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return Evaluator(process, ours, cache)

        yield start


def files(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_an_unchanged_submission_has_the_same_statuses(again):
    before = files(again)
    done = rerun(again)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "THE SAME: statuses and verdicts")
    assert done.stdout.splitlines()[0] == "words checkpoint_1: 4 of 5 tests passed before, 4 of 5 now"
    assert "differ" not in done.stdout
    assert files(again) == before


@pytest.mark.long
def test_another_submission_environment_and_file_for_the_result(again):
    (again / MAIN).write_text("print('LOUD')\n")
    (again / "other.yaml").write_text(yaml.safe_dump({"type": "local", "name": "test", "limits": {"processes": 50}}))
    done = rerun(again, "-e", "other.yaml", "-o", "out", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    changed = {one["test"].partition("::")[2]: (one["old"], one["new"]) for one in document["statuses"]}
    assert (changed["test_says"], changed["test_loud"]) == (("passed", "failed"), ("failed", "passed"))
    assert [one["what"] for one in document["digests"]] == ["submission", "environment"]
    assert (document["flaky"], document["same"], document["versions"]) == (False, False, [])
    assert CorrectnessResults.load(again / "out/evaluation.json").model_dump(mode="json") == document["results"]
    assert (again / "out/.scbench/stream.jsonl").is_file()


@pytest.mark.long
def test_what_changed_by_itself_is_flaky(again):
    path = again / "run/words/checkpoint_1/evaluation.json"
    results = CorrectnessResults.load(path)
    tests = [test.model_copy(update={"status": "failed"}) if test.id == "test_says" else test for test in results.tests]
    results.model_copy(update={"tests": tests}).save(path)
    done = rerun(again)
    assert done.returncode == 1
    assert "  test_checkpoint_1.py::test_says: failed before, passed now" in done.stdout.splitlines()
    last = "DIFFERS with the same inputs: 1 test flaky, or dependent on time or machine"
    assert done.stdout.splitlines()[-1] == last


@pytest.mark.long
def test_one_test_runs_alone(again):
    done = rerun(again, ODD)
    assert done.returncode == 0
    assert "now d[0] -k x\n" in done.stdout
    assert "1 passed" in done.stdout
    assert "test_says" not in done.stdout
    assert f"{ODD}: passed before, passed now" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == "THE SAME: statuses and verdicts"


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "none")])
def test_what_it_prints_is_shown_while_it_runs(again, started, staying, environment_spec, need_docker, sandbox):
    if sandbox == "docker":
        need_docker()
    spec = environment_spec(sandbox=sandbox)
    (again / "env.yaml").write_text(yaml.safe_dump(spec.model_dump(mode="json", exclude_defaults=True)))
    (again / MAIN).write_text(f"import sys\n{staying.first}{SAYS}")
    evaluator = started(ODD, "-e", "env.yaml")
    (process,) = staying.arrived(1)
    evaluator.until("now d[0] -k x\n")
    assert " passed" not in evaluator.said
    staying.let_go(process)
    assert evaluator.end() == 0
    assert f"{ODD}: passed before, passed now" in evaluator.said.splitlines()


@pytest.mark.long
@pytest.mark.parametrize("arguments", [["-o", "out"], [ODD]], ids=["whole", "one test"])
def test_nothing_stored_changes_when_it_is_interrupted(again, started, staying, arguments):
    (again / MAIN).write_text(f"import sys\n{staying.first}{SAYS}")
    before = files(again)
    evaluator = started(*arguments)
    staying.arrived(1)
    evaluator.process.send_signal(signal.SIGINT)
    assert evaluator.end() == 130
    assert files(again) == before
    assert staying.alive() == []


@pytest.mark.long
def test_what_a_test_prints_is_no_control_sequence(again):
    done = rerun(again, "2J")
    assert done.returncode == 0
    assert "now \\x1b[2J\n" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.long
def test_one_test_that_changed(again):
    (again / MAIN).write_text("print('LOUD')\n")
    done = rerun(again, "test_loud", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(one["old"], one["new"], one["message"]) for one in document["statuses"]] == [("failed", "passed", True)]
    assert [one["what"] for one in document["times"]] == ["test_checkpoint_1.py::test_loud"]
    assert "1 passed" in done.stderr
    assert not any(document["results"]["passed"].values())  # one test is no verdict


@pytest.mark.long
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


@pytest.mark.parametrize(("test", "name"), [([], "words checkpoint_1"), ([ODD], ODD)], ids=["whole", "one test"])
def test_after_an_infrastructure_failure_nothing_is_compared(again, test, name):
    setup = {"commands": ["echo no luck; false"], "on_failure": "infrastructure"}
    broken = {"type": "local", "name": "test", "setup": setup}
    (again / "run" / "environment.yaml").write_text(yaml.safe_dump(broken))
    done = rerun(again, *test)
    assert done.returncode == 3
    first, *_, last = done.stdout.splitlines()
    assert first.startswith(f"{name}: there is no verdict now: set-up: `echo no luck; false` exited with 1")
    assert last == "INFRASTRUCTURE FAILURE: nothing to compare with"
    assert " before" not in done.stdout
    document = json.loads(rerun(again, *test, "--json").stdout)
    facts = [document[key] for key in ("same", "same_inputs", "digests", "removed")]
    assert facts == [False, None, [], []]


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "elsewhere"


def alike(done):
    """It was evaluated again, with all that went in before."""
    last = done.stdout.splitlines()[-1:]
    return (done.returncode, last) == (0, ["THE SAME: statuses and verdicts"]) or done.stdout + done.stderr


@pytest.mark.long
def test_a_result_of_a_run_is_enough(again, elsewhere):
    (again / "mine.yaml").write_text(yaml.safe_dump(MINE))
    result = again / "run/words/checkpoint_1"
    before = CorrectnessResults.load(result / "evaluation.json").provenance.digests.environment
    evaluated = slop_code("eval", "run", "--problems-dir", "problems", "-e", "mine.yaml", cwd=again)
    assert evaluated.returncode == 1, evaluated.stderr
    assert CorrectnessResults.load(result / "evaluation.json").provenance.digests.environment != before
    assert alike(slop_code("rerun", result, cwd=elsewhere)) is True
    path = "../copy/run/words/checkpoint_1/evaluation.json"
    assert alike(slop_code("rerun", path, "test_loud", cwd=elsewhere)) is True


@pytest.mark.long
def test_a_result_of_one_snapshot_is_enough(again, elsewhere):
    (again / "mine.yaml").write_text(yaml.safe_dump(MINE))
    words = ["-p", "problems/words", "-c", "1", "-e", "mine.yaml", "-o", "out"]
    evaluated = slop_code("eval-snapshot", "run/words/checkpoint_1/snapshot", *words, cwd=again)
    assert evaluated.returncode == 1, evaluated.stderr
    assert alike(slop_code("rerun", again / "out", cwd=elsewhere)) is True
    shown = slop_code("show", "../copy/out", "d[0]", cwd=elsewhere).stdout.splitlines()[-1]
    program, *command = shlex.split(shown.removeprefix("again: "))
    assert (program, command[-1]) == ("slop-code", ODD)
    assert alike(slop_code(*command, cwd=elsewhere)) is True
