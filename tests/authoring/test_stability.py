"""Flipping tests: detection, causes, and the command that reproduces them."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from slop_code.authoring.check.findings import Finding, Location
from slop_code.authoring.check.stability.conditions import (
    AS_IS,
    Condition,
    ConditionKind,
    ReferenceRun,
    conditions_for,
    reproduce_command,
    run_under,
    seeds_from,
    why_not_parallel,
    with_pairs,
)
from slop_code.authoring.check.stability.flips import (
    MAX_REPEATED,
    Cause,
    cause_of,
    conditions_to_repeat,
    first_odd_seed,
    flipping_tests,
    odd_runs,
)
from slop_code.authoring.check.stability.stability_rules import (
    FLAKY,
    LOAD,
    LOST,
    ORDER,
    ObservedRuns,
    lost_verdict_findings,
    needless_quarantine_findings,
    pass_counts_text,
    undecided_group_findings,
)
from slop_code.authoring.check.stability.stability_rules import PARALLEL as PARALLEL_RULE
from slop_code.authoring.check.stability.stability_step import add_to_quarantine, first_runs
from slop_code.authoring.check.steps import check_step
from slop_code.authoring.check.workbench import Effort, Workbench
from slop_code.cli.main import parser
from slop_code.errors import UsageError
from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.problem.quarantine import Quarantine, QuarantinedTest, quarantine_path, read_quarantine
from slop_code.execution import EnvironmentSpec
from slop_code.execution.processors import available_cpus
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from tests.authoring.conftest import SOUND
from tests.authoring.reference_results import case, judged

if TYPE_CHECKING:
    from collections.abc import Callable

TEST = "test_checkpoint_1.py::test_second"
BUSY = Condition(ConditionKind.BUSY)
PARALLEL = Condition(ConditionKind.PARALLEL, pairs=2)


def order(seed: int) -> Condition:
    return Condition(ConditionKind.ORDER, seed=seed)


def runs(*conditions: tuple[Condition, str], alone: tuple[tuple[Condition, str], ...] = ()) -> list[ReferenceRun]:
    """`(AS_IS, "++-")`: three runs of one test, which passed twice."""
    whole = [ReferenceRun(condition, {TEST: one == "+"}) for condition, marks in conditions for one in marks]
    return [
        *whole,
        *[ReferenceRun(condition, {TEST: one == "+"}, alone=TEST) for condition, marks in alone for one in marks],
    ]


@pytest.mark.parametrize(
    ("conditions", "alone", "cause"),
    [
        ([(AS_IS, "+++"), (order(1), "+"), (BUSY, "+"), (PARALLEL, "+")], (), None),
        ([(AS_IS, "---"), (order(1), "-"), (BUSY, "-"), (PARALLEL, "-")], (), None),
        ([(AS_IS, "+-+")], (), Cause.CHANCE),
        ([(AS_IS, "-++")], (), Cause.CHANCE),
        ([(AS_IS, "+-+"), (order(1), "--"), (BUSY, "--")], (), Cause.CHANCE),
        ([(AS_IS, "+++"), (order(1), "-+")], (), Cause.CHANCE),
        ([(AS_IS, "+++"), (order(1), "--"), (order(2), "-+")], (), Cause.CHANCE),
        ([(AS_IS, "+++"), (order(1), "--"), (order(2), "+")], (), Cause.ORDER),
        ([(AS_IS, "---"), (order(1), "++")], (), Cause.ORDER),
        ([(AS_IS, "+++"), (order(1), "--")], ((order(1), "+"),), Cause.ORDER),
        ([(AS_IS, "+++"), (order(1), "--")], ((order(1), "-"), (AS_IS, "-")), Cause.ORDER),
        ([(AS_IS, "+++"), (order(1), "--")], ((order(1), "-"), (AS_IS, "+")), Cause.SEED),
        ([(AS_IS, "+++"), (order(1), "--"), (BUSY, "--"), (PARALLEL, "--")], (), Cause.ORDER),
        ([(AS_IS, "+++"), (BUSY, "--")], (), Cause.LOAD),
        ([(AS_IS, "+++"), (BUSY, "-+-")], (), Cause.LOAD),
        ([(AS_IS, "+++"), (BUSY, "-++")], (), Cause.CHANCE),
        ([(AS_IS, "+++"), (BUSY, "--"), (PARALLEL, "--")], (), Cause.LOAD),
        ([(AS_IS, "+++"), (BUSY, "++"), (PARALLEL, "--")], (), Cause.PARALLEL),
        ([(AS_IS, "+++"), (BUSY, "++"), (PARALLEL, "-+")], (), Cause.CHANCE),
    ],
)
def test_the_cause_of_a_flaky_test_follows_from_its_runs(conditions, alone, cause):
    found = runs(*conditions, alone=alone)
    assert cause_of(found, TEST) is cause
    assert flipping_tests(found) == ([TEST] if cause else [])


@pytest.mark.parametrize(
    ("conditions", "again"),
    [
        ([(AS_IS, "++"), (order(1), "+"), (BUSY, "+")], []),
        ([(AS_IS, "+-"), (order(1), "-"), (BUSY, "-")], []),
        ([(AS_IS, "++"), (order(1), "+"), (order(2), "-"), (order(3), "-")], [AS_IS, order(2)]),
        ([(AS_IS, "++"), (order(1), "-"), (BUSY, "--"), (PARALLEL, "-")], [AS_IS, order(1), BUSY, PARALLEL]),
    ],
)
def test_what_is_tried_again(conditions, again):
    assert conditions_to_repeat(runs(*conditions), [TEST]) == again


def test_however_many_flip_little_is_tried_again():
    names = [f"test_checkpoint_1.py::test_{number}" for number in range(50)]
    every = dict.fromkeys(names, True)
    found = [
        ReferenceRun(AS_IS, every),
        ReferenceRun(AS_IS, every),
        *[ReferenceRun(order(n), every | {names[n]: False}) for n in range(50)],
    ]
    assert conditions_to_repeat(found, names) == [AS_IS, *[order(number) for number in range(MAX_REPEATED)]]


def test_the_odd_run_is_the_one_that_differs_from_most():
    conditions = runs((AS_IS, "-++"), (BUSY, "+"))
    assert odd_runs(conditions, TEST) == conditions[:1]


def test_the_seed_that_shows_it():
    assert first_odd_seed(runs((AS_IS, "++"), (order(7), "+"), (order(8), "-"), (order(9), "-")), TEST) == 8
    assert first_odd_seed(runs((AS_IS, "++"), (BUSY, "-")), TEST) is None


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ([(AS_IS, "+-+"), (BUSY, "++")], "passed in 2 of 3 runs as it is"),
        (
            [(AS_IS, "+++"), (order(4), "--"), (order(5), "+"), (order(6), "-"), (PARALLEL, "-")],
            "passed in 3 of 3 runs as it is, 1 of 4 in another order (not with seeds 4, 6), 0 of 1 in parallel",
        ),
        ([(AS_IS, "---"), (order(4), "+")], "passed in 0 of 3 runs as it is, 1 of 1 in another order"),
    ],
)
def test_how_often_in_words(conditions, words):
    assert pass_counts_text(runs(*conditions), TEST) == words


def environment(**keys: object) -> EnvironmentSpec:
    return EnvironmentSpec.model_validate({"type": "local", "name": "test", **keys})


@pytest.mark.parametrize(
    ("repeat", "seed", "seeds"),
    [(1, 1, [0]), (3, 1, [0, 1, 2]), (3, 7, [0, 7, 8]), (3, 0, [0, 1, 2]), (3, -1, [0, -1, 1]), (0, 1, [])],
)
def test_the_reverse_comes_first_and_other_orders_follow_from_the_seed(repeat, seed, seeds):
    assert seeds_from(Effort(repeat=repeat, seed=seed)) == seeds


def test_every_condition_is_repeated():
    found = conditions_for(environment(), Effort(repeat=2, seed=7))
    assert found[:6] == [AS_IS, AS_IS, order(0), order(7), BUSY, BUSY]
    assert [one.kind for one in found[6:]] == [ConditionKind.PARALLEL] * (2 if available_cpus() > 1 else 0)
    assert all(2 <= one.pairs <= available_cpus() for one in found[6:])
    assert [one.seed for one in found[6:]] == [None, 7][: len(found) - 6], "divided as usual, then at random"


@pytest.mark.parametrize("keys", [{"isolation": "none"}, {"network": "full"}])
def test_one_network_leaves_out_parallel_tests_and_says_so(keys):
    assert ConditionKind.PARALLEL not in [one.kind for one in conditions_for(environment(**keys), Effort())]
    assert "one network" in str(why_not_parallel(environment(**keys)))


@pytest.mark.parametrize(
    ("keys", "pairs", "expected"),
    [
        ("", 1, (1, "file")),
        ("", 3, (3, "test")),
        ("parallel: 8\n", 3, (3, "file")),
        ("parallel: auto\n", 3, (3, "test")),
        ("parallel: auto\nparallel_by: file\n", 3, (3, "file")),
    ],
)
def test_tests_are_split_as_the_author_allows(authored, keys, pairs, expected):
    folder = authored()
    with (folder / "config.yaml").open("a") as config:
        config.write(keys)
    problem = with_pairs(ProblemConfig.from_yaml(folder), pairs)
    assert (problem.parallel, problem.parallel_by) == expected
    assert problem.path == folder


@pytest.mark.parametrize(
    ("condition", "test", "options"),
    [
        (AS_IS, None, []),
        (AS_IS, "test_a.py::TestB::test_c[d::e]", ["-k", "test_c"]),
        (AS_IS, "test_a.py::odd name", []),
        (order(7), TEST, ["--seed", "7", "-k", "test_second"]),
        (BUSY, None, ["--busy"]),
        (PARALLEL, TEST, ["--parallel", "2"]),
        (Condition(ConditionKind.PARALLEL, 3, 2), TEST, ["--seed", "3", "--parallel", "2"]),
    ],
)
def test_the_command_is_one_that_the_command_line_takes(bench, condition, test, options):
    one = bench()
    words = shlex.split(reproduce_command(one, one.checkpoints[0], condition, test))
    assert words == ["slop-code", "problems", "run", str(one.problem.path), "-c", "checkpoint_1", *options]
    taken = parser().parse_args(words[1:])
    assert (taken.checkpoint, taken.seed, taken.busy) == ("checkpoint_1", condition.seed, condition == BUSY)
    assert taken.parallel == condition.pairs


def flip(rule, test):
    location = Location("tests/test_checkpoint_1.py", 5)
    return Finding(rule, location, "it flips", checkpoint="checkpoint_1", test=test, measured="flips\x1b[2J")


PARALLEL_TESTS = {"config.yaml": SOUND["config.yaml"] + "parallel: 2\n"}


@pytest.mark.parametrize(
    ("rule", "declared", "taken"),
    [
        (FLAKY, {}, True),
        (LOAD, {}, True),
        (ORDER, {}, False),
        (ORDER, PARALLEL_TESTS, False),
        (PARALLEL_RULE, {}, False),
        (PARALLEL_RULE, PARALLEL_TESTS, True),
        (LOST, PARALLEL_TESTS, False),
    ],
)
def test_the_quarantine_gets_what_may_flip_in_an_evaluation(bench, rule, declared, taken):
    one = bench(declared)
    path = quarantine_path(one.problem)
    assert add_to_quarantine(one, [flip(rule, TEST)]) == (path if taken else None)
    assert path.exists() is taken


def test_the_quarantine_keeps_what_it_has(bench):
    one = bench()
    kept = QuarantinedTest(test="test_checkpoint_1.py::test_one_word", reason="by hand")
    Quarantine(tests=(kept,)).save(quarantine_path(one.problem))
    found = [
        flip(LOAD, TEST),
        flip(FLAKY, "test_checkpoint_1.py::test_a[1]"),
        flip(FLAKY, TEST),
        flip(FLAKY, "test_checkpoint_1.py::test_one_word"),
        flip(LOST, "test_checkpoint_1.py::test_lost"),
    ]
    assert add_to_quarantine(one, found) == quarantine_path(one.problem)
    quarantine = read_quarantine(one.problem)
    assert [entry.test.partition("::")[2] for entry in quarantine.tests] == [
        "test_a[1]",
        "test_one_word",
        "test_second",
    ]
    assert quarantine.tests[1] == kept
    assert quarantine.tests[2].reason.startswith("load-dependent-test: flips")
    before = quarantine_path(one.problem).stat().st_mtime_ns
    assert add_to_quarantine(one, found) is None
    assert quarantine_path(one.problem).stat().st_mtime_ns == before


def test_a_name_that_no_quarantine_can_hold_is_told(bench):
    with pytest.raises(UsageError, match="rename"):
        add_to_quarantine(bench(), [flip(FLAKY, "a:b.py::test_c")])


QUARANTINE = {
    "tests/flaky.json": json.dumps(
        {
            "schema_version": 1,
            "tests": [
                {"test": TEST, "reason": ""},
                {"test": "test_checkpoint_1.py::test_gone", "reason": ""},
            ],
        },
        indent=1,
    )
}


@pytest.mark.parametrize(
    ("conditions", "lines"),
    [([(AS_IS, "++")], [5]), ([(AS_IS, "++"), (BUSY, "-")], []), ([], [])],
    ids=["steady", "flips", "not seen"],
)
def test_needless_entries_of_the_quarantine(bench, conditions, lines):
    """Of a test that nobody has seen, such as that of another checkpoint, nothing is known."""
    one = bench(QUARANTINE)
    seen = [ObservedRuns(one.checkpoints[0], tuple(runs(*conditions)))] if conditions else []
    assert [
        finding.location.line for finding in needless_quarantine_findings(one, seen, read_quarantine(one.problem))
    ] == lines


BARE = {"environment.yaml": "type: local\nname: bare\nisolation: none\n"}
PLANTS = """\
import os

SEEN = []


def test_first():
    SEEN.append("first")


def test_second():
    assert "first" in SEEN


def test_spoilt():
    assert "spoilt" not in SEEN


def test_spoils():
    SEEN.append("spoilt")


class TestSteps:
    def test_one(self):
        SEEN.append("one")

    def test_two(self):
        assert "one" in SEEN


def test_seeded():
    # Python's hashes are such a thing.
    assert "PYTHONHASHSEED" not in os.environ
"""


@pytest.mark.long
def test_planted_flips_are_told_apart_with_the_command_that_shows_them(bench: Callable[..., Workbench], cache):
    one = bench(BARE, {"tests/test_checkpoint_1.py": PLANTS}, repeat=1)
    events: list[ProgressEvent] = []
    one.progress = events.append
    report = check_step(one, "stability")
    found = {str(finding.test).rpartition("::")[2]: finding for finding in report.outcome.findings}
    rules = {"test_second": ORDER, "test_spoilt": ORDER, "test_seeded": FLAKY}
    assert {name: finding.rule for name, finding in found.items()} == rules
    repeats = [event for event in events if event.kind is ProgressKind.REPEAT_TESTS]
    assert (repeats[1].count, repeats[1].name) == (1, "in another order, seed 0")
    spread = report.outcome.facts["checkpoints"]["checkpoint_1"]["seconds"]["test_checkpoint_1.py::test_first"]
    assert 0 <= spread["min"] <= spread["median"] <= spread["max"]
    json.dumps(report.outcome.facts)
    seeds = {parser().parse_args(shlex.split(_again(finding))[1:]).seed for finding in found.values()}
    assert seeds == {0}


def _again(finding: Finding) -> str:
    return next(
        line.removeprefix("reproduce: ") for line in finding.detail.splitlines() if line.startswith("reproduce: ")
    )


CHANCE = """\
import os

import pytest


def test_fails():
    assert False


@pytest.mark.parametrize("number", range(24))
def test_by_chance(number):
    assert os.urandom(1)[0] % 2
"""
KNOWN = {"tests/flaky.json": '{"tests": [{"test": "test_checkpoint_1.py::test_by_chance"}]}'}


@pytest.mark.parametrize(
    ("text", "fact"),
    [(CHANCE, "1 of 1 tests fail"), ("import nowhere\n", "no verdict on the reference")],
    ids=["fails", "no verdict"],
)
def test_with_a_reference_that_always_fails_nothing_can_be_said(bench, cache, text, fact):
    """What flips under quarantine does not make it one that fails by chance."""
    one = bench(BARE, KNOWN, {"tests/test_checkpoint_1.py": text})
    with pytest.raises(UsageError, match=f"{fact}.*fix that first"):
        first_runs(one, one.checkpoints[0])


def test_a_lost_verdict_has_its_place_in_a_file_that_is_there(bench):
    one = bench()
    tests = one.problem.path / "tests"
    (tests / "test_checkpoint_1.py").rename(tests / "test_checkpoint_1_words.py")
    lost = ObservedRuns(
        one.checkpoints[0], (ReferenceRun(AS_IS, {TEST: True}), ReferenceRun(BUSY, {}, lost="pytest exited with 3"))
    )
    [finding] = lost_verdict_findings(one, lost)
    assert finding.location == Location("tests/test_checkpoint_1_words.py", 1)


def test_a_lost_verdict_is_located_at_the_test_that_was_running(bench, cache):
    one = bench(BARE, {"tests/test_checkpoint_1.py": "import os\n\n\ndef test_ends_pytest():\n    os._exit(3)\n"})
    lost = run_under(one, one.checkpoints[0], AS_IS)
    assert (bool(lost.lost), lost.running) == (True, "test_checkpoint_1.py::test_ends_pytest")
    [finding] = lost_verdict_findings(one, ObservedRuns(one.checkpoints[0], (lost,)))
    assert (finding.location, finding.test) == (Location("tests/test_checkpoint_1.py", 4), lost.running)


APART = {"markers": ["quarantined"]}


@pytest.mark.parametrize(
    ("tests", "groups"),
    [
        ([], []),
        ([case("a", **APART), case("b")], []),
        ([case("a", **APART), case("b", group="E")], ["Core"]),
        ([case("a", **APART), case("b", "failed", group="E", **APART)], ["Core", "Error"]),
    ],
    ids=["none", "one of two", "all of a group", "all"],
)
def test_groups_in_which_nothing_decides(tests, groups):
    assert [finding.message.split()[4] for finding in undecided_group_findings(judged(*tests))] == groups
