"""Mutants evaluated for real, and what is said about them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from slop_code.authoring.check import check_problem
from slop_code.authoring.mutants.behaviour import DISTORTIONS
from slop_code.authoring.mutants.edit import Edit, Mutant
from slop_code.authoring.mutants.trying import Distorted, Tried, hurried, telling, try_distortions, try_mutants
from slop_code.authoring.steps.strength import Strength, facts, told
from slop_code.evaluation import CheckpointConfig, GroupType, TestResult

ENDLESS = {
    "config.yaml": """\
name: shout
version: 1
description: Prints its arguments in capitals.
tags: [cli]
entry_file: main
timeout: 2
session_timeout: 3
checkpoints: {checkpoint_1: {}}
""",
    "solutions/checkpoint_1/main.py": """\
import sys

if len(sys.argv) == 1:
    sys.exit("shout: no words")
place = 1
while place < len(sys.argv):
    print(sys.argv[place].upper())
    place += 1
""",
    "tests/test_checkpoint_1.py": """\
def test_words(run):
    assert run("hello", "you").stdout == "HELLO\\nYOU\\n"


def test_one_word(run):
    assert run("hello").stdout == "HELLO\\n"
""",
}
SHELL = {
    "environment.yaml": """\
type: local
name: shell
commands: {entry_file: "{entry_file}.sh", command: sh}
""",
    "solutions/checkpoint_1/main.py": None,
    "solutions/checkpoint_1/main.sh": 'unused=x\n[ $# -gt 0 ] || exit 2\necho "$*"\n',
    "tests/test_checkpoint_1.py": """\
import pytest


def test_words(run):
    assert run("hello").stdout == "hello\\n"


@pytest.mark.error
def test_no_words(run):
    done = run()
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.functionality
def test_anything_goes(run):
    assert len(run("hello").stdout) >= 0
""",
}


def mutant(bench, file: str, old: str, new: str) -> Mutant:
    text = (bench.solution(bench.checkpoints[0]) / file).read_text(encoding="utf-8")
    start = text.index(old)
    return Mutant(file, text, Edit(start, start + len(old), new, "planted"))


def test_an_endless_loop_ends_and_is_caught(bench, cache, need_bubblewrap):
    need_bubblewrap()
    own = bench(ENDLESS, jobs=1)
    [checkpoint] = own.checkpoints
    [tried], unbuilt = try_mutants(own, checkpoint, [mutant(own, "main.py", "place += 1", "pass")], 1, float("inf"))
    assert (tried.caught, unbuilt) == (True, 0)
    assert tried.ended is not None
    assert tried.ended.startswith("session timeout of 3 s")


def test_a_shell_solution(bench, cache, need_bubblewrap):
    need_bubblewrap()
    [report] = check_problem(bench(SHELL, budget="5", jobs=2), ["strength"])
    found = report.outcome.facts["checkpoints"]["checkpoint_1"]
    assert (found["made"], found["tried"], found["caught"]) == (9, 5, 4)
    assert [one["line"] for one in found["mutants"] if not one["caught"]] == [1]
    assert found["groups"]["Functionality"] == {"tests": 1, "caught": 0, "alone": 0}
    assert found["groups"]["Core"]["alone"] > 0
    assert [one["failed"] for one in found["distorted"]] == [2, 1, 0, 1, 2, 2]
    assert found["unfailing"] == ["test_checkpoint_1.py::test_anything_goes"]
    [finding] = report.outcome.findings
    assert (finding.rule.id, finding.place.line) == ("unfailing-test", 15)
    assert "  no test notices a program that prints nothing on stderr" in report.outcome.summary
    assert "    -unused=x" in report.outcome.summary
    assert json.loads(json.dumps(report.outcome.facts)) == report.outcome.facts


def test_what_cannot_be_set_up_is_no_mutant(bench, cache, need_bubblewrap):
    need_bubblewrap()
    compiled = f"{SHELL['environment.yaml']}setup: {{commands: [sh -n main.sh]}}\n"
    own = bench(SHELL, {"environment.yaml": compiled}, jobs=1)
    mutants = [mutant(own, "main.sh", '"$*"', '"$*'), mutant(own, "main.sh", '"$*"', '"~$*"')]
    more = [mutant(own, "main.sh", "exit 2", f"exit {status}") for status in range(3, 9)]
    # It is too late for a second batch, not for the first.
    [tried], unbuilt = try_mutants(own, own.checkpoints[0], [*mutants, *more], 2, end=0.0)
    assert unbuilt == 1
    assert tried.mutant == mutants[1]
    assert tried.failed == {"test_checkpoint_1.py::test_words"}


def test_a_program_that_bears_no_wrapper_is_not_distorted(bench, cache, need_bubblewrap):
    """As a server does not, that has to be the process which is terminated."""
    need_bubblewrap()
    own_process = "import os\nprint(open(f'/proc/{os.getppid()}/cmdline').read().partition('\\0')[0] == 'sh')\n"
    test = "def test_parent(run):\n    assert run().stdout == 'False\\n'\n"
    own = bench({"solutions/checkpoint_1/main.py": own_process, "tests/test_checkpoint_1.py": test}, jobs=1)
    assert try_distortions(own, own.checkpoints[0]) == []


def result(name: str, group: GroupType, *, status: str = "passed", home: str = "checkpoint_2", **more) -> TestResult:
    return TestResult(
        id=name, checkpoint=home, group_type=group, status=status, duration_ms=1,
        file_path=f"test_{home}.py", **{"markers": [], **more},
    )  # fmt: skip


CORE, OTHER = result("core", GroupType.CORE), result("other", GroupType.CORE)
ERROR, OLD = result("error", GroupType.ERROR), result("old", GroupType.REGRESSION, home="checkpoint_1")
MUTANT = Mutant("main.py", "a = 1\n", Edit(4, 5, "2", "number"))


def tried(*tests: TestResult, ended: str | None = None) -> Tried:
    return Tried(MUTANT, frozenset(test.nodeid for test in tests), ended)


def strength(*outcomes: Tried, distorted: list[Distorted] | None = None) -> Strength:
    return Strength("checkpoint_2", [CORE, OTHER, ERROR, OLD], 9, outcomes, 0, distorted or [])


def test_counts_by_group():
    found = strength(tried(CORE, OTHER), tried(CORE, ERROR), tried(OLD), tried(), tried(CORE, ERROR, ended="too long"))
    assert (found.caught, len(found.survivors)) == (4, 1)
    assert found.groups() == {
        GroupType.CORE: (2, 2, 1),
        GroupType.ERROR: (1, 1, 0),
        GroupType.REGRESSION: (1, 1, 1),
    }
    assert list(told(found))[:2] == [
        "checkpoint_2: 4 of 5 mutants caught, 9 possible",
        "  caught by Core 2 (1 alone), Error 1 (0 alone), Regression 1 (1 alone)",
    ]
    assert list(told(found))[2:] == [
        "  survived: main.py:1 number",
        *(f"    {line}" for line in MUTANT.diff.splitlines()),
    ]


@pytest.mark.parametrize(
    ("by_mutants", "by_distortions", "unfailing"),
    [
        ([CORE, OTHER, ERROR], [], []),
        ([CORE], [ERROR], [OTHER]),
        ([], [CORE, OTHER, ERROR], []),
        ([], [], [CORE, OTHER, ERROR]),  # never the old one: it was tried where it belongs
    ],
)
def test_unfailing(by_mutants, by_distortions, unfailing):
    distorted = [Distorted(DISTORTIONS[0], frozenset(test.nodeid for test in by_distortions))]
    assert strength(tried(*by_mutants), distorted=distorted).unfailing == unfailing
    assert strength(tried(*by_mutants)).unfailing == []


def test_all_survivors_are_facts_and_a_few_are_told():
    found = strength(*[tried()] * 12)
    assert list(told(found))[-1] == "  and 2 more"
    name, all_of_it = facts(found)
    assert (name, len(all_of_it["mutants"])) == ("checkpoint_2", 12)


def test_only_tests_that_pass_and_decide_can_catch():
    tests = [
        CORE,
        result("failed", GroupType.CORE, status="failed"),
        result("skipped", GroupType.CORE, status="skipped"),
        result("flaky", GroupType.CORE, markers=["quarantined"]),
    ]
    assert telling(SimpleNamespace(tests=tests)) == [CORE]


@pytest.mark.parametrize(
    ("longest_ms", "phase", "given", "timeout", "session"),
    [
        (10, 1.0, {"timeout": 30}, 5, 20),
        (900, 7.0, {"timeout": 30}, 10, 40),
        (900, 7.0, {"timeout": 3}, 3, 40),
        (10, 1.0, {"timeout": 30, "session_timeout": 8}, 5, 8),
    ],
)
def test_mutants_get_the_time_of_the_reference_many_times_over(longest_ms, phase, given, timeout, session):
    test = CORE.model_copy(update={"duration_ms": longest_ms})
    reference = SimpleNamespace(tests=[CORE, test], phases={"tests": phase})
    found = hurried(CheckpointConfig(**given), reference)
    assert (found.timeout, found.session_timeout) == (timeout, session)
