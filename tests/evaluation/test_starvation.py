"""Failures that are believed or not, and the verdict after a repetition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slop_code.evaluation.grading import NO_MEMORY, NO_PROCESSOR, GradingRules, grade
from slop_code.evaluation.reports.raw_test import RawTest
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.usage.repeat_tests import with_earlier_tests
from slop_code.evaluation.usage.resources import Resources, StruckLimit, TestTimeout, Usage
from slop_code.evaluation.usage.starvation import is_starved, to_repeat, waited_for_others
from slop_code.reporting.resource_text import attempt_lines
from tests.evidence_records import evidence_of, exit_of

RULES = GradingRules.with_markers(["checkpoint_1"], "checkpoint_1", {})
SLOW, OTHER = "test_checkpoint_1.py::test_slow", "test_checkpoint_1.py::test_other"
ROSTER = Roster((RosterEntry(OTHER, (), 1), RosterEntry(SLOW, (), 1)))


def used(*, ran=1.0, waited=8.0, judge=0.0, others=20.0, limit=10.0, kind="call", threads=1, **keys):
    keys = {"judge_cpu_s": 0.1, "stolen_s": 0.0, "processors": 4, **keys}
    keys |= dict.fromkeys(("memory_bytes", "written_bytes", "disk_bytes")) | {"processes": threads}
    usage = Usage(cpu_s=ran, wait_s=waited, judge_wait_s=judge, others_cpu_s=others, **keys)
    return Resources(usage=usage, timeout=TestTimeout(kind=kind, limit_s=limit) if limit else None)


def killed(limit=None):
    """The kernel ended a call, for this limit of the box or because the machine had no memory left."""
    struck = StruckLimit(kind="memory" if limit else "out_of_memory", limit=limit, call="main.py")
    return Resources(limits=(struck,))


def pair(status="failed", resources=None, *, other="passed", share=None, memory=None, calls=(), **more):
    """The evidence of two tests, of which the slow one has this status."""
    tests = [RawTest(OTHER, other, 1.0), RawTest(SLOW, status, 2.0, message="too late", calls=tuple(calls))]
    code = int(bool({status, other} & {"failed", "error"}))
    evidence = evidence_of(*tests, roster=ROSTER, exit_code=code, **more)
    evidence.stream.resources[SLOW] = resources or used()
    free = {"processor_share": share, "memory_share": memory}
    return replace(evidence, exit=exit_of(code).model_copy(update=free))


def slow_test(*evidence):
    first, *repeats = evidence
    graded = grade([first], ROSTER, RULES, repeats)
    return graded, next(test for test in graded.tests if test.id == "test_slow")


@pytest.mark.parametrize(
    ("status", "resources", "calls", "expected"),
    [
        pytest.param("failed", used(), (), True, id="waited for most of the limit"),
        pytest.param("error", used(), (), True, id="in a fixture"),
        pytest.param("passed", used(), (), False, id="passed all the same"),
        pytest.param("failed", used(limit=None), (), False, id="no time limit struck"),
        pytest.param("failed", used(waited=2.4), (), False, id="waited for less than a quarter"),
        pytest.param("failed", used(waited=2.0, judge=1.0), (), True, id="the judge waited, too"),
        pytest.param("failed", used(waited=500.0, others=1.0), (), False, id="its threads waited for each other"),
        pytest.param("failed", used(waited=0.0, stolen_s=15.0, others=4.0), (), True, id="its host took the processor"),
        pytest.param("failed", used(waited=0.0, stolen_s=15.0), (), False, id="its host took it from others"),
        pytest.param("failed", used(judge_cpu_s=10.0), ("one",), False, id="the judge ran for longer than the limit"),
        pytest.param("failed", used(ran=10.0), ("one",), False, id="ran for longer than the limit"),
        pytest.param("failed", used(ran=10.0), ("one", "two"), True, id="two calls ran for longer than a limit of one"),
        pytest.param("failed", used(ran=10.0, kind="test"), ("one", "two"), False, id="a limit of the whole test"),
        pytest.param("failed", used(ran=19.0, threads=2), (), True, id="two threads ran for less than the limit"),
        pytest.param("failed", used(ran=20.0, threads=2), (), False, id="two threads ran for longer"),
        pytest.param("failed", used(ran=40.0, threads=99), (), False, id="four processors ran for longer"),
        pytest.param("failed", used(ran=5.0, processors=0.5), (), False, id="half a processor is its limit"),
        pytest.param("failed", used(ran=39.0, threads=None), (), True, id="an unknown number of threads"),
        pytest.param("failed", used(ran=None, waited=None), (), True, id="the spawner did not answer"),
        pytest.param("failed", used(ran=None, waited=None, others=2.4), (), False, id="others did little"),
        pytest.param("failed", used(waited=None), (), False, id="there is no spawner"),
        pytest.param("failed", used(waited=None, judge=3.0), (), True, id="there is no spawner, and the judge waited"),
        pytest.param("failed", Resources(), (), False, id="not measured"),
        pytest.param("failed", killed(), (), True, id="the machine had no memory"),
        pytest.param("error", killed(), (), True, id="no memory in a fixture"),
        pytest.param("passed", killed(), (), False, id="passed without the killed call"),
        pytest.param("failed", killed(1 << 30), (), False, id="its own memory limit"),
    ],
)
def test_starved(status, resources, calls, expected):
    _, test = slow_test(pair(status, resources, calls=calls))
    assert is_starved(test) is expected


def test_only_waiting_that_others_caused_counts():
    _, test = slow_test(pair(resources=used(waited=30.0, others=4.0)))
    assert waited_for_others(test) == 4.0


def test_only_what_the_repetition_says_counts():
    graded, test = slow_test(pair(), pair("passed", used(limit=None)))
    assert (test.status, graded.exit_code, graded.infrastructure_failure_reason) == ("passed", 0, None)
    assert [(attempt.status, attempt.failure_message) for attempt in test.attempts] == [("failed", "too late")]


@pytest.mark.parametrize(("again", "exit_code"), [("passed", 0), ("failed", 1)])
def test_the_repetition_decides_every_test_that_did_not_pass(again, exit_code):
    """The other test may have failed for a fixture that both use, or for what the starved one should have left."""
    graded, slow = slow_test(pair(other="error"), pair("passed", used(limit=None), other=again))
    other = next(test for test in graded.tests if test.id == "test_other")
    assert [(test.status, [attempt.status for attempt in test.attempts]) for test in (slow, other)] == [
        ("passed", ["failed"]),
        (again, ["error"]),
    ]
    assert (graded.exit_code, other.attempts[0].timeout) == (exit_code, None)
    assert attempt_lines(other) == ["ran again, alone: at first it did not pass while another test was starved"]


@pytest.mark.parametrize(("resources", "expected"), [(used(), [OTHER, SLOW]), (used(waited=0.0), [])])
def test_if_a_test_is_starved_all_that_did_not_pass_are_repeated(resources, expected):
    graded, _ = slow_test(pair(resources=resources, other="skipped"))
    assert [test.nodeid for test in to_repeat(graded.tests)] == expected


def test_a_repetition_changes_no_test_that_was_believed():
    graded, test = slow_test(pair(resources=used(waited=0.0)), pair("passed"))
    assert (test.status, test.attempts, graded.exit_code) == ("failed", [], 1)


@pytest.mark.parametrize(
    ("resources", "share", "memory", "expected"),
    [
        pytest.param(used(), 0.5, 1, NO_PROCESSOR, id="a busy machine"),
        pytest.param(used(), 0.9, 0, None, id="only the submission's own processes say that it waited"),
        pytest.param(used(waited=0.0), 0.5, 1, None, id="it did not wait: it hangs"),
        pytest.param(used(ran=10.0), 0.5, 1, None, id="it ran for longer than the limit"),
        pytest.param(killed(), 1, 0.9, NO_MEMORY, id="a machine without memory"),
        pytest.param(killed(), 0, 1, None, id="only a container without memory, or another's kill"),
        pytest.param(killed(1 << 30), 1, 0.9, None, id="its own memory limit"),
    ],
)
def test_a_test_that_is_starved_again(resources, share, memory, expected):
    graded, test = slow_test(pair(), pair(resources=resources, share=share, memory=memory))
    reason = graded.infrastructure_failure_reason
    assert (test.status, reason and reason.partition(": ")[0]) == ("failed", expected)
    assert len(test.attempts) == 1


def test_an_attempt_that_had_no_memory_says_so():
    _, test = slow_test(pair(resources=killed()), pair("passed", used(limit=None)))
    assert test.status == "passed"
    assert attempt_lines(test) == [
        "ran again, alone: at first it lost a process to the kernel, as the machine had no memory left"
    ]


def test_a_repetition_without_a_verdict_gives_none():
    graded, _ = slow_test(pair(), replace(pair(), exit=exit_of(3)))
    assert graded.infrastructure_failure_reason.startswith(
        "starved tests could not be repeated: pytest had an internal"
    )


def test_a_repetition_has_the_tests_before_it_in_the_same_file():
    names = ["test_a.py::one", "test_a.py::two", "test_a.py::three", "test_b.py::one", "test_b.py::two"]
    roster = Roster(tuple(RosterEntry(name, (), 2) for name in names))
    chosen = with_earlier_tests(roster, ["test_a.py::two", "test_b.py::one"])
    assert [entry.nodeid for entry in chosen.entries] == ["test_a.py::one", "test_a.py::two", "test_b.py::one"]
    assert {entry.pair for entry in chosen.entries} == {1}
