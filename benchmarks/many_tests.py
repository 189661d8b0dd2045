"""(e) A checkpoint of few tests and of many: time against bare pytest, and peak memory of evaluator and judge.

The tests do nothing, so all the time is that of pytest and slop-code: no ratio of real tests is as large.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

from benchmarks.bare import Bare, prepared_venv
from benchmarks.measuring import Spent, ours, peak_in
from benchmarks.table import Part, rows
from benchmarks.tiny import PEAK, write_problem, write_submission

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.setting import Bench
    from slop_code.evaluation import ProblemConfig

TITLE = "tests that do nothing, as `slop-code eval-snapshot`, bubblewrap"
TESTS = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_number(number):
    assert number >= 0
"""


def measure(bench: Bench) -> Part:
    venv, submission, measured = prepared_venv(bench), write_submission(bench.folder("submission")), []
    for count in bench.size((10, 100, 1000, 10_000), (10, 1000), (10,)):
        bench.print_step(f"{count} tests")
        tests = {"test_checkpoint_1.py": TESTS.format(count=count)}
        problem = write_problem(bench.folder("many") / "problem", tests, conftest=PEAK)
        side = Bare.of(bench.folder("bare"), problem, problem.checkpoint(1), submission)
        taken: dict[str, list[float]] = defaultdict(list)
        peaks: dict[str, list[float]] = defaultdict(list)
        rounds = bench.size(5 if count < 10_000 else 2, 1, 1)
        for number in range(-bench.size(1, 1, 0), rounds):
            bare, (evaluator, judge) = run_bare(side, venv), run_ours(bench, problem, submission)
            if number >= 0:
                taken[f"{count:,} tests: bare pytest"].append(bare.seconds)
                taken[f"{count:,} tests: ours"].append(evaluator.seconds)
                peaks[f"{count:,} tests, memory: bare pytest"].append(bare.mebibytes)
                peaks[f"{count:,} tests, memory: the judge's pytest"].append(judge)
                peaks[f"{count:,} tests, memory: the evaluator"].append(evaluator.mebibytes)
        measured += rows(taken, against=next(iter(taken)))
        measured += rows(peaks, unit="MiB", against=next(iter(peaks)))
    return Part("e", TITLE, tuple(measured))


def run_bare(side: Bare, venv: Path) -> Spent:
    began = time.perf_counter()
    printed = side.run(venv)
    return Spent(time.perf_counter() - began, peak_in(printed))


def run_ours(bench: Bench, problem: ProblemConfig, submission: Path) -> tuple[Spent, float]:
    out = bench.folder("out")
    spent = ours("eval-snapshot", submission, "-p", problem.path, "-c", "1", "-o", out)
    return spent, peak_in((out / ".scbench/pytest.log").read_text())
