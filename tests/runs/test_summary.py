import json

import pytest

import slop_code
from slop_code.errors import ResultError
from slop_code.evaluation.policy import PassPolicy
from slop_code.evaluation.report import Digests
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, Regressions
from slop_code.runs.jobs.job_records import RunIssue
from slop_code.runs.scb.agent_facts import AgentFacts
from slop_code.runs.statistics import mean_bounds, wilson
from slop_code.runs.summary import RunSummary, summarise, totals_of

ALL, CORE = PassPolicy.ALL_CASES, PassPolicy.CORE_CASES
NO_TESTS = {"passed": 0, "total": 0, "rate": None}


def line(run, problem, order, *, passed=(), state="evaluated", **more):
    """`passed`: the policies."""
    return CheckpointLine(
        run=run,
        problem=problem,
        checkpoint=f"checkpoint_{order}",
        order=order,
        state=state,
        passed={policy: policy in passed for policy in PassPolicy},
        **more,
    )


def lines_of(table):
    """`{"monday": {"words": "+-"}}`: for each checkpoint whether all its cases passed."""
    return [
        line(run, problem, order, passed=(ALL,) if mark == "+" else ())
        for run, problems in table.items()
        for problem, marks in problems.items()
        for order, mark in enumerate(marks, start=1)
    ]


def samples(table, problem=None, issues=()):
    summary = summarise(lines_of(table), issues, samples=True)
    found = (summary.problems[problem] if problem else summary).samples
    return found.policies[ALL] if found else None


def test_totals_are_sums_over_checkpoints():
    lines = [
        line(
            "monday", "words", 1, passed=(ALL, CORE), duration=4.0,
            pass_counts={"Core": 3}, total_counts={"Core": 3},
        ),
        line(
            "monday", "words", 2, passed=(CORE,), duration=1.0, attempts=3, limits={"memory": 2, "disk": 1}, timeouts=2,
            pass_counts={"Core": 2, "Regression": 1}, total_counts={"Core": 2, "Regression": 3},
            regressions=Regressions(since="checkpoint_1", introduced=2, repaired=0),
        ),
        line(
            "monday", "words", 3, duration=2.5, not_looked_at_again="no such problem", limits={"memory": 1}, repeated=1,
            pass_counts={"Core": 0}, total_counts={"Core": 1},
            regressions=Regressions(since="checkpoint_2", introduced=1, repaired=4),
        ),
        line(
            "monday", "words", 4, state="infrastructure_failure", reason="killed", passed=(ALL,), duration=99.0,
            attempts=2, pass_counts={"Core": 9}, total_counts={"Core": 9},
            regressions=Regressions(since="checkpoint_3", introduced=9, repaired=9),
        ),
        line("monday", "words", 5, state="not_evaluated", reason="stopped", attempts=0),
    ]  # fmt: skip
    assert totals_of(lines).model_dump(mode="json") == {
        "checkpoints": {
            "planned": 5,
            "evaluated": 3,
            "infrastructure_failures": 1,
            "not_evaluated": 1,
            "not_looked_at_again": 1,
        },
        "passed": {
            policy: {"count": {ALL: 1, CORE: 2}.get(policy, 0), "rate": {ALL: 0.2, CORE: 0.4}.get(policy, 0.0)}
            for policy in PassPolicy
        },
        "rates": {
            "strict": {"solved": 1, "share": 0.2, "mean": 8 / 15},
            "isolated": {"solved": 2, "share": 0.4, "mean": 2 / 3},
            "core": {"solved": 2, "share": 0.4, "mean": 2 / 3},
        },
        "pass_rates": {
            "Core": {"passed": 5, "total": 6, "rate": 5 / 6},
            "Functionality": NO_TESTS,
            "Error": NO_TESTS,
            "Regression": {"passed": 1, "total": 3, "rate": 1 / 3},
        },
        "regressions": {"compared": 2, "introduced": 3, "repaired": 4},
        "retried": 2,
        "limits": {"memory": 3, "processes": 0, "disk": 1, "output": 0, "out_of_memory": 0},
        "timeouts": 2,
        "repeated": 1,
        "durations": {"total": 7.5, "mean": 2.5, "median": 2.5, "longest": 4.0},
        "agent": None,
    }


def test_totals_of_the_agent_are_sums_over_checkpoints_that_record_the_figure():
    lines = [
        line("monday", "words", 1, agent=AgentFacts(cost=1.5, output=10, elapsed=60.0)),
        line("monday", "words", 2, agent=AgentFacts(cost=0.5, steps=3)),
        line("monday", "words", 3, state="not_evaluated", reason="stopped", attempts=0),
    ]
    totals = totals_of(lines).agent
    assert totals is not None
    known = {name: value for name, value in totals.model_dump().items() if value is not None}
    assert known == {"recorded": 2, "cost": 2.0, "steps": 3.0, "output": 10.0, "elapsed": 60.0}


def test_a_checkpoint_without_tests_of_a_rate_is_not_solved_and_not_in_its_mean():
    tests = {"pass_counts": {"Regression": 2}, "total_counts": {"Regression": 2}}
    rates = totals_of([line("monday", "words", 1, **tests)]).model_dump(mode="json")["rates"]
    assert rates == {
        "strict": {"solved": 1, "share": 1.0, "mean": 1.0},
        "isolated": {"solved": 0, "share": 0.0, "mean": None},
        "core": {"solved": 0, "share": 0.0, "mean": None},
    }


def test_totals_without_checkpoints_are_zero():
    found = totals_of([]).model_dump(mode="json")
    assert found["checkpoints"] == dict.fromkeys(found["checkpoints"], 0)
    assert found["passed"]["all-cases"] == {"count": 0, "rate": None}
    assert found["pass_rates"]["Core"] == NO_TESTS
    assert found["durations"] == {"total": 0.0, "mean": None, "median": None, "longest": None}


def test_a_summary_of_nothing():
    summary = summarise([], [])
    assert (summary.runs, summary.problems, summary.samples) == ({}, {}, None)


def test_each_run_and_each_problem_has_its_own():
    summary = summarise(lines_of({"tuesday": {"words": "+-"}, "monday": {"words": "+", "anagrams": "++"}}), [])
    assert list(summary.runs) == ["monday", "tuesday"]
    assert list(summary.problems) == ["anagrams", "words"]
    passed = {name: totals.passed[ALL].count for name, totals in summary.runs.items()}
    assert passed == {"monday": 3, "tuesday": 1}
    planned = {name: problem.totals.checkpoints.planned for name, problem in summary.problems.items()}
    assert planned == {"anagrams": 2, "words": 3}
    assert summary.totals.passed[ALL].rate == 4 / 5
    assert summary.slop_code == slop_code.__version__


def test_troubles_are_planned_where_they_name_a_checkpoint_without_a_line():
    issues = [
        RunIssue("monday", "words", "checkpoint_1", "has a line all the same"),
        RunIssue("monday", "words", "checkpoint_3", "no snapshot"),
        RunIssue("monday", "words", "checkpoint_3", "told twice"),
        RunIssue("monday", "letters", "checkpoint_1", "no snapshot"),
        RunIssue("monday", "nothing", None, "no such problem"),
        RunIssue("tuesday", None, None, "held by another"),
    ]
    summary = summarise(lines_of({"monday": {"words": "++"}}), issues)
    assert (summary.totals.checkpoints.planned, summary.totals.checkpoints.not_evaluated) == (4, 2)
    assert summary.totals.passed[ALL].rate == 0.5
    assert list(summary.problems) == ["letters", "words"]
    assert list(summary.problems["words"].checkpoints) == ["checkpoint_1", "checkpoint_2", "checkpoint_3"]
    assert summary.runs["tuesday"].checkpoints.planned == 0
    assert [issue.label for issue in summary.issues] == [issue.label for issue in issues]
    assert summary.issues[1].reason == "no snapshot"


def test_checkpoints_are_in_their_order_and_not_in_that_of_their_names():
    names = {"zebra": 1, "apple": 2, "checkpoint_10": 10, "checkpoint_9": 9}
    lines = [
        CheckpointLine(run="monday", problem="words", checkpoint=name, order=order, state="evaluated")
        for name, order in names.items()
    ]
    lost = [RunIssue("monday", "words", "aardvark", "no snapshot")]
    found = summarise(lines, lost).problems["words"].checkpoints
    assert list(found) == ["zebra", "apple", "checkpoint_9", "checkpoint_10", "aardvark"]


def test_infrastructure_failures_are_listed():
    failed = line("monday", "words", 2, state="infrastructure_failure", reason="killed")
    summary = summarise([line("monday", "words", 1), failed], [])
    assert [(one.label, one.reason) for one in summary.infrastructure_failures] == [
        ("monday/words/checkpoint_2", "killed")
    ]


def test_two_lines_for_one_checkpoint_are_a_mistake():
    with pytest.raises(ValueError, match="two lines for monday/words/checkpoint_1"):
        summarise([line("monday", "words", 1), line("monday", "words", 1)], [])


def test_one_run_is_no_sample():
    summary = summarise(lines_of({"monday": {"words": "+-"}}), [])
    assert summary.samples is None
    assert summary.problems["words"].samples is None
    share = summary.problems["words"].checkpoints["checkpoint_1"].passed[ALL]
    assert (share.count, share.rate, share.interval) == (1, 1.0, None)


RUNS = {"a": {"words": "++"}, "b": {"words": "+-"}, "c": {"words": "--"}, "d": {"words": "+-"}}


def test_samples_of_a_problem():
    """Checkpoint 1 passes in 3 of 4 runs, checkpoint 2 in 1 of 4; one run of 4 solves the problem."""
    found = samples(RUNS, "words")
    assert found.checkpoints.rate == 0.5
    assert found.checkpoints.pass_at_k == pytest.approx({"1": (3 / 4 + 1 / 4) / 2, "2": (1 + 1 / 2) / 2, "4": 1.0})
    low, high = mean_bounds([1.0, 0.5, 0.0, 0.5])
    assert found.checkpoints.interval.model_dump() == {"low": low, "high": high, "method": "t"}
    assert found.solved.rate == 0.25
    assert found.solved.pass_at_k == pytest.approx({"1": 1 / 4, "2": 1 / 2, "4": 1.0})
    low, high = wilson(1, 4)
    assert found.solved.interval.model_dump() == {"low": low, "high": high, "method": "wilson"}
    assert samples(RUNS) == found


def test_share_of_runs_that_pass_a_checkpoint():
    checkpoints = summarise(lines_of(RUNS), [], samples=True).problems["words"].checkpoints
    first = checkpoints["checkpoint_1"]
    assert (first.runs, first.evaluated, first.passed[ALL].count, first.passed[ALL].rate) == (4, 4, 3, 0.75)
    low, high = wilson(3, 4)
    assert first.passed[ALL].interval.model_dump() == {"low": low, "high": high, "method": "wilson"}
    assert checkpoints["checkpoint_2"].passed[CORE].count == 0


def test_samples_of_several_problems():
    """The run is the unit: a passes 3 of 3 and both problems, b passes 1 of 3 and none."""
    found = samples({"a": {"words": "++", "letters": "+"}, "b": {"words": "+-", "letters": "-"}})
    assert found.checkpoints.rate == pytest.approx((1 + 1 / 3) / 2)
    assert found.checkpoints.pass_at_k == pytest.approx({"1": (1 + 1 / 2 + 1 / 2) / 3, "2": 1.0})
    assert found.solved.rate == 0.5
    assert found.solved.pass_at_k == pytest.approx({"1": 0.5, "2": 1.0})
    third = samples({
        "a": {"words": "++", "letters": "+"}, "b": {"words": "+-", "letters": "-"},
        "c": {"words": "--", "letters": "+"},
    })  # fmt: skip
    assert third.checkpoints.interval.method == "t"
    low, high = mean_bounds([1.0, 0.0, 0.5])
    assert third.solved.interval.model_dump() == {"low": low, "high": high, "method": "t"}


@pytest.mark.parametrize(("marks", "intervals"), [("+-", False), ("+-+", True)])
def test_two_samples_have_no_interval(marks, intervals):
    summary = summarise(lines_of({str(number): {"words": mark} for number, mark in enumerate(marks)}), [], samples=True)
    found = summary.samples.policies[ALL]
    share = summary.problems["words"].checkpoints["checkpoint_1"].passed[ALL]
    for interval in (found.checkpoints.interval, found.solved.interval, share.interval):
        assert (interval is not None) is intervals


def test_runs_that_are_not_said_to_be_samples_are_not_pooled():
    summary = summarise(lines_of(RUNS), [])
    words = summary.problems["words"]
    assert (summary.samples, words.samples) == (None, None)
    assert {share.interval for checkpoint in words.checkpoints.values() for share in checkpoint.passed.values()} == {
        None
    }
    assert words.checkpoints["checkpoint_1"].passed[ALL].rate == 0.75


def submitted(run, **submissions):
    """Lines of a run with the digests of its submissions; None where the digest is not known."""
    return [
        line(run, problem, 1, passed=(ALL,), digests=Digests(submission=digest))
        for problem, digest in submissions.items()
    ]


def test_runs_with_the_same_submissions_count_once():
    lines = [
        *submitted("a", words="x", letters="y"),
        *submitted("b", words="x", letters="z"),
        *submitted("c", words="x", letters="y"),
        *submitted("d", words="x", letters=None),
        *submitted("e", words="x", letters=None),
    ]
    found = summarise(lines, [], samples=True)
    assert (found.samples.runs, found.samples.copies) == (4, ["c"])
    assert found.problems["words"].checkpoints["checkpoint_1"].runs == 4
    assert found.totals.checkpoints.planned == 10, "the counts are of all runs"
    assert summarise([*submitted("a", words="x"), *submitted("b", words="x")], [], samples=True).samples is None


def test_runs_without_any_submission_are_no_copies_of_each_other():
    issues = [RunIssue(run, None, None, "cannot be read") for run in ("c", "d")]
    lines = [*submitted("a", words="x"), *submitted("b", words="y")]
    assert summarise(lines, issues, samples=True).samples.copies == []


def test_k_goes_as_far_as_the_problem_with_the_fewest_runs():
    table = {"a": {"words": "+", "letters": "+"}, "b": {"words": "-", "letters": "-"}, "c": {"words": "-"}}
    assert list(samples(table).checkpoints.pass_at_k) == ["1", "2"]
    assert samples(table).checkpoints.pass_at_k["1"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert list(samples(table, "words").checkpoints.pass_at_k) == ["1", "2", "3"]
    assert summarise(lines_of(table), [], samples=True).samples.runs == 3


@pytest.mark.parametrize("reported", [True, False])
def test_a_checkpoint_that_a_run_does_not_have_is_not_passed(reported):
    issues = [RunIssue("b", "words", "checkpoint_2", "no snapshot")] if reported else []
    found = samples({"a": {"words": "++"}, "b": {"words": "+"}}, "words", issues)
    assert found.checkpoints.pass_at_k == {"1": 0.75, "2": 1.0}
    assert found.solved.rate == 0.5


@pytest.mark.parametrize("state", ["infrastructure_failure", "not_evaluated"])
def test_no_verdict_is_no_pass_in_samples(state):
    lines = [
        line("a", "words", 1, passed=(ALL,)),
        CheckpointLine(
            **dict(CheckpointFacts.no_verdict("why", state=state)),
            run="b",
            problem="words",
            checkpoint="checkpoint_1",
            order=1,
        ),
    ]
    assert summarise(lines, [], samples=True).samples.policies[ALL].checkpoints.pass_at_k == {"1": 0.5, "2": 1.0}


def sample_summary():
    lines = [
        *lines_of(RUNS),
        line("a", "words", 3, state="infrastructure_failure", reason="\x1b[31m \ud800 \x00", duration=0.5),
    ]
    return summarise(lines, [RunIssue("b", "words", "checkpoint_3", "no snapshot: \udcff")], samples=True)


def test_a_stored_summary_loads_as_it_was(tmp_path):
    path = tmp_path / "deep" / "summary.json"
    sample_summary().save(path)
    assert RunSummary.load(path) == sample_summary()
    assert [entry.name for entry in path.parent.iterdir()] == ["summary.json"]
    assert json.loads(path.read_text())["schema_version"] == 1
    assert "\x1b" not in path.read_text()


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ({"schema_version": 2}, "schema_version"),
        ({"runs": ["a"]}, "runs"),
        ({"color": "red"}, "color"),
        ({"samples": {"runs": "4"}}, r"samples\.runs"),
        ({"issues": [{"label": "a"}]}, r"issues\.0\.reason"),
    ],
)
def test_a_damaged_summary_is_named(tmp_path, change, mistake):
    path = tmp_path / "summary.json"
    sample_summary().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ResultError, match=rf"summary\.json: {mistake}"):
        RunSummary.load(path)


def test_a_summary_that_is_cut_or_gone_is_named(tmp_path):
    path = tmp_path / "summary.json"
    with pytest.raises(ResultError, match=r"summary\.json: cannot be read"):
        RunSummary.load(path)
    sample_summary().save(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ResultError, match=r"summary\.json: "):
        RunSummary.load(path)
