"""Rows of the leaderboard, from lines and identities."""

import pytest

from slop_code.comparison.leaderboard import AgentRun, QualityPoint, build_leaderboard
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy, parse_policy
from slop_code.evaluation.report import Digests
from slop_code.runs.checkpoint_lines import CheckpointLine, Regressions
from slop_code.runs.scb.agent_facts import AgentFacts, AgentIdentity
from tests.factories import counts

STRICT, ISOLATED, CORE = RatePolicy
AURORA, BASALT = AgentIdentity(model="aurora"), AgentIdentity(model="basalt")


def line(run, problem, number, passed, **fields):
    """`passed` counts the tests of the four groups that passed, of one in each; None for no verdict."""
    plain = {"state": "evaluated", "pass_counts": counts(*(passed or (0, 0, 0, 0))), "total_counts": counts(1, 1, 1, 1)}
    if passed is None:
        plain = {"state": "infrastructure_failure", "reason": "killed"}
    digests = Digests(submission=f"{run} {problem} {number}")
    names = {"run": run, "problem": problem, "checkpoint": f"checkpoint_{number}", "order": number}
    return CheckpointLine(**{"digests": digests, **plain, **names, **fields})


def agent_run(name, marks, identity=AURORA, **fields):
    """`{"words": "+-!"}`: + passes, - fails core, r fails regression, c passes only core, ! has no verdict."""
    tests = {"+": (1, 1, 1, 1), "-": (0, 1, 1, 1), "r": (1, 1, 1, 0), "c": (1, 0, 0, 0), "!": None}
    lines = [
        line(name, problem, number, tests[mark], **fields)
        for problem, checkpoints in marks.items()
        for number, mark in enumerate(checkpoints, start=1)
    ]
    return AgentRun(name, identity, lines)


def solved(row):
    return [(row.totals.rates[policy].solved, row.totals.rates[policy].share) for policy in RatePolicy]


def test_a_row_has_the_solved_checkpoints_by_each_rate():
    [row] = build_leaderboard([agent_run("monday", {"words": "+rc-"})]).rows
    assert solved(row) == [(1, 0.25), (2, 0.5), (3, 0.75)]
    assert row.totals.pass_rates[GroupType.CORE].rate == 0.75
    assert (row.missing, row.samples, row.problems) == (0, None, 1)


@pytest.mark.parametrize(
    ("identities", "expected"),
    [
        ([AURORA, AURORA], [["a", "b"]]),
        ([AURORA, BASALT], [["a"], ["b"]]),
        ([AURORA, AgentIdentity(model="aurora", thinking="high")], [["a"], ["b"]]),
        ([AURORA, AgentIdentity(model="aurora", provider="north")], [["a"], ["b"]]),
        ([AgentIdentity(), AgentIdentity()], [["a"], ["b"]]),
    ],
)
def test_runs_of_the_same_identity_are_samples_of_an_agent(identities, expected):
    runs = [agent_run(name, {"words": "+"}, identity) for name, identity in zip("ab", identities, strict=True)]
    assert sorted(row.runs for row in build_leaderboard(runs).rows) == expected


@pytest.mark.parametrize(
    ("identities", "expected"),
    [
        ([AURORA, BASALT], ["aurora", "basalt"]),
        ([AURORA, AgentIdentity(model="aurora", thinking="high")], ["aurora", "aurora, thinking high"]),
        (
            [AgentIdentity(model=model, agent="solo", prompt="brief") for model in ("aurora", "basalt")],
            ["aurora", "basalt"],
        ),
        (
            [AgentIdentity(model="aurora", provider=provider) for provider in ("north", "south")],
            ["aurora, from north", "aurora, from south"],
        ),
        ([AgentIdentity(agent="solo"), AgentIdentity()], ["solo", "b"]),
        ([AgentIdentity(agent="solo", version="1")], ["solo, version 1"]),
    ],
)
def test_a_name_has_the_parts_that_differ(identities, expected):
    runs = [agent_run(name, {"words": "+"}, identity) for name, identity in zip("ab", identities, strict=False)]
    assert sorted(row.name for row in build_leaderboard(runs).rows) == sorted(expected)


@pytest.mark.parametrize(
    ("runs", "missing", "shares"),
    [
        # the best share of the checkpoints that it has is no advantage to aurora
        ({"aurora": {"words": "++!!"}, "basalt": {"words": "+++-"}}, [0, 2], [0.75, 0.5]),
        ({"aurora": {"words": "++"}, "basalt": {"words": "++-+"}}, [0, 2], [0.75, 0.5]),
        ({"aurora": {"words": "++"}, "basalt": {"words": "++", "stars": "+-"}}, [0, 2], [0.75, 0.5]),
        ({"aurora": {"stars": "++"}, "basalt": {"words": "+-"}}, [2, 2], [0.5, 0.25]),
    ],
)
def test_a_missing_checkpoint_is_counted_and_never_helps(runs, missing, shares):
    made = [agent_run(name, marks, AgentIdentity(model=name)) for name, marks in runs.items()]
    rows = build_leaderboard(made).rows
    assert [row.missing for row in rows] == missing
    assert [row.totals.rates[STRICT].share for row in rows] == shares


def test_problems_that_a_run_lacks_are_named():
    runs = [
        agent_run("a", {"one": "+", "two": "+", "three": "+"}),
        agent_run("b", {"one": "+"}),
        agent_run("c", {"one": "+", "two": "+"}, BASALT),
    ]
    board = build_leaderboard(runs)
    assert (board.problems, board.checkpoints) == (["one", "three", "two"], 3)
    assert {row.name: (row.problems, row.missing_problems) for row in board.rows} == {
        "aurora": (3, {"b": ["three", "two"]}),
        "basalt": (2, {"c": ["three"]}),
    }


def test_a_copy_is_no_sample():
    first, other = agent_run("a", {"words": "+-"}), agent_run("c", {"words": "-+"})
    copy = AgentRun("b", AURORA, [line.model_copy(update={"run": "b"}) for line in first.lines])
    [row] = build_leaderboard([first, copy, other]).rows
    assert (row.runs, row.copies, row.totals.checkpoints.planned) == (["a", "c"], ["b"], 4)
    assert row.samples.runs == 2


def test_runs_whose_submissions_are_not_known_are_no_copies():
    runs = [agent_run(name, {"words": "+"}, digests=None) for name in "ab"]
    assert [(row.runs, row.copies) for row in build_leaderboard(runs).rows] == [(["a", "b"], [])]


@pytest.mark.parametrize(
    ("runs", "pass_at_2", "pass_hat_2"),
    [(["+-", "+-"], 0.5, 0.5), (["+-", "--"], 0.5, 0.0), (["++", "++"], 1.0, 1.0), (["++", "+"], 1.0, 0.5)],
)
def test_samples_have_pass_at_k_and_pass_hat_k(runs, pass_at_2, pass_hat_2):
    board = build_leaderboard([agent_run(str(number), {"words": marks}) for number, marks in enumerate(runs)])
    estimate = board.rows[0].samples.policies[STRICT].checkpoints
    assert board.k == 2
    assert (estimate.pass_at_k["2"], estimate.pass_hat_k["2"]) == (pass_at_2, pass_hat_2)
    assert (estimate.interval, estimate.variance) == (None, None)  # two runs say nothing about it


def test_three_runs_have_a_variance_and_an_interval():
    runs = [agent_run(str(number), {"words": marks}) for number, marks in enumerate(["++", "+-", "--"])]
    estimate = build_leaderboard(runs).rows[0].samples.policies[STRICT].checkpoints
    assert estimate.variance == 0.25
    assert estimate.interval.method == "t"


def test_k_is_one_that_all_rows_with_samples_have():
    runs = [agent_run(f"a{number}", {"words": "+"}) for number in range(6)]
    runs += [agent_run(f"b{number}", {"words": "+"}, BASALT) for number in range(4)]
    runs.append(agent_run("c", {"words": "+"}, AgentIdentity()))
    assert build_leaderboard(runs).k == 2  # of 1, 2, 5, 6 and 1, 2, 4
    assert build_leaderboard(runs[-1:]).k is None


def test_figures_are_means_over_the_checkpoints_that_have_them():
    run = agent_run("a", {"words": "+++"})
    facts = [AgentFacts(cost=1.0, input=10), AgentFacts(cost=2.0), None]
    run.lines = [line.model_copy(update={"agent": fact}) for line, fact in zip(run.lines, facts, strict=True)]
    figures = build_leaderboard([run]).rows[0].per_checkpoint
    assert [(figures[name].mean, figures[name].recorded) for name in ("cost", "input", "elapsed")] == [
        (1.5, 2),
        (10.0, 1),
        (None, 0),
    ]


@pytest.mark.parametrize(
    ("points", "expected", "recorded"),
    [
        ([], None, 0),
        ([("words", 1, 0.5)], None, 0),
        ([("words", 1, 0.25), ("words", 2, 0.5), ("words", 3, 0.75)], 0.25, 1),
        ([("words", 1, 0.0), ("words", 2, 0.5), ("stars", 1, 0.25), ("stars", 3, 0.25)], 0.25, 2),
        ([("words", 1, 0.0), ("words", 2, None), ("words", 3, 0.5)], 0.25, 1),
    ],
)
def test_a_slope_is_the_mean_over_problems(points, expected, recorded):
    run = agent_run("a", {"words": "+++", "stars": "+++"})
    run.quality = [QualityPoint(problem, order, value, None) for problem, order, value in points]
    slopes = build_leaderboard([run]).rows[0].slopes
    assert (slopes["erosion"].mean, slopes["erosion"].recorded) == (expected, recorded)
    assert slopes["verbosity"].mean is None


def test_a_checkpoint_with_incomplete_quality_is_in_no_slope_and_counted():
    run = agent_run("a", {"words": "+++"})
    run.quality = [QualityPoint("words", order, value, value) for order, value in ((1, 0.25), (2, None), (3, 0.75))]
    [row] = build_leaderboard([run]).rows
    assert (row.slopes["erosion"].mean, row.incomplete_quality) == (0.25, 1)


def test_of_equal_rows_the_one_that_misses_fewer_checkpoints_is_first():
    runs = [agent_run("a", {"words": "+!"}), agent_run("b", {"words": "+-"}, BASALT)]
    runs[1].lines[1] = line("b", "words", 2, (0, 0, 0, 0))
    assert [(row.name, row.missing) for row in build_leaderboard(runs).rows] == [("basalt", 0), ("aurora", 1)]


def test_broken_and_repaired_tests_are_summed_over_runs():
    changes = Regressions(since="checkpoint_1", introduced=2, repaired=1)
    runs = [agent_run(name, {"words": "+"}, regressions=changes) for name in "ab"]
    regressions = build_leaderboard(runs).rows[0].totals.regressions
    assert (regressions.introduced, regressions.repaired) == (4, 2)


def test_the_first_policy_decides_the_order():
    policy = parse_policy("core == 1 and regression == 0")
    runs = [agent_run("a", {"words": "++"}), agent_run("b", {"words": "rr"}, BASALT)]
    assert [row.name for row in build_leaderboard(runs).rows] == ["aurora", "basalt"]
    board = build_leaderboard(runs, [policy])
    assert [(row.name, row.totals.passed[policy].count) for row in board.rows] == [("basalt", 2), ("aurora", 0)]


def test_ties_are_ordered_by_isolated_then_core_then_name():
    marks = {"d": "--", "c": "cc", "b": "rr", "a2": "rr", "a10": "rr"}
    runs = [agent_run(name, {"words": text}, AgentIdentity()) for name, text in marks.items()]
    assert [row.name for row in build_leaderboard(runs).rows] == ["a2", "a10", "b", "c", "d"]
