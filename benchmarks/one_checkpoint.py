"""(a) One checkpoint against bare pytest: warm, with new tests, and with empty caches."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bare import Bare, bare_venv, prepared_venv
from benchmarks.measuring import BenchError, in_turns, run
from benchmarks.setting import SALTS
from benchmarks.table import Part, rows
from benchmarks.tiny import example, parallel_copy
from slop_code import Evaluator
from slop_code.evaluation import CheckpointConfig, CorrectnessResults, ProblemConfig, PytestRunner
from slop_code.execution.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.setting import Bench

TITLE = "one checkpoint of larder, in a running evaluator"
PARALLEL = "warm: bubblewrap, with `parallel: auto`"
COLD = "cold: bare pytest, its environment made first"


def measure(bench: Bench) -> Part:
    problem = example(bench)
    bare = Bare.of(bench.folder("bare"), problem, last(problem), solution(problem))
    measured = rows(warm(bench, problem, bare), against="warm: bare pytest")
    measured += rows(new_tests(bench, problem))
    if rounds := bench.size(2, 1, 0):
        bench.print_step("with nothing prepared")
        measured += rows(cold(bench, problem, bare, rounds), against=COLD)
    return Part("a", TITLE, tuple(measured), bench.missing)


def last(problem: ProblemConfig) -> CheckpointConfig:
    return list(problem.checkpoints.values())[-1]


def solution(problem: ProblemConfig) -> Path:
    return problem.path / "solutions" / last(problem).name


def warm(bench: Bench, problem: ProblemConfig, bare: Bare) -> dict[str, list[float]]:
    """The second evaluation of an evaluator starts its template, so the first two rounds do not count."""
    actions: dict[str, Callable[[], object]] = {"warm: bare pytest": functools.partial(bare.run, prepared_venv(bench))}
    with contextlib.ExitStack() as stack:
        for name in bench.sandboxes:
            evaluator = stack.enter_context(Evaluator(1, bench.environment(name)))
            actions[f"warm: {name}"] = functools.partial(evaluate_warm, evaluator, problem)
        actions["warm: bubblewrap, as `slop-code eval-snapshot`"] = functools.partial(command, bench, problem)
        parallel = parallel_copy(bench, problem)
        evaluator = stack.enter_context(Evaluator(1, bench.environment("bubblewrap")))
        actions[PARALLEL] = functools.partial(evaluate_warm, evaluator, parallel)
        actions[f"{PARALLEL}, as `slop-code eval-snapshot`"] = functools.partial(command, bench, parallel)
        return in_turns(actions, bench.size(5, 1, 1), warm=bench.size(2, 2, 0))


def evaluate_warm(evaluator: Evaluator, problem: ProblemConfig) -> None:
    check(evaluator.evaluate(solution(problem), problem, last(problem).name))


def new_tests(bench: Bench, problem: ProblemConfig) -> dict[str, list[float]]:
    """The test tools are cached; the tests are new, so they are collected first."""
    folder = bench.folder("new-tests") / problem.name
    shutil.copytree(problem.path, folder)

    def changed(sandbox: str) -> None:
        with (folder / "tests/conftest.py").open("a") as conftest:
            conftest.write(f"# {next(SALTS)}\n")
        evaluate(bench, sandbox, ProblemConfig.from_yaml(folder))

    actions = {f"new tests: {name}": functools.partial(changed, name) for name in bench.sandboxes}
    return in_turns(actions, bench.size(3, 1, 1), warm=0)


def cold(bench: Bench, problem: ProblemConfig, bare: Bare, rounds: int) -> dict[str, list[float]]:
    """Without any cache, not even that of uv; both candidates download over the network."""

    def bare_cold() -> None:
        folder = bench.folder("cold")
        bare.run(bare_venv(folder / "venv", folder / "uv"))

    def ours_cold(sandbox: str) -> None:
        evaluate(bench, sandbox, problem, Cache(bench.folder("cold")))

    actions: dict[str, Callable[[], object]] = {COLD: bare_cold}
    actions |= {f"cold: {name}": functools.partial(ours_cold, name) for name in bench.sandboxes}
    return in_turns(actions, rounds, warm=0)


def evaluate(bench: Bench, sandbox: str, problem: ProblemConfig, cache: Cache | None = None) -> None:
    spec = bench.environment(sandbox)
    check(PytestRunner(problem, last(problem), spec, solution(problem), cache=cache).run())


def check(results: CorrectnessResults) -> None:
    if not results.passed["all-cases"]:
        raise BenchError(results.infrastructure_failure_reason or "the reference does not pass")


def command(bench: Bench, problem: ProblemConfig) -> None:
    program, out = str(Path(sys.executable).with_name("slop-code")), str(bench.folder("out"))
    run(
        [program, "eval-snapshot", str(solution(problem)), "-p", str(problem.path), "-c", last(problem).name, "-o", out]
    )
