"""Generated workload: tasks with ten cases of input and output, and programs whose results are known beforehand.

Seed and mixture are fixed, so that every session evaluates the same programs.
"""

from __future__ import annotations

import contextlib
import functools
import io
import random
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.throughput.task_families import FAMILIES, SIZES
from benchmarks.tiny import write_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.throughput.task_families import Family
    from slop_code.evaluation import ProblemConfig

SEED = 20
LIMIT_S = 2.0
"""For each case."""

MIXTURE = {"right": 9, "wrong": 6, "slow": 2, "crashing": 2, "timing out": 1}
"""Programs of each kind that a task has."""

SLOW = "for _ in range(1_000_000):\n    pass\n"
CRASHES = (
    ("", "raise ValueError('not today')\n"),
    ("", "import os\nos.abort()\n"),
    ("", "import sys\nsys.exit(3)\n"),
    ("print(\n", ""),
)
"""Before and after a right program: an exception, a signal, an exit status, a syntax error."""

HANGS = ("    time.sleep(3600)\n", "    while True:\n        pass\n")
"""One waits and one runs, which matters on a busy machine."""

HANGING = """import io, sys, time
given = sys.stdin.read()
sys.stdin = io.StringIO(given)
if len(given) >= {length}:
"""
TESTS = """
import pytest

CASES = {cases!r}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_case(program, number):
    given, expected = CASES[number]
    done = program(given)
    assert done.returncode == 0
    same = done.stdout.split() == expected.split()
    assert same
"""
CONFTEST = f"""

@pytest.fixture(scope="session")
def program(request):
    entrypoint = shlex.split(request.config.getoption("--entrypoint"))

    def call(given):
        return subprocess.run(entrypoint, input=given, capture_output=True, text=True, timeout={LIMIT_S})

    return call
"""


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    family: Family
    number: int
    """The `K` of the family."""

    cases: tuple[tuple[str, str], ...] = field(repr=False)
    """Inputs and outputs."""

    def source(self, edit: tuple[str, str] = ("", "")) -> str:
        return f"K = {self.number}\n{self.family.right.replace(*edit, 1)}"

    def write(self, folder: Path) -> ProblemConfig:
        tests = {"test_checkpoint_1.py": TESTS.format(cases=self.cases)}
        return write_problem(folder / self.name, tests, conftest=CONFTEST)


@dataclass(frozen=True, slots=True)
class Program:
    task: Task
    kind: str
    source: str = field(repr=False)
    passes: tuple[bool, ...]
    """For each case."""


def generated_tasks(count: int) -> Iterator[Task]:
    """Families take turns; each later turn has another `K`."""
    for index in range(count):
        family, number = FAMILIES[index % len(FAMILIES)], 2 + index // len(FAMILIES)
        chance = random.Random(f"{SEED} {family.name} {number}")
        source = f"K = {number}\n{family.right}"
        inputs = [family.given(chance, size) for size in SIZES]
        yield Task(f"{family.name}_{number}", family, number, tuple((given, output(source, given)) for given in inputs))


def generated_programs(task: Task) -> list[Program]:
    """In an order that looks random. No two are equal: a comment numbers them."""
    made = [_MAKERS[kind](task, index) for kind, count in MIXTURE.items() for index in range(count)]
    numbered = [
        Program(task, program.kind, f"{program.source}# {number}\n", program.passes)
        for number, program in enumerate(made)
    ]
    random.Random(f"{SEED} {task.name}").shuffle(numbered)
    return numbered


def _right(task: Task, _: int) -> Program:
    return Program(task, "right", task.source(), (True,) * len(task.cases))


def _wrong(task: Task, index: int) -> Program:
    return _edited(task, index % len(task.family.edits))


@functools.lru_cache(maxsize=8)
def _edited(task: Task, index: int) -> Program:
    source = task.source(task.family.edits[index])
    passes = tuple(output(source, given).split() == expected.split() for given, expected in task.cases)
    if all(passes):
        raise ValueError(f"{task.name}: no case notices that this program is wrong\n{source}")
    return Program(task, "wrong", source, passes)


def _slow(task: Task, _: int) -> Program:
    return Program(task, "slow", SLOW + task.source(), (True,) * len(task.cases))


def _crashing(task: Task, index: int) -> Program:
    """The kind of crash differs from task to task, too."""
    before, after = CRASHES[(2 * task.number + index) % len(CRASHES)]
    return Program(task, "crashing", before + task.source() + after, (False,) * len(task.cases))


def _timing_out(task: Task, _: int) -> Program:
    length = len(task.cases[-1][0])
    source = HANGING.format(length=length) + HANGS[task.number % len(HANGS)] + task.source()
    return Program(task, "timing out", source, tuple(len(given) < length for given, _ in task.cases))


_MAKERS: dict[str, Callable[[Task, int], Program]] = {
    "right": _right, "wrong": _wrong, "slow": _slow, "crashing": _crashing, "timing out": _timing_out,
}  # fmt: skip


def output(source: str, given: str) -> str:
    """Standard output of a program of ours, run in this process."""
    printed, stdin = io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(given)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, "program", "exec"), {"__name__": "__main__"})  # noqa: S102
    finally:
        sys.stdin = stdin
    return printed.getvalue()
