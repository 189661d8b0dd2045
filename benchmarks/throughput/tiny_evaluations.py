"""(i) Tiny evaluations per second and core in a running evaluator with full isolation, beside bare pytest."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.bare import Bare, prepared_venv
from benchmarks.many_tests import TESTS
from benchmarks.measuring import BenchError, in_turns, processor_seconds
from benchmarks.processors import on_processors
from benchmarks.setting import SALTS
from benchmarks.table import Part, Row
from benchmarks.throughput.growth import check_nothing_is_left, growth, leftovers
from benchmarks.throughput.processor_time import processor_time
from benchmarks.throughput.short_programs import RATE
from benchmarks.tiny import MAIN, write_problem, write_submission
from slop_code import Evaluator, EvaluatorRequest
from slop_code.execution.processors import available_cpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from benchmarks.setting import Bench
    from slop_code.evaluation import CorrectnessResults, ProblemConfig

TITLE = "tiny evaluations in a running evaluator, bubblewrap"
TESTS_OF_ONE = (1, 10)
JUDGE_SAMPLES = 5
WARM_UP = 3
PROCESSOR = '''

def pytest_unconfigure():
    """Processor time of this process in seconds, printed after all reports."""
    import resource
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"\\nPROCESSOR {used.ru_utime + used.ru_stime}", file=sys.__stdout__, flush=True)
'''


@dataclass(frozen=True, slots=True)
class TinyEvaluator:
    """One tiny problem in an evaluator, which several may share."""

    evaluator: Evaluator
    problem: ProblemConfig
    tests: int

    def request(self) -> EvaluatorRequest:
        """With a submission that was never evaluated before."""
        return EvaluatorRequest({"main.py": f"{MAIN}# {next(SALTS)}\n".encode()}, self.problem, 1)

    def outcomes(self, chosen: Iterable[TinyEvaluator]) -> Iterator[bool]:
        """True for each evaluation; anything but a pass in two boxes with a forked judge has no figure."""
        for outcome in self.evaluator.map(tiny.request() for tiny in chosen):
            check(outcome.results, str(outcome.error))
            yield True

    def evaluate(self, count: int) -> None:
        if sum(self.outcomes([self] * count)) != count:
            raise BenchError("an evaluation has no outcome")

    def warm_up(self) -> None:
        """The second evaluation starts the template."""
        for _ in range(WARM_UP):
            self.evaluator.evaluate(self.request().submission, self.problem, 1)


def check(results: CorrectnessResults | None, error: str) -> None:
    if results is None or not results.passed["all-cases"]:
        raise BenchError((results and results.infrastructure_failure_reason) or error)
    isolation = results.isolation
    if not isolation["judge_and_subject_apart"] or isolation["judge"] != "collected":
        raise BenchError(f"not in two boxes with a collected judge: {isolation}")


def measure(bench: Bench) -> Part:
    measured: list[Row] = []
    before = leftovers()
    problems = {count: tiny_problem(bench, count) for count in TESTS_OF_ONE}
    for count, problem in problems.items():
        bench.print_step(f"{count} test{'s' * (count > 1)}")
        measured += throughput(bench, problem, count)
    bench.print_step("growth")
    with Evaluator(environment=bench.environment("bubblewrap")) as evaluator:
        tiny = [TinyEvaluator(evaluator, problem, count) for count, problem in problems.items()]
        for each in tiny:
            each.warm_up()
        measured += growth(tiny, bench.soak_s or bench.size(30, 5, 1))
    check_nothing_is_left(before)
    return Part("i", TITLE, tuple(measured))


def tiny_problem(bench: Bench, count: int) -> ProblemConfig:
    tests = {"test_checkpoint_1.py": TESTS.format(count=count)}
    return write_problem(bench.folder("tiny") / f"tests{count}", tests, conftest=PROCESSOR)


def throughput(bench: Bench, problem: ProblemConfig, tests: int) -> list[Row]:
    """As many workers as processors, so that a rate can be divided by them."""
    submission, name = write_submission(bench.folder("submission")), f"{tests} test{'s' * (tests > 1)}"
    bare = Bare.of(bench.folder("bare"), problem, problem.checkpoint(1), submission)
    run_bare, count = functools.partial(bare.run, prepared_venv(bench)), bench.size(40, 10, 2)
    actions: dict[str, Callable[[], object]] = {f"{name}: bare pytest, 1 processor": on_processors(1, run_bare)}
    units = dict.fromkeys(actions, 1.0)
    with contextlib.ExitStack() as stack:
        for workers in sorted({1, 2, available_cpus()}):
            cores = min(workers, available_cpus())
            evaluator = stack.enter_context(Evaluator(workers, bench.environment("bubblewrap")))
            tiny = TinyEvaluator(evaluator, problem, tests)
            on_processors(cores, tiny.warm_up)()
            what = f"{name}: {workers} worker{'s' * (workers > 1)}, {cores} processor{'s' * (cores > 1)}"
            actions[what] = on_processors(cores, functools.partial(tiny.evaluate, count))
            units[what] = count / cores
        times = in_turns(actions, bench.size(5, 1, 1), warm=0)
        split = processor_rows(bench, TinyEvaluator(evaluator, problem, tests), name, run_bare)
    base = next(iter(times))
    rates = {what: tuple(units[what] / value for value in values) for what, values in times.items()}
    return [*(Row(what, RATE, values, None if what == base else base) for what, values in rates.items()), *split]


def processor_rows(bench: Bench, tiny: TinyEvaluator, name: str, run_bare: Callable[[], object]) -> list[Row]:
    """Processor time of one evaluation, and whose it is."""
    base, count = f"{name}, processor time: bare pytest", bench.size(100, 20, 2)
    bare = [1000 * processor_seconds(run_bare) for _ in range(bench.size(5, 3, 1))]
    judges, subjects = judge_and_subject(bench, tiny)
    before = processor_time()
    tiny.evaluate(count)
    spent = processor_time().since(before)
    total, evaluator, template = (1000 * value / count for value in (spent.total, spent.evaluator, spent.templates))
    judge, subject = sum(judges) / len(judges), sum(subjects) / len(subjects)
    shares = {
        "ours": total,
        "ours, the evaluator": evaluator,
        "ours, the template": template,
        "ours, the judge": judge,
        "ours, the submission": subject,
        "ours, the boxes and the start of the judge": max(0.0, total - evaluator - template - judge - subject),
    }
    return [
        Row(base, "ms", tuple(bare)),
        *(Row(f"{name}, processor time: {what}", "ms", (value,), base) for what, value in shares.items()),
    ]


def judge_and_subject(bench: Bench, tiny: TinyEvaluator) -> tuple[list[float], list[float]]:
    """Milliseconds of the judge's own process, which prints them, and of the submission, as the result has them."""
    judges, subjects = [], []
    for _ in range(JUDGE_SAMPLES):
        out = bench.folder("out")
        results = tiny.evaluator.evaluate(tiny.request().submission, tiny.problem, 1, output=out)
        check(results, "")
        log = (out / ".scbench/pytest.log").read_text()
        judges.append(1000 * float(log.rpartition("PROCESSOR ")[2].split()[0]))
        subjects.append(1000 * sum(test.usage.cpu_s or 0.0 for test in results.tests if test.usage is not None))
    return judges, subjects
