"""(j) A long checkpoint on one processor and on several, beside bare pytest and pytest-xdist."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from typing import TYPE_CHECKING

from benchmarks.bare import Bare, bare_venv, prepared_venv
from benchmarks.measuring import BenchError, clean_environment, in_turns, run
from benchmarks.setting import ROOT
from benchmarks.table import Part, Row, rows
from benchmarks.tiny import proven, write_problem, write_submission
from benchmarks.whole_runs import MANY, check
from slop_code import Evaluator
from slop_code.execution.cache import Cache
from slop_code.execution.environment import load_environment
from slop_code.execution.processors import available_cpus
from slop_code.execution.uv import uv_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.setting import Bench
    from slop_code.evaluation import ProblemConfig

TITLE = "a checkpoint of independent tests on several processors, in a running evaluator, bubblewrap"
COUNTS = (1, 2, 4, 8, 16)
XDIST = ("pytest-xdist", "execnet")


def measure(bench: Bench) -> Part:
    """Each number of processors has an evaluator of its own, whose threads and templates have only these."""
    count = bench.size(120, 40, 40)
    problem, submission = proven_problem(bench, count), write_submission(bench.folder("submission"))
    bare = Bare.of(bench.folder("bare"), problem, problem.checkpoint(1), submission)
    numbers = [number for number in COUNTS if number <= available_cpus()]
    run_bare = functools.partial(bare.run, prepared_venv(bench))
    actions = {f"{count} tests, 1 processor: bare pytest": on_processors(1, run_bare)}
    for number in numbers[1:]:
        spread = functools.partial(bare.run, xdist_venv(bench), "-n", str(number))
        actions[f"{count} tests, {number} processors: pytest-xdist"] = on_processors(number, spread)
    with contextlib.ExitStack() as stack:
        for number in numbers:
            evaluator = stack.enter_context(Evaluator(1, load_environment("local")))
            required = None if bench.scale == "least" else number
            ours = functools.partial(evaluate, evaluator, problem, submission, count, required)
            actions[f"{count} tests, {number} processor{'s' * (number > 1)}: ours"] = on_processors(number, ours)
        times = in_turns(actions, bench.size(5, 1, 1), warm=bench.size(2, 2, 0))
    names = [name for name in times if name.endswith("ours")]
    against_one = [Row(name, "s", tuple(times[name]), names[0]) for name in names[1:]]
    return Part("j", TITLE, (*rows(times, against=next(iter(times))), *against_one))


def proven_problem(bench: Bench, count: int) -> ProblemConfig:
    tests = {"test_checkpoint_1.py": MANY.format(count=count)}
    return proven(write_problem(bench.folder("processors") / "problem", tests, parallel="auto"))


def evaluate(evaluator: Evaluator, problem: ProblemConfig, submission: Path, count: int, number: int | None) -> None:
    """`number`: of processors, if the pairs have to use them, which a busy machine keeps them from."""
    results = evaluator.evaluate(submission, problem, 1)
    check(results, count)
    if number is not None and (results.isolation["pairs"] > 1) != (number > 1):
        raise BenchError(f"{results.isolation['pairs']} pairs on {number} processors: {results.isolation}")


def on_processors(number: int, action: Callable[[], object]) -> Callable[[], object]:
    """The action, with this number of processors for this thread and all that it starts."""

    def limited() -> object:
        with processors(number):
            return action()

    return limited


@contextlib.contextmanager
def processors(number: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def xdist_venv(bench: Bench) -> Path:
    """The environment of bare pytest, with pytest-xdist as the development tools have it."""
    folder, cache = bench.work / "venv-xdist", Cache.default().uv
    if not folder.exists():
        bare_venv(folder, cache)
        wanted = bench.folder("xdist") / "requirements.txt"
        wanted.write_text(locked((ROOT / "requirements-dev.lock").read_text(), XDIST))
        install = [
            str(uv_paths()[0]),
            "pip",
            "install",
            "--quiet",
            "--compile-bytecode",
            "--require-hashes",
            "--no-deps",
        ]
        argv = [*install, "-r", str(wanted), "--python", str(folder / "bin/python")]
        run(argv, env=clean_environment(UV_CACHE_DIR=str(cache)))
    return folder


def locked(lock: str, names: tuple[str, ...]) -> str:
    """The lines of these packages, with their hashes."""
    entries = re.findall(rf"^(?:{'|'.join(names)})==.*(?:\n    --hash=.*)+$", lock, re.MULTILINE)
    if len(entries) != len(names):
        raise BenchError(f"requirements-dev.lock does not have {' and '.join(names)}; run `make lock`")
    return "\n".join(entries) + "\n"
