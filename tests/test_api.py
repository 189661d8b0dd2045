"""`slop_code.evaluate` and the loaders, on real submissions."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from slop_code import (
    CorrectnessResults,
    EnvironmentSpec,
    InfrastructureError,
    ProblemConfig,
    ResultError,
    RunSummary,
    Shard,
    SubmissionError,
    UsageError,
    evaluate,
    evaluate_async,
    load_environment,
    load_problem,
    load_results,
    parse_policy,
    read_lines,
    read_runs,
)
from slop_code.evaluation.evaluator.submission_source import EXPECTED
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope
from tests.factories import result

LARDER = Path(__file__).resolve().parents[1] / "examples/problems/larder"
DRIFTING = Path(__file__).resolve().parents[1] / "examples/runs/drifting/larder/checkpoint_2/snapshot"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checkpoint": 2.5}, "checkpoint: expected the number or the name of a checkpoint, found 2.5 (float)"),
        ({"checkpoint": True}, "checkpoint: expected the number or the name of a checkpoint, found True (bool)"),
        ({"checkpoint": 9}, "larder: no checkpoint '9'; there are checkpoint_1, checkpoint_2, checkpoint_3"),
        ({"submission": None}, f"submission: expected {EXPECTED}, found None (NoneType)"),
        ({"submission": 5}, f"submission: expected {EXPECTED}, found 5 (int)"),
        ({"submission": ["main.py"]}, f"submission: expected {EXPECTED}, found ['main.py'] (list)"),
        ({"problem": 1}, "problem: expected a path, a name or a ProblemConfig, found 1 (int)"),
        ({"environment": 1}, "environment: expected a name, a path or an EnvironmentSpec, found 1 (int)"),
        ({"environment": "nowhere"}, "nowhere: no such environment; shipped are "),
        ({"output": 1}, "output: expected the path of a folder, or None, found 1 (int)"),
        ({"policy": "core =="}, "policy, column 8: expected a group or a number, found the end"),
        ({"policy": 1}, "policy: expected the name of a policy or an expression, found 1 (int)"),
        ({"checkpoint": 10**5000}, "checkpoint: expected the number or the name of a checkpoint, found a value that"),
        ({"submission": "a\0"}, f"submission: expected {EXPECTED}, without a NUL character"),
        ({"submission": "\ud800"}, f"submission: expected {EXPECTED}, in characters that can"),
        ({"output": "a\0"}, "output: expected the path of a folder, or None, without a NUL character, found 'a\\x00'"),
        ({"output": Path("\udc00")}, "output: expected the path of a folder, or None, in characters that can be"),
        ({"problem": "a\0"}, "problem: expected the path or the name of a problem, without a NUL character"),
        ({"environment": "a\0"}, "environment: expected the name of an environment or the path of its file, without"),
        ({"pytest_args": None}, "pytest_args: expected a list of arguments for pytest, found None (NoneType)"),
        ({"pytest_args": 5}, "pytest_args: expected a list of arguments for pytest, found 5 (int)"),
        ({"pytest_args": [1]}, "pytest_args: expected a list of arguments for pytest, found [1] (list)"),
        ({"pytest_args": "-x"}, "pytest_args: expected a list of arguments for pytest, found '-x' (str)"),
        ({"pytest_args": b"-x"}, "pytest_args: expected a list of arguments for pytest, found b'-x' (bytes)"),
        ({"pytest_args": ["-k\0"]}, "pytest_args: expected a list of arguments for pytest, without a NUL character"),
        ({"pytest_args": ["\udc80"]}, "pytest_args: expected a list of arguments for pytest, in characters that can"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(arguments, message, tmp_path, monkeypatch):
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path / "cache"))
    valid = {"submission": DRIFTING, "problem": LARDER, "checkpoint": 2}
    with pytest.raises(UsageError) as refused:
        evaluate(**{**valid, **arguments})
    assert str(refused.value).startswith(message)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("path", [3, None, b"a", [], "a\0", "\ud800", "a" * 256, "a/" * 2048 + "a"])
@pytest.mark.parametrize(
    "load",
    [
        load_problem,
        load_environment,
        load_results,
        read_lines,
        lambda path: read_runs([path]),
        CorrectnessResults.load,
        RunSummary.load,
        ProblemConfig.from_yaml,
        EnvironmentSpec.from_yaml,
        lambda path: load_problem(LARDER, [path]),
    ],
)
def test_loaders_refuse_what_is_no_path(load, path):
    with pytest.raises(UsageError, match=r"^\w+: expected the .*, found .* \(\w+\)$"):
        load(path)


@pytest.mark.parametrize("load", [read_runs, parse_policy, Shard.parse, lambda value: load_problem(LARDER, value)])
def test_a_number_is_neither_a_path_nor_a_text(load):
    with pytest.raises(UsageError, match=r"expected .*, found 3 \(int\)$"):
        load(3)


def test_a_call_with_wrong_parameters_names_the_function_that_was_called():
    with pytest.raises(TypeError, match=r"^evaluate\(\): got an unexpected keyword argument 'outptu'$"):
        evaluate(DRIFTING, LARDER, 2, outptu="x")
    with pytest.raises(TypeError, match=r"^evaluate_async\(\): missing a required argument: 'checkpoint'$"):
        asyncio.run(evaluate_async(DRIFTING, LARDER))


def test_a_folder_around_results_is_refused_with_the_results_in_it(tmp_path):
    result("+").save(tmp_path / "larder/checkpoint_1/evaluation.json")
    with pytest.raises(UsageError, match=r"(?s)give one of them:.*/larder/checkpoint_1$"):
        load_results(tmp_path)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: EnvironmentSpec.from_yaml("nowhere.yaml"), "nowhere.yaml: no such file; write it, or give another"),
        (lambda: ProblemConfig.from_yaml(LARDER / "config.yaml"), "config.yaml: a file; give the folder of the"),
        (lambda: result("+").save(LARDER), "larder: cannot be written: Is a directory; give the path of a file"),
        (lambda: result("+").save("/proc/x/evaluation.json"), "/proc/x/evaluation.json: cannot be written: No such "),
    ],
    ids=["environment", "problem", "save-folder", "save-nowhere"],
)
def test_an_error_says_what_to_do(load, message):
    with pytest.raises(UsageError) as refused:
        load()
    assert message in str(refused.value)


@pytest.fixture
def unsandboxed(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("{name: own, type: local, isolation: none}")
    return file


def test_an_output_that_cannot_be_made_is_a_wrong_argument(tmp_path, unsandboxed):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file/out: results cannot be written there: Not a directory"):
        evaluate(DRIFTING, LARDER, 2, unsandboxed, output=tmp_path / "file/out")


def test_a_cache_folder_that_cannot_be_made_is_an_infrastructure_error(tmp_path, unsandboxed, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path / "file/cache"))
    with pytest.raises(InfrastructureError, match="file/cache: cannot make the cache folder: Not a directory"):
        evaluate(DRIFTING, LARDER, 2, unsandboxed)


def test_a_cache_that_cannot_be_locked_is_an_infrastructure_failure(tmp_path, unsandboxed, monkeypatch):
    cache, output = tmp_path / "cache", tmp_path / "out"
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache))
    (cache / ".in-use.lock").mkdir(parents=True)
    results = evaluate(DRIFTING, LARDER, 2, unsandboxed, output=output)
    assert results.infrastructure_failure_reason is not None
    assert ".in-use.lock" in results.infrastructure_failure_reason
    assert not results.passes()
    assert load_results(output) == results


def test_a_result_that_cannot_be_written_is_an_infrastructure_error(tmp_path, unsandboxed, monkeypatch):
    cache, output = tmp_path / "cache", tmp_path / "out"
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache))
    (cache / ".in-use.lock").mkdir(parents=True)  # so that no test has to run
    (output / "evaluation.json").mkdir(parents=True)
    with pytest.raises(InfrastructureError, match=r"out/evaluation\.json: Is a directory"):
        evaluate(DRIFTING, LARDER, 2, unsandboxed, output=output)


def test_a_submission_of_which_this_user_can_read_nothing_has_no_verdict(tmp_path, unsandboxed, monkeypatch):
    real = os.access

    def access(path, *arguments, **options):
        return Path(path).parent != DRIFTING and real(path, *arguments, **options)

    monkeypatch.setattr(os, "access", access)
    with pytest.raises(SubmissionError, match=r"snapshot: this user can read none of its files; let this user read"):
        evaluate(DRIFTING, LARDER, 2, unsandboxed, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_loaders_take_strings_and_paths(tmp_path):
    for folder in (LARDER, str(LARDER)):
        assert isinstance(load_problem(folder), ProblemConfig)
    assert load_problem("larder", problems_dir=str(LARDER.parent)) == load_problem(LARDER)
    assert isinstance(load_environment("local"), EnvironmentSpec)
    file = tmp_path / "own.yaml"
    file.write_text("{name: own, type: local, isolation: none}")
    assert load_environment(file) == load_environment(str(file))
    with pytest.raises(ResultError, match=r"evaluation\.json: cannot be read"):
        load_results(tmp_path / "evaluation.json")


@pytest.fixture
def shared_cache_by_default(cache, monkeypatch):
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(cache.root))


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_cache_by_default")
def test_a_result_is_stored_and_answers_for_its_policy(need_bubblewrap, tmp_path):
    need_bubblewrap()
    output = tmp_path / "out"
    results = evaluate(str(DRIFTING), str(LARDER), 2, output=str(output), policy="core-cases")
    assert isinstance(results, CorrectnessResults)
    assert (results.passes(), results.passes("all-cases")) == (True, False)
    stored = load_results(output)
    assert stored == results == load_results(output / "evaluation.json")
    assert (stored.passes(), stored.with_policy("core == 1 and regression >= 95%").passes()) == (False, True)
    assert (output / ".scbench/pytest.log").is_file()


@pytest.mark.long
@pytest.mark.e2e
@pytest.mark.usefixtures("shared_cache_by_default")
def test_several_evaluations_from_coroutines_give_the_same_result(need_bubblewrap):
    need_bubblewrap()
    problem, environment = load_problem(LARDER), load_environment("local")

    async def both() -> list[CorrectnessResults]:
        calls = [evaluate_async(DRIFTING, problem, "checkpoint_2", environment) for _ in range(2)]
        return await asyncio.gather(*calls)

    first, second = asyncio.run(both())
    assert [(test.nodeid, test.status) for test in first.tests] == [(test.nodeid, test.status) for test in second.tests]
    assert not first.passes()


@pytest.mark.e2e
def test_a_cancelled_evaluation_ends_before_the_task_does(
    cache, need_bubblewrap, make_problem, make_submission, shared_cache_by_default
):
    """The session's folder is there while the submission runs, and gone when the cancelled task has ended."""
    need_bubblewrap()
    problem = make_problem({"test_checkpoint_1.py": "def test_waits(run):\n    run(timeout=100)\n"})
    submission = make_submission({"main.py": "import time\ntime.sleep(100)\n"})

    def sessions() -> set[Path]:
        return set((cache.root / "sessions").glob("[!.]*"))

    async def cancelled() -> set[Path]:
        before = sessions()
        task = asyncio.create_task(evaluate_async(submission, problem, 1))
        while not (opened := sessions() - before):
            await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        return opened

    assert [folder for folder in asyncio.run(cancelled()) if folder.exists()] == []


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_cache_by_default")
def test_by_default_a_problem_is_evaluated_in_its_own_environment(need_bubblewrap):
    need_bubblewrap()
    hitcount = LARDER.with_name("hitcount")
    assert (hitcount / "environment.yaml").is_file()
    submission = hitcount / "solutions" / "checkpoint_1"
    assert evaluate(submission, hitcount, 1).passes()
    assert not evaluate(submission, hitcount, 1, "local").passes()


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_cache_by_default")
def test_a_cancelled_evaluation_leaves_the_earlier_result_and_its_evidence(unsandboxed, tmp_path):
    output = tmp_path / "out"
    evaluate(DRIFTING, LARDER, 1, unsandboxed, output=output)
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    with contextlib.closing(CancelToken()) as token, cancel_scope(token):
        token.cancel()
        with pytest.raises(EvaluationCancelledError):
            evaluate(DRIFTING, LARDER, 1, unsandboxed, output=output)
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_cache_by_default")
def test_an_output_that_is_made_and_stays_empty_is_removed(unsandboxed, tmp_path):
    with pytest.raises(UsageError, match="nothing_like_it"):
        evaluate(DRIFTING, LARDER, 1, unsandboxed, output=tmp_path / "new/out", pytest_args=["-k", "nothing_like_it"])
    assert not (tmp_path / "new").exists()
    (tmp_path / "own").mkdir()
    with pytest.raises(UsageError, match="nothing_like_it"):
        evaluate(DRIFTING, LARDER, 1, unsandboxed, output=tmp_path / "own", pytest_args=["-k", "nothing_like_it"])
    assert (tmp_path / "own").exists()
