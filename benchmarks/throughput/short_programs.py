"""(w) Short programs with input/output cases, evaluated as submissions; every result is compared with the known one."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.measuring import BenchError
from benchmarks.processors import processors
from benchmarks.table import Part, Row
from benchmarks.throughput.programs import LIMIT_S, generated_programs, generated_tasks
from benchmarks.tiny import TINY, write_problem
from slop_code import Evaluator, EvaluatorRequest
from slop_code.execution.processors import available_cpus
from slop_code.execution.uv import base_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.setting import Bench
    from benchmarks.throughput.programs import Program, Task
    from slop_code import EvaluatorOutcome
    from slop_code.evaluation import CorrectnessResults, ProblemConfig

TITLE = "short programs with input/output cases, in a running evaluator, bubblewrap"
RATE = "per s and core"
MAX_SHOWN = 5


def measure(bench: Bench) -> Part:
    tasks = list(generated_tasks(bench.size(100, 10, 1)))
    folder = bench.folder("tasks")
    problems = {task.name: task.write(folder) for task in tasks}
    programs = chosen_programs(bench, tasks)
    sample = chosen_programs(bench, tasks[:: bench.size(20, 5, 1)])
    bare = f"{len(sample):,} programs as bare processes, one after the other, without boxes and pytest"
    measured = [Row(bare, RATE, (len(sample) / bare_seconds(bench.folder("bare"), sample),))]
    return Part("w", TITLE, (*measured, *evaluate(bench, programs, problems, bare)))


def chosen_programs(bench: Bench, tasks: Sequence[Task]) -> list[Program]:
    """All of them; at the smallest scale one of each kind."""
    programs = [program for task in tasks for program in generated_programs(task)]
    return programs if bench.scale != "least" else list({program.kind: program for program in programs}.values())


def evaluate(
    bench: Bench, programs: Sequence[Program], problems: Mapping[str, ProblemConfig], bare: str
) -> Iterator[Row]:
    """The test tools are cached, the tests of all tasks are new."""
    cores, count = available_cpus(), len(programs)
    judges: Counter[str] = Counter()
    with Evaluator(cores, bench.environment("bubblewrap")) as evaluator:
        warm = write_problem(bench.folder("warm") / "tiny", {"test_checkpoint_1.py": TINY})
        evaluator.evaluate({"main.py": ""}, warm, 1)
        began = time.perf_counter()
        for results in checked(evaluator.map(requests(programs, problems)), programs):
            judges[results.isolation["judge"]] += 1
        taken = time.perf_counter() - began
    name = f"{count:,} programs of {len(problems)} tasks"
    yield Row(f"{name}, {cores} workers", "s", (taken,))
    yield Row(f"{name}, {cores} workers: programs", RATE, (count / taken / cores,), bare)
    for kind, number in sorted(judges.items()):
        yield Row(f"{name}: with a judge that was {kind}", "programs", (float(number),))


def requests(programs: Iterable[Program], problems: Mapping[str, ProblemConfig]) -> Iterator[EvaluatorRequest]:
    for program in programs:
        yield EvaluatorRequest({"main.py": program.source.encode()}, problems[program.task.name], 1)


def checked(outcomes: Iterable[EvaluatorOutcome], programs: Sequence[Program]) -> Iterator[CorrectnessResults]:
    """A session with a wrong result has no figures."""
    wrong, count = [], 0
    for outcome in outcomes:
        program = programs[outcome.index]
        if (error := difference(program, outcome)) is not None:
            wrong.append(f"{program.task.name}, {program.kind}: {error}")
        elif outcome.results is not None:
            yield outcome.results
        count += 1
    if wrong or count != len(programs):
        shown = "\n".join(wrong[:MAX_SHOWN])
        raise BenchError(f"{len(wrong)} of {count} results are wrong, of {len(programs)} programs\n{shown}")


def difference(program: Program, outcome: EvaluatorOutcome) -> str | None:
    """The difference between a result and what is known of the program, or None if there is none."""
    results = outcome.results
    if results is None or results.infrastructure_failure:
        return str(outcome.error or (results and results.infrastructure_failure_reason))
    expected = {f"test_case[{number}]": passes for number, passes in enumerate(program.passes)}
    passed = {test.id: test.status == "passed" for test in results.tests}
    if passed != expected or outcome.passes() != all(program.passes):
        return f"passed {sorted(name for name in passed if passed[name])}, expected {program.passes}"
    timed_out = [test.id for test in results.tests if test.timeout is not None]
    if bool(timed_out) != (program.kind == "timing out"):
        return f"these tests timed out: {timed_out}"
    return None


def bare_seconds(folder: Path, programs: Sequence[Program]) -> float:
    """On one processor. The results have to be the known ones here, too."""
    file = folder / "main.py"
    began = time.perf_counter()
    with processors(1):
        for program in programs:
            file.write_text(program.source)
            for case, passes in zip(program.task.cases, program.passes, strict=True):
                if passes_bare([base_python(), str(file)], *case, None if passes else LIMIT_S) != passes:
                    raise BenchError(f"{program.task.name}, {program.kind}, case {case}: expected {passes}")
    return time.perf_counter() - began


def passes_bare(argv: Sequence[str], given: str, expected: str, limit_s: float | None) -> bool:
    """A case that is to pass has no limit: a busy machine would decide it."""
    try:
        done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and done.stdout.split() == expected.split()
