"""Tables of runs and lines of plans."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from slop_code.evaluation import GroupType, PassPolicy
from slop_code.evaluation.report import Digests
from slop_code.execution import EnvironmentSpec
from slop_code.reporting.plan_lines import plan_lines, plan_rows
from slop_code.reporting.run_table import SHOWN_CHECKPOINTS, SHOWN_REASONS, SHOWN_RUNS, show_run
from slop_code.reporting.terminal import print_lines
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, Regressions
from slop_code.runs.jobs.job_records import Job, RunIssue
from slop_code.runs.jobs.plan import Plan
from slop_code.runs.summary import summarise
from tests import factories

HOSTILE = "\x1b]0;owned\x07[red]\r\nFAKE\t\u202e"
ESCAPED = "\\x1b]0;owned\\x07[red]"
LOCAL = EnvironmentSpec.model_validate({"type": "local", "name": "test"})


def line(number=1, core=(5, 5), error=(2, 2), *, run="run", problem="larder", broke=None, **changes):
    values = {
        "run": run,
        "problem": problem,
        "checkpoint": f"checkpoint_{number}",
        "order": number,
        "state": "evaluated",
        "passed": {PassPolicy.ALL_CASES: core[0] == core[1] and error[0] == error[1]},
        "pass_counts": {GroupType.CORE: core[0], GroupType.ERROR: error[0]},
        "total_counts": {GroupType.CORE: core[1], GroupType.ERROR: error[1]},
        "regressions": Regressions(since="checkpoint_1", introduced=broke[0], repaired=broke[1]) if broke else None,
        "duration": 2.0,
        **changes,
    }
    return CheckpointLine(**values)


def unknown(number, reason="killed", state="infrastructure_failure", **changes):
    return line(number, state=state, reason=reason, passed={}, pass_counts={}, total_counts={}, **changes)


def shown(lines, issues=(), *, terminal=False, width=100, reasons=None, is_written=True):
    console = Console(file=io.StringIO(), width=width, highlight=False, force_terminal=terminal, color_system=None)
    summary = summarise(lines, issues, samples=True)
    show_run(summary, lines, PassPolicy.ALL_CASES, console, reasons, is_written=is_written)
    return console.file.getvalue().splitlines()


def test_a_checkpoint_that_was_not_looked_at_again_keeps_its_verdict_and_has_a_reason():
    lines = [line(1), line(2, not_looked_at_again="no such problem"), line(3, error=(1, 2))]
    issue = RunIssue("run", "larder", "checkpoint_2", "no such problem")
    expected = [
        "not looked at again run/larder/checkpoint_2: no such problem",
        "not passed run/larder/checkpoint_3: exit status 1",
        "rates: strict 2 of 3 solved (mean 95.2%), isolated 2 of 3 solved (mean 95.2%), core 3 of 3 solved (mean 100%)",
        "NOT LOOKED AT AGAIN: 2 of 3 checkpoints passed (all-cases); 1 of 3 checkpoints keeps its last result",
    ]
    reasons = {lines[2].label: "exit status 1"}
    assert shown(lines, [issue], reasons=reasons)[-4:] == expected
    on_terminal = shown(lines, [issue], reasons=reasons, terminal=True)
    assert [text for text in on_terminal if not text.startswith("  ")][-4:] == expected
    assert on_terminal[-2].startswith("  strict: every test passed; isolated: every test outside the group Regression")
    assert "PASSED (not looked at again), core" in shown(lines, [issue])[1]
    many = [line(number, not_looked_at_again="held") for number in range(1, SHOWN_CHECKPOINTS + 2)]
    assert f"no verdict 0, not looked at again {len(many)}" in shown(many)[0]


def test_few_checkpoints_have_a_line_each():
    lines = [line(1), line(2, error=(1, 2), broke=(3, 1)), unknown(3, "killed\nby memory")]
    assert shown(lines, reasons={lines[1].label: "exit status 1"}) == [
        "checkpoint larder/checkpoint_1: PASSED, core 5/5, error 2/2, broke -, recovered -, 2.0 s",
        "checkpoint larder/checkpoint_2: NOT PASSED, core 5/5, error 1/2, broke 3, recovered 1, 2.0 s",
        "checkpoint larder/checkpoint_3: NO VERDICT",
        "no verdict run/larder/checkpoint_3: killed",
        "not passed run/larder/checkpoint_2: exit status 1",
        "rates: strict 1 of 3 solved (mean 92.9%), isolated 1 of 3 solved (mean 92.9%), core 2 of 3 solved (mean 100%)",
        "NO VERDICT for 1 of 3 checkpoints; 1 passed (all-cases)",
    ]


@pytest.mark.e2e
def test_many_checkpoints_have_rows_for_each_problem_and_run():
    lines = [
        line(number, (4, 5) if number == 5 else (5, 5), run=f"run_{run:02}", problem=f"problem_{problem:02}")
        for run in range(10)
        for problem in range(20)
        for number in range(1, 6)
    ]
    said = shown(lines)
    assert said[0] == (
        "problem problem_00: 40/50 passed, core 96.0%, error 100%, broke -, recovered -, no verdict 0, 1 min 40 s"
    )
    assert said[20].startswith("run run_00: 80/100 passed, core 96.0%")
    assert [text.split()[0] for text in said] == [
        *["problem"] * 20,
        *["run"] * 10,
        "...",
        "rates:",
        "checkpoints",
        "whole",
        "NOT",
    ]
    assert said[30] == "... and 200 more not passed (only the first 100 results are read): slop-code report says why"
    assert said[-1] == "NOT PASSED (all-cases): 800 of 1000 checkpoints"


def test_several_runs_have_pass_at_k():
    runs = [line(1, run="a"), line(1, core=(0, 5), run="b")]
    said = shown(runs)
    assert said[:2] == [
        "checkpoint a/larder/checkpoint_1: PASSED, core 5/5, error 2/2, broke -, recovered -, 2.0 s",
        "checkpoint b/larder/checkpoint_1: NOT PASSED, core 0/5, error 2/2, broke -, recovered -, 2.0 s",
    ]
    estimates = [text for text in said if "pass@" in text]
    assert estimates == [
        "checkpoints over 2 runs: 50.0% passed, pass@1 50.0%, pass@2 100%",
        "whole problems over 2 runs: 50.0% passed, pass@1 50.0%, pass@2 100%",
    ], "two runs have no interval"
    said = shown([*runs, line(1, core=(0, 5), run="c")])
    assert any("whole problems over 3 runs: 33.3% passed (6.1% to 79.2% with 95% confidence)" in text for text in said)


def test_a_copy_of_a_run_is_named_and_not_counted():
    digests = [Digests(submission=name) for name in "xyx"]
    said = shown([line(1, run=run, digests=digest) for run, digest in zip("abc", digests, strict=True)])
    assert "checkpoints over 2 runs: 100% passed, pass@1 100%, pass@2 100%" in said
    assert "c: the same submissions as in another run, so it counts as no further sample" in said


def test_one_run_has_no_pass_at_k():
    texts = shown([line(1), line(2)])
    assert texts
    assert not [text for text in texts if "pass@" in text]


@pytest.mark.parametrize(
    ("lines", "issues", "verdict"),
    [
        ([line(1), line(2)], [], "PASSED (all-cases): 2 of 2 checkpoints"),
        ([line(1), line(2, (4, 5))], [], "NOT PASSED (all-cases): 1 of 2 checkpoints"),
        ([line(1), unknown(2)], [], "NO VERDICT for 1 of 2 checkpoints; 1 passed (all-cases)"),
        (
            [line(1), unknown(2, "stopped", "not_evaluated")],
            [],
            "NO VERDICT for 1 of 2 checkpoints; 1 passed (all-cases)",
        ),
        (
            [line(1)],
            [RunIssue("run", "larder", "checkpoint_2", "no snapshot")],
            "NO VERDICT for 1 of 2 checkpoints; 1 passed (all-cases)",
        ),
        (
            [line(1)],
            [RunIssue("run", "pantry", None, "no such problem")],
            "NO VERDICT on the whole: 1 issue; 1 of 1 checkpoint passed (all-cases)",
        ),
        ([line(1)], [], "PASSED (all-cases): 1 of 1 checkpoint"),
        ([], [], "NO VERDICT: there is no checkpoint to evaluate"),
        (
            [],
            [RunIssue("run", None, None, "cannot be read")],
            "NO VERDICT: no checkpoint could be evaluated; the issues above say why",
        ),
    ],
)
def test_the_last_line_is_the_verdict(lines, issues, verdict):
    assert shown(lines, issues)[-1] == verdict


def test_issues_and_failures_are_listed_up_to_a_number():
    issues = [RunIssue("run", f"problem_{number}", None, f"no {number}") for number in range(SHOWN_REASONS + 2)]
    lines = [unknown(number, f"killed {number}") for number in range(1, SHOWN_REASONS + 5)]
    said = [text for text in shown(lines, issues) if not text.startswith("checkpoint ")]
    assert said[0] == "issue run/problem_0: no 0"
    assert said[SHOWN_REASONS] == "... and 2 more: see summary.json"
    assert said[SHOWN_REASONS + 1] == "no verdict run/larder/checkpoint_1: killed 1"
    assert said[-2] == "... and 4 more: see summary.json"


def test_what_is_left_out_of_a_part_of_a_run_is_in_no_summary():
    issues = [RunIssue("run", f"problem_{number}", None, f"no {number}") for number in range(SHOWN_REASONS + 2)]
    lines = [unknown(number, f"killed {number}") for number in range(1, SHOWN_REASONS + 5)]
    lines += [line(1, run=f"run_{number:03}") for number in range(SHOWN_RUNS - 1)]
    lines.append(line(2, run="last", warnings=[f"key {number}" for number in range(SHOWN_REASONS + 1)]))
    assert [text for text in shown(lines, issues, is_written=False) if text.startswith("...")] == [
        "... and 1 more runs; --json has them all",
        "... and 2 more; --json has them all",
        "... and 4 more; --json has them all",
        "... and 1 more warning: see evaluation.json of each checkpoint",
    ]


def test_a_checkpoint_that_did_not_pass_says_why():
    failed = line(1, passed=dict.fromkeys(PassPolicy, False), setup_failure="set-up failed: no pip")
    text = "3 tests: exit status 1; and 2 more \x1b[31m"
    lines = shown([failed, line(2)], reasons={failed.label: text, line(2).label: "not shown"})
    (why,) = [found for found in lines if found.startswith("not passed")]
    assert why == f"not passed {failed.label}: 3 tests: exit status 1; and 2 more \\x1b[31m"
    assert f"not passed {failed.label}: set-up failed: no pip" in shown([failed, line(2)])


def test_every_checkpoint_that_did_not_pass_is_named_or_counted():
    lines = [line(number, core=(4, 5)) for number in range(1, 31)]
    reasons = {each.label: "1 test: exit status 1" for each in lines[:-2]}
    first = "run/larder/checkpoint_1, run/larder/checkpoint_2, run/larder/checkpoint_3"
    assert shown(lines, reasons=reasons)[-4:-2] == [
        f"not passed {first} and 25 more: 1 test: exit status 1",
        "... and 2 more not passed: slop-code report says why",
    ]
    several = {each.label: f"exit status {each.order}" for each in lines}
    assert shown(lines, reasons=several)[-3] == "... and 20 more not passed: slop-code report says why"


def test_a_reason_of_several_checkpoints_is_said_once():
    said = shown([unknown(number) for number in range(1, 6)])
    labels = "run/larder/checkpoint_1, run/larder/checkpoint_2, run/larder/checkpoint_3 and 2 more"
    assert [text for text in said if "killed" in text] == [f"no verdict {labels}: killed"]
    assert not any("summary.json" in text for text in said)


def test_a_failed_set_up_and_limits_that_struck_are_named():
    failed = [line(number, (0, 5), setup_failure="set-up failed: no such package") for number in (1, 2)]
    struck = line(3, (3, 5), limits={"memory": 1, "disk": 2}, timeouts=1)
    said = shown([*failed, struck, line(4, (0, 5)), unknown(5, limits={"memory": 1})])
    assert [text for text in said if text.startswith("not passed")] == [
        "not passed run/larder/checkpoint_1, run/larder/checkpoint_2: set-up failed: no such package",
        "not passed run/larder/checkpoint_3: limits struck: memory in 1 test, disk in 2 tests, time in 1 test",
    ]


def test_an_issue_is_printed_once():
    said = shown(
        [line(1), unknown(2, "no snapshot", "not_evaluated")], [RunIssue("run", "larder", "checkpoint_2", "gone")]
    )
    assert [text for text in said if "gone" in text or "no snapshot" in text] == ["issue run/larder/checkpoint_2: gone"]


def test_warnings_are_printed_once_up_to_a_number():
    said = shown([line(1, warnings=["unknown key x"]), line(2, warnings=["unknown key x", HOSTILE])])
    assert [text.partition(": ")[2][:20] for text in said if text.startswith("warning")] == [
        "unknown key x",
        ESCAPED[:20],
    ]
    said = shown([line(1, warnings=[f"key {number}" for number in range(SHOWN_REASONS + 1)])])
    assert sum(text.startswith("warning: ") for text in said) == SHOWN_REASONS
    assert "... and 1 more warning: see checkpoint_results.jsonl" in said


def test_every_submission_of_a_job_has_a_reason():
    first, second = submission(1), submission(1, run="second")
    plan = Plan((job(first, second),), (), (), reasons={first.key: "no result yet", second.key: "the tests changed"})
    assert [reason for _, _, reason in plan_rows(plan)] == [
        "no result yet",
        "the tests changed, with run/larder/checkpoint_1",
    ]


def test_failed_checkpoints_come_before_those_not_started():
    lines = [unknown(1, "stopped", "not_evaluated"), unknown(2, "killed")]
    reasons = [text for text in shown(lines) if text.startswith("no verdict")]
    assert reasons == [
        "no verdict run/larder/checkpoint_2: killed",
        "no verdict run/larder/checkpoint_1: stopped",
    ]


def test_retries_are_printed():
    said = shown([line(1, attempts=2), line(2)])
    assert "retried: 1 checkpoint needed more than one attempt" in said


def test_very_many_runs_are_counted():
    said = shown([line(1, run=f"run_{number:03}") for number in range(SHOWN_RUNS + 3)])
    assert sum(text.startswith("run ") for text in said) == SHOWN_RUNS
    assert "... and 3 more runs: see summary.json" in said


def test_a_terminal_gets_a_table_without_empty_columns():
    said = shown([line(1), line(2, error=(1, 2), broke=(3, 0))], terminal=True, width=80)
    heads = next(text for text in said if "broke" in text).split()
    assert heads == ["checkpoint", "passed", "core", "error", "broke", "recovered", "time"]
    assert "larder" in said
    assert next(text for text in said if "checkpoint_2" in text).split() == [
        "checkpoint_2", "NOT", "PASSED", "5/5", "1/2", "3", "0", "2.0", "s",
    ]  # fmt: skip
    assert next(text for text in said if "checkpoint_1" in text).split()[-4:-2] == ["-", "-"], "nothing to compare"


TOTAL = dict.fromkeys(GroupType, 12)
POOR = dict.fromkeys(GroupType, 11)


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (120, "checkpoint passed core funct. error regr. broke recovered time"),
        (80, "checkpoint passed core funct. error regr. broke recovered time"),
        (70, "checkpoint passed core funct. error regr. broke recovered"),
        (60, "checkpoint passed core funct. error regr. broke"),
        (55, "checkpoint passed core funct. error regr."),
    ],
)
def test_names_are_whole_on_a_narrow_terminal(width, heads):
    counts = {"total_counts": TOTAL, "pass_counts": POOR, "passed": {}}
    lines = [line(number, run=run, **counts) for run in "ab" for number in (1, 2)]
    said = shown(lines, terminal=True, width=width)
    assert said[0].split() == heads.split()
    rows = ["checkpoint_1", "checkpoint_2"]
    assert [text.split()[0] for text in said[2:8]] == ["a/larder", *rows, "b/larder", *rows]
    assert max(map(len, said[:8])) <= width


def test_a_terminal_without_room_for_a_table_gets_lines():
    lines = [line(1), line(2)]
    assert shown(lines, terminal=True, width=30)[:2] == shown(lines)[:2]


def test_a_terminal_table_of_problems_says_where_there_is_no_verdict():
    lines = [line(number) for number in range(1, SHOWN_CHECKPOINTS + 1)]
    said = shown([*lines, unknown(SHOWN_CHECKPOINTS + 1)], terminal=True)
    assert "verdict" in next(text for text in said if "broke" in text)
    row = next(text for text in said if "larder" in text).split()
    assert row == ["larder", "30/31", "100%", "100%", "-", "-", "1", "1:00"]


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_reaches_the_terminal_as_a_command(terminal):
    lines = [
        line(1, run=HOSTILE, problem=HOSTILE),
        unknown(2, HOSTILE, run=HOSTILE, problem=HOSTILE),
        line(1, run="other", problem=HOSTILE),
    ]
    said = "\n".join(shown(lines, [RunIssue("other", HOSTILE, None, HOSTILE)], terminal=terminal, width=300))
    for raw in ("\x1b]", "\x07", "\u202e", "\nFAKE", "\tFAKE", "\r"):
        assert raw not in said
    assert said.count(ESCAPED) == (9 if terminal else 11)  # a table names once what rows share


def submission(number=1, run="run", problem="larder"):
    return factories.submission(number, run=run, name=problem, path=Path("snapshot"))


def planned(jobs=(), kept=(), issues=(), slots=2, reasons=()):
    console = Console(file=io.StringIO(), width=100, highlight=False, force_terminal=False)
    facts = CheckpointFacts(state="evaluated")
    known = {target.key: "no result yet" for job in jobs for target in job.targets} | dict(reasons)
    plan = Plan(tuple(jobs), tuple((one, facts) for one in kept), tuple(issues), reasons=known)
    print_lines(console, plan_lines(plan, slots))
    return console.file.getvalue().splitlines()


def job(*targets, **changes):
    return Job(key=None, digest="", targets=targets, **changes)


def test_a_plan_says_what_would_be_done_and_why():
    assert planned(
        jobs=[
            job(submission(10), submission(10, run="second"), expected_s=100.0),
            job(submission(2)),
            job(submission(3), cached=True, expected_s=50.0),
        ],
        kept=[submission(1)],
        issues=[RunIssue("run", "pantry", None, "no such problem")],
        reasons={submission(2).key: "the tests changed"},
    ) == [
        "up to date run/larder/checkpoint_1",
        "run run/larder/checkpoint_2: the tests changed",
        "cached run/larder/checkpoint_3: no result yet",
        "run run/larder/checkpoint_10: no result yet (1 min 40 s expected)",
        "shared second/larder/checkpoint_10: no result yet, with run/larder/checkpoint_10",
        "issue run/pantry: no such problem",
        "5 submissions: 2 to run, 1 that share their result, 1 cached, 1 up to date; issues: 1",
        "expected time: about 1 min 40 s with 2 at a time",
    ]


@pytest.mark.parametrize(
    ("jobs", "text"),
    [
        ([], "expected time: nothing to run"),
        ([job(submission(1), cached=True)], "expected time: nothing to run"),
        ([job(submission(1))], "expected time: not known before something has run"),
        ([job(submission(1), expected_s=9.0)], "expected time: about 9.0 s with 2 at a time"),
        (
            [job(submission(1), expected_s=8.0), job(submission(2)), job(submission(3), cached=True, expected_s=1.0)],
            "expected time: about 8.0 s with 2 at a time",
        ),
    ],
)
def test_the_expected_time_of_a_plan(jobs, text):
    assert planned(jobs)[-1] == text


def test_the_count_of_a_single_submission_is_singular():
    assert planned([job(submission(1))])[-2].startswith("1 submission: 1 to run")


def test_a_plan_is_never_a_command():
    twins = submission(1, run=HOSTILE, problem=HOSTILE), submission(2, run=HOSTILE, problem=HOSTILE)
    said = "\n".join(
        planned(
            [job(*twins)],
            [submission(3, run=HOSTILE, problem=HOSTILE)],
            [RunIssue(HOSTILE, None, None, HOSTILE)],
            reasons=dict.fromkeys((twin.key for twin in twins), HOSTILE),
        )
    )
    for raw in ("\x1b", "\x07", "\u202e", "\nFAKE", "\tFAKE", "\r"):
        assert raw not in said
    assert said.count(ESCAPED) == 10
