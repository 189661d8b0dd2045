"""(c) A whole run with 1, 2 and 4 jobs against bare pytest in sequence; and its cost per checkpoint by size."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from benchmarks.bare import Bare, prepared_venv
from benchmarks.measuring import BenchError, in_turns, ours, seconds
from benchmarks.table import Part, Row, rows
from benchmarks.tiny import TINY, example, solved_run, tiny_run, write_problem, write_submission
from slop_code.evaluation import CorrectnessResults, ProblemConfig, PytestRunner
from slop_code.execution.environment import load_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.setting import Bench

TITLE = "whole runs, bubblewrap"
JOBS = (1, 2, 4)
MANY = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_says_it(run, number):
    for word in ("one", "two", "three"):
        assert run(word, str(number)).stdout == f"{{word}} {{number}}\\n"
"""
"""Each test calls the submission a few times, as those of the examples do."""


def measure(bench: Bench) -> Part:
    measured = jobs(bench)
    bench.print_step("pairs of boxes")
    measured += pairs(bench)
    bench.print_step("small runs and large ones")
    return Part("c", TITLE, (*measured, *sizes(bench)))


def jobs(bench: Bench) -> list[Row]:
    """Every round has submissions of its own, so that nothing comes from the result cache."""
    problem, runs = example(bench), bench.size(2, 1, 1)
    if bench.scale != "least":
        evaluate(bench, problem, 1, 2)
    name = f"{runs * len(problem.checkpoints)} checkpoints of {problem.name}: "
    actions: dict[str, Callable[[], object]] = {
        f"{name}bare pytest, one after the other": bare_run(bench, problem, runs)
    }
    for count in JOBS[: bench.size(3, 3, 1)]:
        actions[f"{name}{count} job{'s' * (count > 1)}"] = functools.partial(evaluate, bench, problem, runs, count)
    times = in_turns(actions, bench.size(3, 1, 1), warm=0)
    first, one, *more = times
    against_one = [Row(what, "s", tuple(times[what]), one) for what in more]
    return [*rows(times, against=first), *against_one]


def bare_run(bench: Bench, problem: ProblemConfig, runs: int) -> Callable[[], None]:
    venv = prepared_venv(bench)
    sides = [
        Bare.of(bench.folder("bare"), problem, checkpoint, problem.path / "solutions" / name)
        for name, checkpoint in problem.iterate_checkpoint_items()
    ]

    def all_of_them() -> None:
        for _ in range(runs):
            for side in sides:
                side.run(venv)

    return all_of_them


def evaluate(bench: Bench, problem: ProblemConfig, runs: int, count: int) -> None:
    folders = [solved_run(bench.folder("run"), problem) for _ in range(runs)]
    ours("eval", *folders, "--problems-dir", problem.path.parent, "-j", count)


def pairs(bench: Bench) -> list[Row]:
    """The tests of one checkpoint in one pair of boxes and in two; the results have to be equal."""
    count = bench.size(60, 40, 4)
    submission = write_submission(bench.folder("submission"))
    runners = {}
    for number in (1, 2):
        folder = bench.folder(f"pairs{number}") / "problem"
        tests = {"test_checkpoint_1.py": MANY.format(count=count)}
        problem = write_problem(folder, tests, parallel=number, parallel_by="test")
        runners[number] = PytestRunner(problem, problem.checkpoint(1), load_environment("local"), submission)

    def passes(runner: PytestRunner) -> None:
        check(runner.run(), count)

    actions = {
        f"a checkpoint of {count} tests: {number} pair{'s' * (number > 1)} of boxes": functools.partial(passes, runner)
        for number, runner in runners.items()
    }
    return rows(in_turns(actions, bench.size(3, 1, 1), warm=bench.size(1, 1, 0)), against=next(iter(actions)))


def check(results: CorrectnessResults, count: int) -> None:
    if len(results.tests) != count or not results.passed["all-cases"]:
        raise BenchError(results.infrastructure_failure_reason or f"{len(results.tests)} tests of {count}")


def sizes(bench: Bench) -> list[Row]:
    """Cost of a checkpoint in a small run and in a larger one."""
    checkpoints = bench.size(10, 5, 1)
    names = [f"test_checkpoint_{number}.py" for number in range(1, checkpoints + 1)]
    problem = write_problem(bench.folder("problems") / "tiny", dict.fromkeys(names, TINY))
    if bench.scale != "least":
        evaluate_tiny(bench, problem, 1)
    runs_and_rounds = ((1, bench.size(3, 1, 1)), (runs_of_larger(bench, checkpoints), 1))
    measured = [each(bench, problem, runs, rounds) for runs, rounds in runs_and_rounds]
    return rows(dict(measured), unit="ms", against=measured[0][0])


def runs_of_larger(bench: Bench, checkpoints: int) -> int:
    """At least as many as for the requested number of checkpoints."""
    return math.ceil(bench.tiny_checkpoints / checkpoints) if bench.tiny_checkpoints else bench.size(10, 4, 2)


def each(bench: Bench, problem: ProblemConfig, runs: int, rounds: int) -> tuple[str, list[float]]:
    count = runs * len(problem.checkpoints)
    taken = [1000 * seconds(functools.partial(evaluate_tiny, bench, problem, runs)) / count for _ in range(rounds)]
    return f"{count} tiny checkpoints, 2 jobs: each", taken


def evaluate_tiny(bench: Bench, problem: ProblemConfig, runs: int) -> None:
    folders: list[Path] = [tiny_run(bench.folder("run"), problem) for _ in range(runs)]
    ours("eval", *folders, "--problems-dir", problem.path.parent, "-j", "2")
