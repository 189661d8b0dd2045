"""`parallel: auto`: divided where `problems check` has proven it safe, serial everywhere else."""

import json
import os
import select
import shutil
import signal
import subprocess
import time
import uuid
from textwrap import dedent

import pytest

from slop_code.cli.main import run
from slop_code.evaluation import CorrectnessResults, PytestRunner
from slop_code.evaluation.parallel.parallel_proof import (
    ParallelProofs,
    is_proven,
    proof_digest,
    proofs_path,
    read_proofs,
)
from slop_code.evaluation.parallel.test_durations import load_durations
from slop_code.evaluation.problem.problem_contents import inputs_of
from slop_code.evaluation.result_files.evidence_files import ROSTER
from slop_code.evaluation.roster import Roster
from slop_code.execution import processors
from slop_code.execution.environment import load_environment
from slop_code.execution.processors import available_cpus, processor_places
from slop_code.runs.jobs.job_records import Submission
from slop_code.runs.result_cache import ResultCache
from slop_code.runs.result_cache_key import duration_key
from slop_code.runs.run_layout import RESULT_FILE
from tests.command import SLOP_CODE
from tests.e2e.test_hangs import left_alive
from tests.e2e.test_parallel import PATIENCE_S, comparable, messages, several, subjects

FEW = "the tests are too few or too short to be divided"
NO_PROOF = "parallel.json has no proof for these tests"
ECHO = "import sys\n\nprint(*sys.argv[1:])\n"
INDEPENDENT = """
    import pytest

    @pytest.mark.parametrize("number", range(12))
    def test_says(run, number): assert run("number", number).stdout == f"number {number}\\n"

    @pytest.mark.error
    def test_says_nothing(run): assert run().stdout == "\\n"

    class TestInOrder:
        said = []
        def test_first(self, run): self.said.append(run("a").stdout)
        def test_second(self): assert self.said == ["a\\n"]

    def test_fails_with_others(run): assert run("a", "b").stdout.split() == ["a", "b"]
"""
QUICK = "".join(f"def test_{number}(): pass\n" for number in range(16))
"""16 tests, as in INDEPENDENT, none of which calls the submission."""

ON_EACH_OTHER = """
    import pytest

    said = []

    @pytest.mark.parametrize("number", range(12))
    def test_says(run, number): said.append(run("number", number).stdout)

    def test_needs_the_others(): assert len(said) == 12
"""
ALL_TOGETHER = """
    import pytest

    said = []

    @pytest.fixture(scope="session", autouse=True)
    def every_test_was_here():
        yield
        assert len(said) == 12

    @pytest.mark.parametrize("number", range(12))
    def test_says(run, number): said.append(run("number", number).stdout)
"""
"""The order does not matter, the number of tests in a process does."""

pytestmark = [pytest.mark.e2e, several]


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path_factory):
    """Other sessions of tests may share the cache, and take its places."""
    monkeypatch.setattr(processors, "PLACES", str(tmp_path_factory.mktemp("places")))


@pytest.fixture
def auto(make_problem):
    """`auto(tests, proven=True)`: a problem with `parallel: auto` and a reference, of which no durations are known."""

    def make(tests, *, proven, solution=ECHO):
        files = {"solutions/checkpoint_1/main.py": solution, "checkpoint_1.md": "Prints its arguments.\n"}
        own = f"{dedent(tests)}\n# {uuid.uuid4().hex}\n"
        problem = make_problem({"test_checkpoint_1.py": own}, config={"parallel": "auto", "timeout": 600}, files=files)
        if proven:
            inputs = inputs_of(problem, problem.checkpoint(1))
            digest = proof_digest(inputs.tests_digest, inputs.config_digest, problem.unit)
            ParallelProofs(checkpoints={"checkpoint_1": digest}).save(proofs_path(problem))
        return problem

    return make


def reference(problem):
    return problem.path / "solutions" / "checkpoint_1"


def pairs(results):
    return results.isolation["pairs"], results.isolation.get("pairs_reason")


def test_proven_tests_are_divided_with_equal_results(auto, make_submission, evaluate, cache, tmp_path):
    problem = auto(INDEPENDENT, proven=True)
    submission = make_submission({"main.py": "import sys\nprint(*sys.argv[1:][:2][::-1])\n"})  # most tests fail
    both = evaluate(problem, submission, output_dir=tmp_path)
    one = evaluate(problem.model_copy(update={"parallel": 1}), submission)
    assert (pairs(both), pairs(one)) == ((min(available_cpus(), 3), None), (1, None))
    assert comparable(both) == comparable(one)
    assert messages(both) == messages(one)
    assert {test.status for test in both.tests} == {"passed", "failed"}
    assert (tmp_path / ".scbench" / "2" / "pytest.log").exists()
    seconds = load_durations(cache, both.provenance.digests.tests)
    assert list(seconds) == [test.nodeid for test in both.tests]


def test_what_cannot_be_divided_says_why(auto, evaluate):
    """A changed test is serial until the next proof."""
    problem = auto(INDEPENDENT, proven=True)
    alone = evaluate(problem, reference(problem), sandbox="none")
    assert pairs(alone) == (1, "with isolation: none all pairs would share one network")
    first = evaluate(problem, reference(problem), pytest_args=["-x"])
    assert pairs(first) == (1, "with these pytest arguments tests may depend on each other")
    with (problem.path / "tests" / "test_checkpoint_1.py").open("a") as file:
        file.write("\ndef test_new(): pass\n")
    changed = evaluate(problem, reference(problem))
    assert (pairs(changed), changed.passed["all-cases"]) == ((1, NO_PROOF), True)
    assert changed.warnings == []


def test_a_seed_divides_the_tests_at_random(auto, cache, templates, need_bubblewrap, environment_spec, tmp_path):
    """So that the repeated runs of a check are not all divided in the same way."""
    need_bubblewrap()
    problem = auto(QUICK, proven=False).model_copy(update={"parallel": 2, "parallel_by": "test"})
    spec, divided = environment_spec(None, sandbox="bubblewrap"), []
    for seed in (None, 1, 2):
        output = tmp_path / str(seed)
        options = {"output_dir": output, "cache": cache, "templates": templates, "repeat_starved": False, "seed": seed}
        assert (
            PytestRunner(problem, problem.checkpoint(1), spec, reference(problem), **options).run().passed["all-cases"]
        )
        roster = Roster.from_json((output / ".scbench" / ROSTER).read_text())
        divided.append(tuple(entry.pair for entry in roster.entries))
    assert len(set(divided)) == 3


def test_processors_that_other_evaluations_use_are_left_alone(auto, evaluate, cache):
    problem = auto(QUICK, proven=True)
    with processor_places(cache) as take_places:
        assert take_places(available_cpus()) == available_cpus()
        results = evaluate(problem, reference(problem))
    assert (pairs(results), results.passed["all-cases"]) == ((1, "no other processor was free"), True)


def checked(problem, capsys, *options):
    words = ["problems", "check", str(problem.path), "--step", "stability", "--repeat", "1", "--json", *options]
    status = run(words)
    [report] = json.loads(capsys.readouterr().out)["problems"]
    return status, [finding["rule"] for finding in report["findings"]], report["steps"][0]


def test_the_check_writes_the_proof_that_an_evaluation_needs(auto, evaluate, cache, need_bubblewrap, capsys):
    need_bubblewrap()
    problem = auto("def test_a(run): assert run('a').stdout == 'a\\n'\ndef test_b(): pass\n", proven=False)
    inputs = inputs_of(problem, problem.checkpoint(1))
    assert not is_proven(problem, "checkpoint_1", inputs.tests_digest, inputs.config_digest)
    status, findings, step = checked(problem, capsys)
    assert (status, findings) == (0, [])
    assert step["summary"][-1] == "checkpoint_1: its tests may run in parallel"
    assert is_proven(problem, "checkpoint_1", inputs.tests_digest, inputs.config_digest)
    assert pairs(evaluate(problem, reference(problem))) == (1, FEW)


@pytest.mark.long
@pytest.mark.parametrize(
    ("tests", "rule"),
    [(ALL_TOGETHER, "parallel-dependent-test"), (ON_EACH_OTHER, "order-dependent-test")],
    ids=["parallel", "order"],
)
def test_tests_that_depend_on_each_other_are_found_and_stay_serial(
    auto, evaluate, cache, need_bubblewrap, capsys, tests, rule
):
    """A proof that was there before is removed."""
    need_bubblewrap()
    problem = auto(tests, proven=True)
    status, findings, step = checked(problem, capsys)
    assert (status, set(findings)) == (1, {rule})
    assert step["summary"][-1].startswith("checkpoint_1: no proof for parallel: ")
    assert read_proofs(problem).checkpoints == {}
    results = evaluate(problem, reference(problem))
    assert (pairs(results), results.passed["all-cases"]) == ((1, NO_PROOF), True)


def snapshots(problem, folder, names="a"):
    """Run folders beside a folder of problems."""
    shutil.copytree(problem.path, folder / "problems" / problem.name)
    for name in names:
        snapshot = folder / name / problem.name / "checkpoint_1" / "snapshot"
        snapshot.mkdir(parents=True)
        (snapshot / "main.py").write_text((reference(problem) / "main.py").read_text() + f"# {name}\n")
    return [folder / name for name in names]


def results_of(problem, folders):
    paths = [folder / problem.name / "checkpoint_1" / RESULT_FILE for folder in folders]
    return [CorrectnessResults.load(path) for path in paths]


def test_the_only_job_of_a_run_with_one_place_has_one_pair(auto, cache, need_bubblewrap, tmp_path):
    need_bubblewrap()
    problem = auto(QUICK, proven=True)
    folders = snapshots(problem, tmp_path)
    assert run(["eval", *map(str, folders), "--problems-dir", str(tmp_path / "problems"), "-j", "1"]) == 0
    [results] = results_of(problem, folders)
    assert (pairs(results), results.passed["all-cases"]) == ((1, "only one pair was allowed at that time"), True)


WAITS = "import sys, time\nif sys.argv[1:2] == ['number']: time.sleep(600)\nprint(*sys.argv[1:])\n"


def test_a_run_never_has_more_pairs_at_work_than_jobs(auto, cache, need_bubblewrap, tmp_path):
    """Of three checkpoints, each allowed more pairs; SIGTERM ends all of them and leaves no result."""
    need_bubblewrap()
    token = f"token-{uuid.uuid4().hex}"
    tests = "".join(f"def test_{number}(run): run('number', {token!r}, timeout=600)\n" for number in range(40))
    problem = auto(tests, proven=True, solution=WAITS)
    folders = snapshots(problem, tmp_path, "abc")
    argv = [SLOP_CODE, "eval", *folders, "--problems-dir", tmp_path / "problems", "-j", "2", "--no-live-progress"]
    counts = set()
    with subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as evaluator:
        descriptor = os.pidfd_open(evaluator.pid)
        try:
            until = time.monotonic() + PATIENCE_S
            while max(counts, default=0) < 2 and time.monotonic() < until:
                assert not select.select([descriptor], [], [], 0.05)[0]
                counts.add(len(subjects(token)))
            counts.update(len(subjects(token)) for _ in range(20))
        finally:
            os.close(descriptor)
            os.killpg(evaluator.pid, signal.SIGTERM)  # the kernel may make one interrupt of two, which ends no job
        evaluator.wait(PATIENCE_S)
    assert max(counts) == 2
    assert left_alive(token) == []
    assert evaluator.returncode == 130
    assert list(tmp_path.rglob(RESULT_FILE)) == []


def test_the_only_job_of_a_run_uses_the_free_places_and_is_not_taken_for_a_short_one(
    auto, cache, need_bubblewrap, tmp_path
):
    """What is kept for the next plan has the sum of its tests, whatever the number of pairs."""
    need_bubblewrap()
    problem = auto(INDEPENDENT, proven=True, solution="import time\ntime.sleep(0.2)\n" + ECHO)
    folders = snapshots(problem, tmp_path)
    assert run(["eval", *map(str, folders), "--problems-dir", str(tmp_path / "problems"), "-j", "2"]) == 0
    [results] = results_of(problem, folders)
    assert (pairs(results), results.passed["all-cases"]) == ((2, None), True)
    environment = load_environment("local")
    submission = Submission(
        problem=problem, checkpoint=problem.checkpoint(1), environment=environment, path=reference(problem)
    )
    kept = ResultCache(cache).expected_duration(duration_key(submission))
    beside_tests = results.duration - results.phases["tests"]
    serial = beside_tests + sum(test.duration_ms for test in results.tests) / 1000
    assert kept == pytest.approx(max(results.duration, serial), rel=1e-4)
