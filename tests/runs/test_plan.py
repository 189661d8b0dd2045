"""The plan: results are up to date by content alone."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace

import pytest
import yaml

from slop_code.errors import UsageError
from slop_code.evaluation.parallel.parallel_proof import ParallelProofs, proof_digest, proofs_path
from slop_code.evaluation.report import Digests
from slop_code.evaluation.result_files.staleness import CHANGED_INPUTS, evaluation_version
from slop_code.evaluation.roster import MAX_PAIRS
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.discover import UNNAMED_RUN, DiscoveredRun
from slop_code.runs.jobs.plan import OVERWRITE, Shard
from slop_code.runs.result_cache_key import NO_RESULT, ExpectedDigests, duration_key, result_cache_key, stale_reason
from slop_code.runs.runs_api import evaluate_run

HELPERS = {
    "problems/words/tests/conftest.py": "", "problems/words/tests/data/in.txt": "in", "problems/words/assets/a": "a",
    "problems/words/tests/test_helpers.py": "",
}  # fmt: skip
OTHER = EnvironmentSpec.model_validate({"type": "local", "name": "other"})
DIGESTS = Digests(submission="s", tests="t", config="c", environment="e", image="i")


@pytest.fixture
def evaluated(world):
    """A run of three checkpoints with a result each."""
    world.write(HELPERS)
    world.problem(static_assets={"numbers": {"path": "assets"}})
    world.run()
    world.finish_all(world.discover()[0].submissions)
    return world


def stale(world, **options):
    """The numbers of the checkpoints that are not up to date, by the reason."""
    plan = world.plan(world.discover(**options))
    assert not plan.issues
    found = {}
    for job in plan.jobs:
        for target in job.targets:
            number = int(target.checkpoint.name.removeprefix("checkpoint_"))
            found.setdefault(plan.reasons[target.key], set()).add(number)
    assert sum(len(numbers) for numbers in found.values()) + len(plan.up_to_date) == 3
    return found


def configure(world, **keys):
    path = world.problems / "words/config.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}, sort_keys=False))


def test_finished_checkpoints_are_up_to_date(evaluated):
    plan = evaluated.plan(evaluated.discover())
    assert (plan.jobs, plan.issues) == ((), ())
    assert [submission.checkpoint.name for submission, _ in plan.up_to_date] == [f"checkpoint_{n}" for n in (1, 2, 3)]
    assert all(facts.state == "evaluated" for _, facts in plan.up_to_date)


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("monday/words/checkpoint_2/snapshot/main.py", {"the submission changed": {2}}),
        ("monday/words/checkpoint_2/snapshot/new/file", {"the submission changed": {2}}),
        ("problems/words/tests/test_checkpoint_1.py", {"the tests changed": {1, 2, 3}}),
        ("problems/words/tests/test_checkpoint_2.py", {"the tests changed": {2, 3}}),
        ("problems/words/tests/test_checkpoint_3.py", {"the tests changed": {3}}),
        ("problems/words/tests/test_checkpoint_3_more.py", {"the tests changed": {3}}),
        ("problems/words/tests/conftest.py", {"the tests changed": {1, 2, 3}}),
        ("problems/words/tests/test_helpers.py", {"the tests changed": {1, 2, 3}}),
        ("problems/words/tests/data/in.txt", {"the tests changed": {1, 2, 3}}),
        ("problems/words/tests/data/new.txt", {"the tests changed": {1, 2, 3}}),
        ("problems/words/assets/a", {"the tests changed": {1, 2, 3}}),
        ("problems/words/assets/deep/b", {"the tests changed": {1, 2, 3}}),
        ("problems/words/checkpoint_1.md", {}),
        ("problems/words/solutions/checkpoint_1/main.py", {}),
        ("problems/words/tests/__pycache__/x.pyc", {}),
        ("monday/words/checkpoint_2/agent.log", {}),
        ("monday/words/checkpoint_2/snapshot/.scbench/pytest.log", {}),
        ("monday/words/checkpoint_2/snapshot/.evaluation_tests/test_x.py", {}),
    ],
)
def test_an_edit_re_evaluates_what_it_touches_and_nothing_else(evaluated, edited, expected):
    evaluated.write({edited: "edited"})
    assert stale(evaluated) == expected


def test_a_removed_test_file_makes_results_stale(evaluated):
    (evaluated.problems / "words/tests/data/in.txt").unlink()
    assert stale(evaluated) == {"the tests changed": {1, 2, 3}}


def test_an_executable_bit_is_content(evaluated):
    os.chmod(evaluated.folder / "monday/words/checkpoint_1/snapshot/main.py", 0o755)
    assert stale(evaluated) == {"the submission changed": {1}}


def test_file_times_are_not_content(evaluated):
    for path in evaluated.folder.rglob("*.py"):
        os.utime(path, (1, 1))
    assert stale(evaluated) == {}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"timeout": 7}, {1, 2, 3}),
        ({"entry_file": "other.py"}, {1, 2, 3}),
        ({"env": {"A": "1"}}, {1, 2, 3}),
        ({"version": 2}, {1, 2, 3}),
        ({"test_dependencies": ["requests"]}, {1, 2, 3}),
        ({"in_process": True}, {1, 2, 3}),
        ({"checkpoints": {"checkpoint_1": {}, "checkpoint_2": {"timeout": 9}, "checkpoint_3": {}}}, {2}),
        ({"checkpoints": {"checkpoint_1": {}, "checkpoint_2": {"state": "Draft"}, "checkpoint_3": {}}}, set()),
        ({"checkpoints": {f"checkpoint_{n}": {"order": 10 * n} for n in (1, 2, 3)}}, set()),
        ({"description": "x", "tags": ["y"], "author": "z", "category": "c", "difficulty": "Hard"}, set()),
        ({"inspiration": "x", "parallel": 4, "parallel_by": "test"}, set()),
    ],
)
def test_keys_of_the_config_that_matter_and_that_do_not(evaluated, keys, expected):
    configure(evaluated, **keys)
    assert stale(evaluated) == ({"config.yaml changed": expected} if expected else {})


def test_prior_tests_that_are_left_out_no_longer_matter(evaluated):
    names = {"checkpoint_1": {}, "checkpoint_2": {}, "checkpoint_3": {"include_prior_tests": False}}
    configure(evaluated, checkpoints=names)
    evaluated.finish_all(evaluated.discover()[0].submissions)
    evaluated.write({"problems/words/tests/test_checkpoint_1.py": "edited"})
    assert stale(evaluated) == {"the tests changed": {1, 2}}


def test_another_environment_makes_results_stale(evaluated):
    assert stale(evaluated, environment=OTHER) == {"the environment changed": {1, 2, 3}}
    assert stale(evaluated, environment=load_environment("local")) == {}


def test_a_result_without_a_verdict_is_not_up_to_date(evaluated):
    first, second, third = evaluated.discover()[0].submissions
    evaluated.finish(first, infrastructure_failure_reason="killed")
    evaluated.finish(second, args=["-k", "x"])
    path = evaluated.finish(third)
    path.write_bytes(path.read_bytes()[:-20])
    found = stale(evaluated)
    assert found.pop("an infrastructure failure last time") == {1}
    assert found.pop("evaluated with pytest arguments: -k x") == {2}
    [(reason, numbers)] = found.items()
    assert numbers == {3}
    assert str(path) in reason


@pytest.mark.parametrize("kind", ["folder", "link", "gone"])
def test_a_folder_in_place_of_a_result_is_not_up_to_date(evaluated, kind):
    path = evaluated.folder / "monday/words/checkpoint_1/evaluation.json"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("../checkpoint_2/evaluation.json")
    [(reason, numbers)] = stale(evaluated).items()
    assert numbers == {1}
    assert reason == NO_RESULT or str(path) in reason


def test_the_result_of_another_checkpoint_is_none_of_this_one(evaluated):
    problem = evaluated.folder / "monday/words"
    shutil.rmtree(problem / "checkpoint_2/snapshot")
    shutil.copytree(problem / "checkpoint_1/snapshot", problem / "checkpoint_2/snapshot")
    shutil.copy(problem / "checkpoint_1/evaluation.json", problem / "checkpoint_2/evaluation.json")
    assert stale(evaluated) == {"the tests changed": {2}}


def facts(**keys):
    keys = {"state": "evaluated", "digests": DIGESTS, "evaluation_version": "1", **keys}
    return CheckpointFacts(**keys)


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        (None, DIGESTS, NO_RESULT),
        (facts(), DIGESTS, None),
        *[(facts(), DIGESTS.model_copy(update={name: "x"}), words) for name, words in CHANGED_INPUTS.items()],
        (facts(), DIGESTS.model_copy(update={"image": None}), None),
        (facts(digests=DIGESTS.model_copy(update={"image": None})), DIGESTS, "the image changed"),
        (facts(digests=DIGESTS.model_copy(update={"tests": None})), DIGESTS, "the tests changed"),
        (facts(digests=None), DIGESTS, NO_RESULT),
        (facts(evaluation_version="2"), DIGESTS, "slop-code evaluates differently now"),
        (facts(evaluation_version=""), DIGESTS, "slop-code evaluates differently now"),
        (facts(state="infrastructure_failure", reason="x"), DIGESTS, "an infrastructure failure last time"),
        (facts(state="not_evaluated", reason="stopped"), DIGESTS, "stopped"),
        (facts(state="not_evaluated"), DIGESTS, NO_RESULT),
    ],
)
def test_a_stale_result_has_a_reason(found, expected, reason):
    assert stale_reason(found, expected, "1") == reason


def test_every_digest_enters_the_result_cache_key():
    local = load_environment("local")
    docker = EnvironmentSpec.model_validate({"type": "docker", "name": "d", "docker": {"image": "x"}})
    assert result_cache_key(docker, DIGESTS.model_copy(update={"image": None})) is None
    known = {result_cache_key(docker, DIGESTS), result_cache_key(docker, DIGESTS.model_copy(update={"image": "j"}))}
    for name in ("submission", "tests", "config", "environment"):
        known.add(result_cache_key(local, DIGESTS.model_copy(update={name: "x"})))
    known |= {
        result_cache_key(local, DIGESTS),
        result_cache_key(local, DIGESTS, "other"),
        result_cache_key(local, DIGESTS, ""),
    }
    assert len(known) == 9
    assert result_cache_key(local, DIGESTS) == result_cache_key(local, DIGESTS, evaluation_version())
    assert result_cache_key(local, DIGESTS) == result_cache_key(local, DIGESTS.model_copy(update={"image": None}))


def test_identical_snapshots_are_one_job(world):
    world.problem()
    for name in ("monday", "tuesday"):
        world.run(name, {"words": ["same", "same", name]})
    plan = world.plan(world.discover("monday", "tuesday"))
    assert sorted([target.label for target in job.targets] for job in plan.jobs) == [
        ["monday/words/checkpoint_1", "tuesday/words/checkpoint_1"],
        ["monday/words/checkpoint_2", "tuesday/words/checkpoint_2"],
        ["monday/words/checkpoint_3"],
        ["tuesday/words/checkpoint_3"],
    ]
    assert {job.label for job in plan.jobs if len(job.targets) > 1} == {
        "monday/words/checkpoint_1 (and 1 more)", "monday/words/checkpoint_2 (and 1 more)",
    }  # fmt: skip


def test_those_whose_key_is_not_known_are_jobs_of_their_own(world):
    world.problem(count=1)
    world.run("monday", {"words": ["same"]})
    world.run("tuesday", {"words": ["same"]})
    spec = EnvironmentSpec.model_validate(
        {"type": "docker", "name": "d", "docker": {"image": "x", "binary": str(world.folder / "no-engine")}}
    )
    plan = world.plan(world.discover("monday", "tuesday", environment=spec))
    assert [(job.key, len(job.targets), job.cached) for job in plan.jobs] == [(None, 1, False)] * 2


def test_longest_first_and_unknown_before_all(world):
    world.problem(count=4)
    world.run(snapshots={"words": ["a", "b", "c", "d"]})
    submissions = world.discover()[0].submissions
    for submission, seconds in zip(submissions, (1.0, 9.0, None, 5.0), strict=True):
        if seconds is not None:
            world.result_cache.save_duration(duration_key(submission), seconds)
    jobs = world.plan(world.discover()).jobs
    assert [(job.targets[0].checkpoint.name[-1], job.expected_s) for job in jobs] == [
        ("3", None), ("2", 9.0), ("4", 5.0), ("1", 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "seconds", "options", "max_pairs"),
    [
        ({"parallel": "auto"}, None, {}, MAX_PAIRS),
        ({"parallel": "auto"}, 9.0, {}, 9),
        ({"parallel": "auto"}, 0.5, {}, 1),
        ({"parallel": "auto"}, 9.0, {"remote": True}, 1),
        ({"parallel": "auto", "parallel_by": "file"}, 9.0, {}, 1),
        ({"parallel": 8}, 9.0, {}, 1),
        ({}, 9.0, {}, 1),
    ],
    ids=["unknown", "long", "short", "remote", "proof for other units", "fixed", "one"],
)
def test_jobs_may_be_divided_where_a_proof_allows_it_and_it_is_worth_it(world, keys, seconds, options, max_pairs):
    """Only the first checkpoint has a proof."""
    world.problem(count=2, **keys)
    world.run(snapshots={"words": ["a", "b"]})
    first, second = world.discover()[0].submissions
    digests = ExpectedDigests().digests(first)
    proofs = {"checkpoint_1": proof_digest(digests.tests, digests.config, "test")}
    ParallelProofs(checkpoints=proofs).save(proofs_path(first.problem))
    if seconds is not None:
        for submission in (first, second):
            world.result_cache.save_duration(duration_key(submission), seconds)
    jobs = {job.targets[0].checkpoint.name: job for job in world.plan(world.discover(), **options).jobs}
    assert (jobs["checkpoint_1"].max_pairs, jobs["checkpoint_2"].max_pairs) == (max_pairs, 1)


def test_jobs_that_share_a_network_are_not_divided(world):
    world.problem(count=1, parallel="auto")
    world.run(snapshots={"words": ["a"]})
    world.write({"monday/environment.yaml": "type: local\nname: open\nisolation: none\n"})
    [submission] = world.discover()[0].submissions
    digests = ExpectedDigests().digests(submission)
    proof = proof_digest(digests.tests, digests.config, "test")
    ParallelProofs(checkpoints={"checkpoint_1": proof}).save(proofs_path(submission.problem))
    assert [job.max_pairs for job in world.plan(world.discover()).jobs] == [1]


def test_cached_jobs_are_marked(world):
    world.problem()
    world.run()
    job = world.plan(world.discover()).jobs[1]
    assert not job.cached
    world.result_cache.put(job.key, b"archive")
    assert [found.cached for found in world.plan(world.discover()).jobs] == [False, True, False]
    assert not any(found.cached for found in world.plan(world.discover(), overwrite=True).jobs)


def test_the_python_of_another_machine_makes_no_result_stale_for_a_remote_executor(evaluated):
    evaluated.finish_all(evaluated.discover()[0].submissions, python="3.0.1")
    assert stale(evaluated) == {"the submission's Python changed": {1, 2, 3}}
    assert len(evaluated.plan(evaluated.discover(), remote=True).up_to_date) == 3


def test_a_python_that_is_not_on_this_machine_is_asked_of_a_remote_executor(world):
    world.problem(requires_python=">=3.99")
    world.run()
    there = world.plan(world.discover(), remote=True)
    assert (len(there.jobs), there.rejected) == (3, ())
    assert all(job.key for job in there.jobs)


def test_overwrite_plans_every_checkpoint(evaluated):
    plan = evaluated.plan(evaluated.discover(), overwrite=True)
    assert ([*plan.reasons.values()], plan.up_to_date) == ([OVERWRITE] * 3, ())


@pytest.mark.e2e
@pytest.mark.parametrize("count", range(1, 8))
def test_shards_are_a_partition_whatever_is_done_meanwhile(world, count):
    world.problem()
    world.problem("ants", 2)
    for name in ("monday", "tuesday"):
        world.run(name, {"words": ["same", "b", name], "ants": ["x", "y"]})
    world.write({"monday/unknown/checkpoint_1/snapshot/main.py": ""})
    seen, issues = [], []
    for number in range(1, count + 1):
        plan = world.plan(world.discover("monday", "tuesday"), shard=Shard(number, count))
        targets = [target for job in plan.jobs for target in job.targets]
        seen += [target.label for target in targets]
        issues += [(number, issue.label) for issue in plan.issues]
        for target in targets[::2]:
            world.finish(target)
    assert sorted(seen) == sorted(one.label for run in world.discover("monday", "tuesday") for one in run.submissions)
    assert len(seen) == 10
    assert issues == [(1, "monday/unknown/checkpoint_1")]


@pytest.mark.parametrize(
    "text", ["", "0/3", "4/3", "1/0", "-1/3", "1", "1/", "/3", "a/b", "1/3/3", "1 /3", "1/3\n", "１/３", "1/9999999"]
)
def test_a_malformed_shard_is_rejected(text):
    with pytest.raises(UsageError, match=re.escape(f"shard {text}: expected i/N")):
        Shard.parse(text)


@pytest.mark.parametrize("text", ["1/1", "2/8", "999999/999999"])
def test_a_shard_is_written_as_it_is_read(text):
    assert str(Shard.parse(text)) == text


def test_a_submission_that_cannot_be_evaluated_is_rejected_alone(world):
    world.problem()
    world.run()
    runs = world.discover()
    shutil.rmtree(world.folder / "monday/words/checkpoint_2/snapshot")
    plan = world.plan(runs)
    assert [issue.label for issue in plan.issues] == ["monday/words/checkpoint_2"]
    assert "no such folder" in plan.issues[0].reason
    assert len(plan.jobs) == 2
    loose = [replace(one, output=None) for one in runs[0].submissions]
    first = next(evaluate_run(loose[1:2], cache=world.folder / "cache"))
    assert first.submission is loose[1], "whoever waits for its outcome gets one"
    assert (first.facts.state, first.facts.reason) == ("not_evaluated", plan.issues[0].reason)


def test_a_problem_without_tests_for_a_checkpoint(world):
    (world.problem() / "tests/test_checkpoint_2.py").unlink()
    world.run()
    plan = world.plan(world.discover())
    assert [(issue.label, len(plan.jobs)) for issue in plan.issues] == [("monday/words/checkpoint_2", 2)]
    assert "no tests for 'checkpoint_2'" in plan.issues[0].reason


@pytest.mark.parametrize("run", [UNNAMED_RUN, "monday", "some other"])
def test_submissions_without_a_run_folder_are_planned(evaluated, run):
    """Without an output there is nothing to be kept; with one, there is."""
    first, second, _ = evaluated.discover()[0].submissions
    loose = (replace(first, run=run), replace(second, run=run, output=None))
    plan = evaluated.plan([DiscoveredRun(UNNAMED_RUN, None, loose)])
    assert [submission for submission, _ in plan.up_to_date] == [loose[0]]
    assert [job.targets for job in plan.jobs] == [(loose[1],)]


def test_a_plan_changes_nothing(evaluated):
    def everything():
        return {path: path.lstat().st_mtime_ns for path in evaluated.folder.rglob("*")}

    evaluated.write({"problems/words/tests/test_checkpoint_3.py": "edited"})
    before = everything()
    evaluated.plan(evaluated.discover())
    evaluated.plan(evaluated.discover(), overwrite=True, shard=Shard(1, 2))
    assert everything() == before


def test_each_target_of_a_job_has_its_own_reason(world):
    world.problem(count=1)
    world.run("monday", {"words": ["same"]})
    world.run("tuesday", {"words": ["before"]})
    [submission] = world.discover("tuesday")[0].submissions
    world.finish(submission)
    world.run("tuesday", {"words": ["same"]})
    plan = world.plan(world.discover("monday", "tuesday"))
    [job] = plan.jobs
    assert {target.run: plan.reasons[target.key] for target in job.targets} == {
        "monday": "no result yet", "tuesday": "the submission changed",
    }  # fmt: skip


def test_only_verdicts_on_the_same_submission_are_kept_from_failures(evaluated):
    submissions = evaluated.discover()[0].submissions
    evaluated.finish(submissions[1], version="earlier")
    evaluated.finish(submissions[2], infrastructure_failure_reason="killed")
    plan = evaluated.plan(evaluated.discover(), overwrite=True)
    kept = {key for job in plan.jobs for key in job.verdicts}
    assert kept == {submission.key for submission in submissions[:2]}
    evaluated.write({"problems/words/tests/test_checkpoint_1.py": "# changed\n"})
    plan = evaluated.plan(evaluated.discover())
    assert {key for job in plan.jobs for key in job.verdicts} == kept
    (submissions[0].path / "changed.py").write_text("")
    plan = evaluated.plan(evaluated.discover())
    assert {key for job in plan.jobs for key in job.verdicts} == {submissions[1].key}
