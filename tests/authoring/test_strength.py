"""Mutants evaluated for real, and what is said about them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from slop_code.authoring.check.control_programs import CONTROLS, CRASH
from slop_code.authoring.check.steps import check_step
from slop_code.authoring.check.strength.mutant import Edit, Mutant
from slop_code.authoring.check.strength.mutant_trials import (
    MAX_UNBUILT,
    TriedMutant,
    deciding_tests,
    mutant_result,
    should_continue,
    try_mutants,
    with_short_timeouts,
)
from slop_code.authoring.check.strength.python_solution import unparsed_files
from slop_code.authoring.check.strength.strength_step import (
    STEP,
    StrengthResult,
    TriedControl,
    control_result,
    facts,
    strength_of,
    summary_lines,
    try_controls,
)
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation import CheckpointConfig, GroupType, TestResult
from slop_code.execution import EnvironmentSpec
from tests.authoring.conftest import SOUND
from tests.authoring.reference_results import case, judged

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
    "solutions/checkpoint_1/main.sh": '[ $# -gt 0 ] || exit 2\necho "$*"\n',
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
ECHO = {
    "solutions/checkpoint_1/main.py": """\
import sys

words = sys.argv[1:]
if len(words) == 0:
    sys.exit(2)
print(*words)
""",
    "tests/test_checkpoint_1.py": SHELL["tests/test_checkpoint_1.py"],
}


def mutant(bench, file: str, old: str, new: str) -> Mutant:
    text = (bench.solution(bench.checkpoints[0]) / file).read_text(encoding="utf-8")
    start = text.index(old)
    return Mutant(file, text, Edit(start, start + len(old), new, "planted"))


@pytest.mark.long
def test_an_endless_loop_ends_and_is_caught(bench, cache, need_bubblewrap):
    need_bubblewrap()
    own = bench(ENDLESS, jobs=1)
    [checkpoint] = own.checkpoints
    [tried], unbuilt = try_mutants(own, checkpoint, [mutant(own, "main.py", "place += 1", "pass")], 1, float("inf"))
    assert (tried.caught, unbuilt) == (True, 0)
    assert tried.ended is not None
    assert tried.ended.startswith("session timeout of 3 s")


@pytest.mark.long
def test_mutants_are_counted_by_group_and_a_test_that_never_fails_is_found(bench, cache, need_bubblewrap):
    need_bubblewrap()
    report = check_step(bench(ECHO, budget="5", jobs=2), "strength")
    facts = report.outcome.facts["checkpoints"]["checkpoint_1"]
    assert (facts["tried"], facts["groups"]["Functionality"]) == (5, {"tests": 1, "caught": 0, "alone": 0})
    assert facts["groups"]["Core"]["alone"] > 0
    # Only the test that no mutant made fail is tried with them.
    programs = [each.name for each in (*CONTROLS, CRASH)]
    assert facts["controls"] == [{"control": name, "failed": 0, "no_verdict": None} for name in programs]
    assert facts["unfailing"] == ["test_checkpoint_1.py::test_anything_goes"]
    [finding] = report.outcome.findings
    assert (finding.rule.id, finding.location.line) == ("unfailing-test", 15)
    assert json.loads(json.dumps(report.outcome.facts)) == report.outcome.facts


@pytest.mark.long
def test_a_test_that_never_fails_is_found_with_a_solution_in_another_language(bench, cache, need_bubblewrap):
    need_bubblewrap()
    report = check_step(bench(SHELL, jobs=2), "strength")
    assert report.undone is None
    assert report.outcome.summary[0] == "checkpoint_1: no mutants: only Python solutions are mutated"
    assert [finding.rule.id for finding in report.outcome.findings] == ["unfailing-test"]


@pytest.mark.long
def test_a_mutant_whose_set_up_fails_is_not_counted(bench, cache, need_bubblewrap):
    need_bubblewrap()
    compiled = f"{SHELL['environment.yaml']}setup: {{commands: [sh -n main.sh]}}\n"
    own = bench(SHELL, {"environment.yaml": compiled, "solutions/checkpoint_1/tool.py": "WORD = 1\n"}, jobs=1)
    broken = Mutant("main.sh", "", Edit(0, 0, "WORD = (1)\n", "planted"))
    other = mutant(own, "tool.py", "1", "2")
    # No time is left from the beginning on, which suffices for one mutant, and the first counts as none.
    [tried], unbuilt = try_mutants(own, own.checkpoints[0], [broken, other, broken], None, end=0.0)
    assert (unbuilt, tried.mutant, tried.failed) == (1, other, frozenset())


@pytest.mark.long
def test_a_test_that_only_looks_for_a_traceback_fails_with_a_crash(bench, cache, need_bubblewrap):
    need_bubblewrap()
    test = "def test_quiet(run):\n    done = run('hello')\n    assert 'Traceback' not in done.stdout + done.stderr\n"
    own, only = bench(SHELL, {"tests/test_checkpoint_1.py": test}, jobs=2), ("test_checkpoint_1.py::test_quiet",)
    assert [tried.control for tried in try_controls(own, own.checkpoints[0], only) if tried.failed] == [CRASH]


def test_a_reference_that_fails_a_test_has_no_mutants(bench, cache, need_bubblewrap):
    need_bubblewrap()
    wrong = "\n\ndef test_wrong(run):\n    assert run('hello').stdout == ''\n"
    with pytest.raises(UsageError, match=r"^1 of 4 tests fail with the reference of checkpoint_1"):
        STEP.run(bench({"tests/test_checkpoint_1.py": SOUND["tests/test_checkpoint_1.py"] + wrong}))


NEW = {"checkpoint": "checkpoint_2", "file_path": "test_checkpoint_2.py"}
CORE, OTHER, ERROR = case("core", **NEW), case("other", **NEW), case("error", group="E", **NEW)
OLD = case("old", group="R")
MUTANT = Mutant("main.py", "a = 1\n", Edit(4, 5, "2", "number"))


def names(*tests: TestResult) -> frozenset[str]:
    return frozenset(test.nodeid for test in tests)


def tried(*tests: TestResult, ended: str | None = None) -> TriedMutant:
    return TriedMutant(MUTANT, names(*tests), ended)


def strength(*outcomes: TriedMutant, controls: tuple[TriedControl, ...] = ()) -> StrengthResult:
    return StrengthResult("checkpoint_2", [CORE, OTHER, ERROR, OLD], 9, outcomes, 0, controls)


def test_caught_mutants_are_counted_by_group():
    found = strength(tried(CORE, OTHER), tried(CORE, ERROR), tried(OLD), tried(), tried(ended="too long"))
    assert (found.caught, len(found.survivors)) == (4, 1)
    assert found.groups() == {
        GroupType.CORE: (2, 2, 1),
        GroupType.ERROR: (1, 1, 0),
        GroupType.REGRESSION: (1, 1, 1),
    }
    assert list(summary_lines(found))[:2] == [
        "checkpoint_2: 4 of 5 mutants caught, 9 possible",
        "  caught by Core 2 (1 alone), Error 1 (0 alone), Regression 1 (1 alone)",
    ]
    assert list(summary_lines(found))[2:] == [
        "  survived: main.py:1 number",
        *(f"    {line}" for line in MUTANT.diff.splitlines()),
    ]


@pytest.mark.parametrize(
    ("by_mutants", "by_controls", "unfailing"),
    [
        ([CORE, OTHER, ERROR], [], []),
        ([CORE], [ERROR], [OTHER]),
        ([], [CORE, OTHER, ERROR], []),
        ([], [], [CORE, OTHER, ERROR]),  # never the old one: it was tried where it belongs
    ],
)
def test_tests_that_no_mutant_and_no_control_fails_are_unfailing(by_mutants, by_controls, unfailing):
    controls = (TriedControl(CRASH, names(*by_controls)),)
    assert strength(tried(*by_mutants), controls=controls).unfailing == unfailing


def test_a_control_program_without_a_verdict_is_in_summary_and_facts():
    found = strength(controls=(TriedControl(CRASH, names(CORE), "box gone\nand more"),))
    assert list(summary_lines(found))[-1] == f"  no verdict on {CRASH.about}: box gone"
    assert facts(found)[1]["controls"][0]["no_verdict"] == "box gone"


def test_files_that_slop_code_s_own_python_cannot_parse_are_in_summary_and_facts(tmp_path):
    (tmp_path / "main.py").write_text("x = 1\n")
    (tmp_path / "newer.py").write_text("type type = (\n")
    found = replace(strength(tried(CORE)), unparsed=unparsed_files(tmp_path))
    assert list(summary_lines(found))[1].startswith("  no mutants of newer.py: Python 3.")
    assert facts(found)[1]["unparsed"] == ["newer.py"]


def test_a_solution_that_slop_code_s_own_python_cannot_parse_leaves_the_step_undone(bench):
    own = bench({"solutions/checkpoint_1/main.py": "type type = (\n"})
    [checkpoint] = own.checkpoints
    with pytest.raises(InfrastructureError, match=r"checkpoint_1: no mutants of main.py: Python 3.*cannot parse it"):
        strength_of(own, checkpoint, own.effort.budget, float("inf"))


FAILED, NEVER = case("other", "failed", **NEW), case("error", "error", group="E", **NEW)
REFERENCE = judged(CORE, OTHER, ERROR)
BOXES = {"sandbox": "bubblewrap"}


@pytest.mark.parametrize(
    ("reason", "exit_code", "isolation", "expected"),
    [
        (None, 1, BOXES, tried(OTHER, ERROR)),
        ("session timeout of 20 s", -1, BOXES, tried(ended="session timeout of 20 s")),
        ("interrupted", 2, BOXES, tried(ended="interrupted")),
        ("internal error", 3, BOXES, tried(ended="internal error")),
        ("conftest refused", 4, BOXES, tried(ended="conftest refused")),
        ("no tests", 5, BOXES, tried(ended="no tests")),
        ("collection failed", 2, {}, "collection failed"),
        ("no report", 1, BOXES, "no report"),
        ("box gone", 124, BOXES, "box gone"),
        ("no boxes", 125, BOXES, "no boxes"),
        ("killed", 137, BOXES, "killed"),
        ("killed", -9, BOXES, "killed"),
    ],
)
def test_what_a_mutant_is_to_blame_for(reason, exit_code, isolation, expected):
    """Where it ended, no single test caught it: some were never run."""
    about = {"pytest_exit_code": exit_code, "isolation": isolation}
    outcome = judged(CORE, FAILED, NEVER, reason=reason).model_copy(update=about)
    assert mutant_result(MUTANT, REFERENCE, outcome) == expected


def test_what_cannot_be_evaluated_is_not_tried():
    assert mutant_result(MUTANT, REFERENCE, InfrastructureError("disk full")) == "disk full"


@pytest.mark.parametrize(
    ("found", "unbuilt", "most", "late", "more"),
    [
        (0, 0, 1, False, True),
        (1, 0, 1, False, False),
        (19, 0, 20, False, True),
        (0, 0, None, True, True),
        (0, 2, None, False, True),
        (0, MAX_UNBUILT, None, True, True),
        (0, MAX_UNBUILT + 1, None, False, False),
        (0, MAX_UNBUILT, 1, False, True),
        (0, MAX_UNBUILT + 1, 1, False, False),
        (0, 40, 20, False, True),
        (0, 41, 20, False, False),
        (15, 30, None, False, True),
        (15, 31, None, False, False),
        (1, 0, None, True, False),
        (1, 0, 20, True, False),
    ],
)
def test_how_long_it_goes_on(found, unbuilt, most, late, more):
    assert should_continue(found, unbuilt, most, late=late) is more


OWN = (CORE.nodeid, OTHER.nodeid, ERROR.nodeid)


@pytest.mark.parametrize(
    ("outcome", "failed", "no_verdict"),
    [
        (judged(CORE, OTHER, ERROR), (), None),
        (judged(CORE, FAILED, ERROR), (OTHER,), None),
        (judged(CORE, FAILED, NEVER, reason="box gone"), (OTHER, ERROR), "box gone"),
        (judged(CORE, OTHER, ERROR, reason="no report"), (), "no report"),
        (InfrastructureError("disk full"), (CORE, OTHER, ERROR), "disk full"),
    ],
    ids=["all pass", "one fails", "some never ran", "no report", "no evaluation"],
)
def test_tests_that_fail_with_a_control_program(outcome, failed, no_verdict):
    assert control_result(CRASH, OWN, outcome) == TriedControl(CRASH, names(*failed), no_verdict)


def test_all_survivors_are_facts_and_a_few_are_told():
    found = strength(*[tried()] * 12)
    assert list(summary_lines(found))[-1] == "  and 2 more"
    name, all_of_it = facts(found)
    assert (name, len(all_of_it["mutants"])) == ("checkpoint_2", 12)


def test_only_tests_that_pass_and_decide_can_catch():
    others = [case("failed", "failed"), case("skipped", "skipped"), case("flaky", markers=["quarantined"])]
    assert deciding_tests(judged(CORE, *others)) == [CORE]


@pytest.mark.parametrize(
    ("longest", "whole", "given", "environment", "timeout", "session"),
    [
        (0.01, 1.0, {"timeout": 30}, {}, 5, 20),
        (0.9, 7.0, {"timeout": 30}, {}, 10, 40),
        (0.9, 7.0, {"timeout": 3}, {}, 3, 40),
        (0.01, 1.0, {"timeout": 30, "session_timeout": 8}, {}, 5, 8),
        (0.01, 1.0, {"timeout": 30}, {"test": 600, "session": 3600}, 5, 20),
        (0.9, 7.0, {"timeout": 3, "session_timeout": 8}, {"test": 4, "session": 9}, 4, 9),
    ],
)
def test_mutants_get_the_time_of_the_reference_many_times_over(longest, whole, given, environment, timeout, session):
    reference = judged(case("quick", seconds=0.001), case("slow", seconds=longest), whole=whole)
    spec = EnvironmentSpec.model_validate({"type": "local", "name": "test", "timeouts": environment})
    found = with_short_timeouts(spec, CheckpointConfig(**given), reference).timeouts
    assert (found.test, found.session) == (timeout, session)
