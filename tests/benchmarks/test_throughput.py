"""The workload of short programs, the processor time of a process tree, and the search for growth."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.__main__ import parser, positive
from benchmarks.measuring import BenchError
from benchmarks.setting import Bench
from benchmarks.throughput.growth import GrowthSample, check_nothing_is_left, growth_rows, leftovers
from benchmarks.throughput.processor_time import descendants, processor_time
from benchmarks.throughput.programs import MIXTURE, generated_programs, generated_tasks
from benchmarks.throughput.short_programs import bare_seconds, checked
from benchmarks.throughput.task_families import FAMILIES, SIZES
from benchmarks.throughput.tiny_evaluations import check
from benchmarks.whole_runs import runs_of_larger
from slop_code import EvaluatorOutcome, EvaluatorRequest
from slop_code.errors import InfrastructureError
from tests.factories import case, result

BURN = "import time\nwhile time.process_time() < 0.3:\n    pass\n"
BURNT_S = 0.25
TIMEOUT = {"kind": "call", "limit_s": 2.0}


@pytest.fixture(scope="module")
def programs():
    """One of each kind, of one task."""
    (task,) = generated_tasks(1)
    return {program.kind: program for program in generated_programs(task)}


def outcome(program, passes, *, timed_out=(), index=0, **fields):
    """As an evaluation of this program would give it."""
    tests = [
        case(
            f"test_case[{number}]",
            "passed" if passed else "failed",
            **({"timeout": TIMEOUT} if number in timed_out else {}),
        )
        for number, passed in enumerate(passes)
    ]
    request = EvaluatorRequest({"main.py": program.source}, program.task.name, 1)
    return EvaluatorOutcome(index, request, result(tests, **fields))


def test_the_whole_workload_has_two_thousand_programs_in_a_fixed_mixture():
    """A wrong program that no case notices raises."""
    tasks = list(generated_tasks(100))
    made = [program for task in tasks for program in generated_programs(task)]
    assert len({program.source for program in made}) == len(made) == 2000
    assert Counter(program.kind for program in made) == {kind: 100 * count for kind, count in MIXTURE.items()}
    assert len({task.name for task in tasks}) == 100
    assert len({task.family.name for task in tasks}) == len(FAMILIES) == 20
    assert {len(task.cases) for task in tasks} == {len(SIZES)}
    assert all(output.strip() for task in tasks for _, output in task.cases)
    assert all(all(program.passes) == (program.kind in ("right", "slow")) for program in made)


def test_the_workload_is_the_same_each_time():
    first, second = ([generated_programs(task) for task in generated_tasks(3)] for _ in range(2))
    assert first == second


def test_an_edit_that_changes_nothing_is_refused():
    (task,) = generated_tasks(1)
    same = replace(task, family=replace(task.family, edits=(("print", "print"),)))
    with pytest.raises(ValueError, match="no case notices"):
        generated_programs(same)


def test_a_bare_process_that_does_not_do_what_is_known_of_it_has_no_figure(programs, tmp_path):
    mistaken = replace(programs["crashing"], passes=(True,) * len(SIZES))
    with pytest.raises(BenchError, match=r"crashing, case .*: expected True"):
        bare_seconds(tmp_path, [mistaken])


def test_known_results_are_accepted(programs):
    chosen = [programs["wrong"], programs["timing out"]]
    outcomes = [outcome(chosen[0], chosen[0].passes), outcome(chosen[1], chosen[1].passes, timed_out=(9,), index=1)]
    assert [found.passed["all-cases"] for found in checked(outcomes, chosen)] == [False, False]


@pytest.mark.parametrize(
    ("kind", "passes", "more"),
    [
        ("wrong", [True] * 10, {}),
        ("slow", [True] * 9, {}),
        ("slow", [True] * 9 + [False], {}),
        ("slow", [True] * 11, {}),
        ("crashing", [False] * 10, {"timed_out": (3,)}),
        ("timing out", [True] * 9 + [False], {}),
        ("slow", [True] * 10, {"infrastructure_failure": True, "infrastructure_failure_reason": "no boxes"}),
    ],
)
def test_any_other_result_has_no_figure(kind, passes, more, programs):
    program = programs[kind]
    with pytest.raises(BenchError, match=f"1 of 1 results are wrong, of 1 programs\n{program.task.name}, {kind}: "):
        list(checked([outcome(program, passes, **more)], [program]))


def test_an_outcome_without_a_result_or_none_at_all_has_no_figure(programs):
    request = EvaluatorRequest({"main.py": ""}, "words", 1)
    failed = EvaluatorOutcome(0, request, error=InfrastructureError("the disk is full"))
    with pytest.raises(BenchError, match="the disk is full"):
        list(checked([failed], [programs["slow"]]))
    with pytest.raises(BenchError, match="0 of 0 results are wrong, of 1 programs"):
        list(checked([], [programs["slow"]]))


@pytest.mark.parametrize(
    ("tests", "isolation", "message"),
    [
        ("-", {"judge_and_subject_apart": True, "judge": "collected"}, "why"),
        ("+", {"judge_and_subject_apart": False, "judge": "collected"}, "not in two boxes"),
        ("+", {"judge_and_subject_apart": True, "judge": "cold"}, "not in two boxes"),
    ],
)
def test_a_tiny_evaluation_without_full_isolation_has_no_figure(tests, isolation, message):
    with pytest.raises(BenchError, match=message):
        check(result(tests, isolation=isolation), "why")


def test_processor_time_of_children_that_ended_and_that_live_is_counted():
    before = processor_time()
    subprocess.run([sys.executable, "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])"])
    ended = processor_time().since(before)
    assert ended.total - ended.evaluator >= BURNT_S
    living = f"{BURN}print(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", living], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert child.pid in {process.pid for process in descendants()}
        more = processor_time().since(before)
        child.communicate(b"\n")
    assert more.templates >= BURNT_S
    assert more.total - ended.total >= BURNT_S


def test_a_process_or_a_session_that_is_left_over_is_an_error(cache):
    before = leftovers()
    check_nothing_is_left(before)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        with pytest.raises(BenchError, match=f"left over after the evaluations: process {child.pid}"):
            check_nothing_is_left(before)
        child.communicate()
    folder = cache.sessions / f"left-by-{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        with pytest.raises(BenchError, match=folder.name):
            check_nothing_is_left(before)
    finally:
        folder.rmdir()


def test_growth_is_the_ratio_of_the_last_sample_to_the_first():
    first, middle, last = (GrowthSample(size, size, size, size, size, size) for size in (2.0, 9.0, 3.0))
    found = growth_rows("an hour", [first, middle, last])
    assert [row.samples for row in found[:2]] == [(2.0,), (3.0,)]
    assert [row.against for row in found[:2]] == [None, "an hour: memory of the evaluator, after the first tenth"]
    assert len(found) == 2 * 6


@pytest.mark.parametrize(("wanted", "runs"), [(None, 10), (1000, 100), (1001, 101), (5, 1)])
def test_the_larger_run_has_the_requested_checkpoints(wanted, runs, tmp_path):
    assert runs_of_larger(Bench(tmp_path, tiny_checkpoints=wanted), 10) == runs


def test_options_set_the_duration_and_the_size():
    given = parser().parse_args(["--only", "i", "--soak", "3600", "--tiny", "1000"])
    assert (given.only, given.soak, given.tiny) == (["i"], 3600, 1000)
    for text in ("0", "-1", "1.5", "many", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="expected a number above 0"):
            positive(text)
