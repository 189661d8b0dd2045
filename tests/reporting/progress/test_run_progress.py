"""Progress of a run: lines, the live view, and the remaining time."""

import io
import os
import threading

import pytest
from rich.console import Console

from slop_code.evaluation import GroupType, PassPolicy
from slop_code.evaluation.report import Attempt
from slop_code.execution import EnvironmentSpec
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.reporting.progress.counted_work import advance
from slop_code.reporting.progress.progress_tracker import ProgressTracker, expected_duration, time_left, verdict_of
from slop_code.reporting.progress.run_progress import (
    PACE_INTERVAL_S,
    SHOWN_RUNNING,
    SILENCE_S,
    RunProgress,
    group_counts,
)
from slop_code.reporting.progress.ticker import TICKER
from slop_code.reporting.text import LINE_WIDTH, first_line, format_duration, one_line
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.jobs.job_records import Job, JobRetrying, JobStarted, SubmissionOutcome
from tests import factories

HOSTILE = "\x1b]0;owned\x07[red]\r\nFAKE\t\u202e"
LOCAL = EnvironmentSpec.model_validate({"type": "local", "name": "test"})
PASSED = {"passed": {PassPolicy.ALL_CASES: True}}


@pytest.fixture(autouse=True)
def no_forced_colours(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def submission(number=1, run="run", problem="p"):
    return factories.submission(number, run=run, name=problem)


def job(*targets, expected=None, cached=False):
    return Job(key=None, digest="", targets=targets, expected_s=expected, cached=cached)


def facts(core=(1, 1), error=(0, 0), **changes):
    counts = {GroupType.CORE: core, GroupType.ERROR: error}
    values = {
        "state": "evaluated",
        "pass_counts": {group: pair[0] for group, pair in counts.items()},
        "total_counts": {group: pair[1] for group, pair in counts.items()},
        "duration": 3.9,
        **changes,
    }
    return CheckpointFacts(**values)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Shown:
    """A progress that writes to memory; `job(n)` is what wants the n-th submission."""

    def __init__(self, *jobs, kept=0, slots=1, live=False, part=False):
        self.stream, self.clock = io.StringIO(), Clock()
        self.jobs = jobs
        tracker = ProgressTracker(jobs, slots, PassPolicy.ALL_CASES, self.clock, part=part)
        self.progress = RunProgress(tracker, kept, live=live, stream=self.stream)

    def start(self, number=0):
        self.progress.started(JobStarted(self.jobs[number]))

    def finish(self, number=0, source="evaluated", **changes):
        for target in self.jobs[number].targets:
            self.progress.finished(SubmissionOutcome(target, facts(**changes), source))

    @property
    def lines(self):
        return self.stream.getvalue().splitlines()

    @property
    def view(self):
        console = Console(file=io.StringIO(), width=100, highlight=False)
        console.print(self.progress.view())
        return console.file.getvalue()


@pytest.mark.parametrize(
    ("waiting", "running", "finished", "slots", "left"),
    [
        ([], [], [], 2, 0.0),
        ([], [], [5.0], 2, 0.0),
        ([None, None], [], [], 2, None),
        ([None], [(None, 7.0)], [], 2, None),
        ([10.0, 10.0, 10.0, 10.0], [], [], 2, 20.0),
        ([30.0, 1.0, 1.0], [], [], 8, 30.0),  # the longest one is the least it can take
        ([None, None], [], [2.0, 4.0], 1, 6.0),  # unknown: the mean of what finished
        ([None, 8.0], [], [], 1, 16.0),  # else of what is expected
        ([None, 8.0], [], [2.0], 1, 10.0),
        ([None], [(6.0, 1.0)], [], 1, 11.0),  # that of a running one too
        ([], [(10.0, 4.0)], [], 1, 6.0),
        ([], [(None, 1.0)], [3.0], 1, 2.0),
        ([5.0, 5.0], [(10.0, 99.0)], [], 1, 10.0),  # overdue: not less than nothing
        ([0.0], [], [], 1, 0.0),  # known to take nothing, which is not unknown
        ([5.0], [], [], 0, 5.0),
    ],
)
def test_the_time_left_follows_from_expected_and_finished_durations(waiting, running, finished, slots, left):
    assert time_left(waiting, running, finished, slots) == left


@pytest.mark.parametrize(
    ("state", "passed", "verdict"),
    [
        ("evaluated", True, "passed"),
        ("evaluated", False, "not passed"),
        ("infrastructure_failure", False, "no verdict"),
        ("infrastructure_failure", True, "no verdict"),
        ("not_evaluated", False, "no verdict"),
    ],
)
def test_the_verdict_follows_from_state_and_policy(state, passed, verdict):
    assert verdict_of(CheckpointFacts(state=state, passed={PassPolicy.ANY: passed}), PassPolicy.ANY) == verdict


def test_a_policy_that_a_result_does_not_answer_is_not_passed():
    assert verdict_of(CheckpointFacts(state="evaluated"), PassPolicy.ANY) == "not passed"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0.0 s"),
        (3.94, "3.9 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (860.0, "14 min 20 s"),
        (3599.6, "1 h 0 min"),
        (7500.0, "2 h 5 min"),
    ],
)
def test_durations_are_printed_in_words(seconds, words):
    assert format_duration(seconds) == words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run/p", "run/p"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\udcff", "\\udcff"),
        ("x" * (LINE_WIDTH + 2), "x" * LINE_WIDTH + " [... 2 characters]"),
    ],
)
def test_a_long_text_is_printed_in_one_line(text, shown):
    assert one_line(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("", ""), ("\n\n  said \n more", "said"), ("one\rtwo\nthree", "one\\rtwo"), (" \t\n", "")]
)
def test_the_first_line_that_says_something_is_printed(text, shown):
    assert first_line(text) == shown


@pytest.mark.parametrize(
    ("core", "error", "shown"),
    [
        ((3, 3), (2, 2), "5/5"),
        ((3, 3), (1, 2), "4/5 (error 1/2)"),
        ((0, 3), (1, 2), "1/5 (core 0/3, error 1/2)"),
        ((0, 0), (0, 0), "0/0"),
    ],
)
def test_counts_name_the_groups_that_are_incomplete(core, error, shown):
    assert group_counts(facts(core, error)) == shown


def test_every_result_is_a_line_without_a_terminal():
    shown = Shown(*(job(submission(number)) for number in range(1, 11)), kept=3)
    with shown.progress:
        for number in range(3):
            shown.start(number)
        shown.finish(0, core=(40, 40), error=(7, 7), **PASSED)
        shown.finish(1, core=(40, 40), error=(5, 7))
        shown.finish(2, state="infrastructure_failure", reason="pytest was killed\nand more")
        shown.finish(3, source="cached", **PASSED)
        shown.clock.now += 20
    assert shown.lines == [
        "10 to evaluate, 3 up to date",
        "[ 1/10] PASSED run/p/checkpoint_1 47/47 3.9 s",
        "[ 2/10] NOT PASSED run/p/checkpoint_2 45/47 (error 5/7) 3.9 s",
        "[ 3/10] NO VERDICT run/p/checkpoint_3: pytest was killed",
        "[ 4/10] PASSED run/p/checkpoint_4 1/1 (cached)",
        "4 of 10 done (1 cached) in 20.0 s: 2 passed, 1 not passed, 1 no verdict",
    ]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"setup_failure": f"set-up failed: {HOSTILE}"}, f": set-up failed: {one_line(HOSTILE)}"),
        ({"limits": {"memory": 2}, "timeouts": 1}, ": limits struck: memory in 2 tests, time in 1 test"),
        ({}, ""),
    ],
)
def test_the_line_of_a_failure_names_a_failed_set_up_or_the_limits_that_struck(changes, note):
    shown = Shown(job(submission()))
    shown.finish(core=(0, 1), **changes)
    assert shown.lines == [f"[1/1] NOT PASSED run/p/checkpoint_1 0/1 (core 0/1) 3.9 s{note}"]


def test_a_part_of_the_tests_is_no_failure():
    shown = Shown(job(submission(1)), job(submission(2)), part=True)
    with shown.progress:
        shown.finish(0, state="not_evaluated", reason="evaluated with pytest arguments: -k a")
        shown.finish(1, state="infrastructure_failure", reason="killed")
    assert shown.lines[1:] == [
        "[1/2] PART ONLY run/p/checkpoint_1: evaluated with pytest arguments: -k a",
        "[2/2] NO VERDICT run/p/checkpoint_2: killed",
        "2 of 2 done in 0.0 s: 1 part only, 1 no verdict",
    ]


def test_up_to_date_submissions_are_one_number():
    shown = Shown(kept=6)
    with shown.progress:
        shown.progress.finished(SubmissionOutcome(submission(), facts(), "up_to_date"))
    assert shown.lines == ["0 to evaluate, 6 up to date"]


def test_a_job_that_several_want_counts_for_each_of_them():
    shown = Shown(job(submission(1), submission(1, run="other")))
    shown.start()
    assert "run/p/checkpoint_1 (and 1 more)" in shown.view
    shown.finish(**PASSED)
    assert [line.split(" 1/1")[0] for line in shown.lines] == [
        "[1/2] PASSED run/p/checkpoint_1",
        "[2/2] PASSED other/p/checkpoint_1",
    ]
    assert "0 running" in shown.view


def test_the_pace_is_printed_at_intervals():
    shown = Shown(*(job(submission(number)) for number in range(1, 6)), slots=2)
    shown.start(0)
    shown.clock.now += PACE_INTERVAL_S - 1
    shown.finish(0, **PASSED)
    assert len(shown.lines) == 1
    shown.clock.now += 1
    shown.progress.tick()
    shown.progress.tick()
    assert shown.lines[1:] == ["· [1/5] 0 running, 2.0 checkpoints a minute, about 58 s left"]


def test_the_pace_is_printed_after_a_silence_too():
    shown = Shown(*(job(submission(number)) for number in range(1, 4)))
    shown.start(0)
    shown.clock.now += SILENCE_S
    shown.finish(0, **PASSED)
    assert len(shown.lines) == 1
    shown.clock.now += SILENCE_S
    shown.progress.tick()
    shown.progress.tick()
    assert shown.lines[1:] == ["· [1/3] 0 running, 6.0 checkpoints a minute, about 10 s left"]


def done_tests(target, count, total=40, failed=0):
    where = os.path.realpath(target.path), target.problem.name, target.checkpoint.name
    return ProgressEvent(ProgressKind.TESTS_DONE, *where, count=count, total=total, passed=count, failed=failed)


@pytest.mark.parametrize(
    ("known", "elapsed", "counts", "expected"),
    [
        (None, 9.0, [], None),
        (20.0, 9.0, [], 20.0),
        (20.0, 9.0, [0, 4], 20.0),
        (None, 9.0, [4, 8], 9.0 + 8.0),
        (20.0, 9.0, [4, 20], 0.5 * (9.0 + 1.25) + 0.5 * 20.0),
        (20.0, 9.0, [4, 40], 9.0),
    ],
)
def test_the_expected_duration_follows_more_and_more_from_tests_that_are_done(known, elapsed, counts, expected):
    """An event each second."""
    tests = None
    for now, count in enumerate(counts):
        tests = advance(tests, done_tests(submission(), count), float(now))
    assert expected_duration(known, elapsed, tests, float(len(counts) - 1)) == expected


def test_the_view_shows_the_tests_of_running_jobs():
    first, second = submission(1), submission(2)
    shown = Shown(job(first), job(second), slots=2)
    shown.start(0)
    shown.start(1)
    shown.progress.tests_done(done_tests(first, 0))
    assert "tests" not in shown.view
    shown.clock.now += 2
    shown.progress.tests_done(done_tests(first, 10, failed=1))
    shown.clock.now += 3
    shown.progress.tests_done(done_tests(first, 16, failed=1))
    assert shown.view.splitlines()[1:] == [
        "2 running (16 of 40 tests), about 12 s left",
        "     5.0 s  16/40 tests, 1 failed  run/p/checkpoint_1",
        "     5.0 s                         run/p/checkpoint_2",
    ]


def test_tests_of_a_job_that_does_not_run_are_ignored():
    shown = Shown(job(submission(1)), job(submission(2)))
    shown.start(0)
    shown.progress.tests_done(done_tests(submission(2), 5))
    assert "tests" not in shown.view
    shown.progress.tests_done(done_tests(submission(1), 5))
    assert "5/40 tests" in shown.view
    shown.progress.retrying(JobRetrying(shown.jobs[0], Attempt(reason="no memory", duration=4.0), 2.0))
    shown.start(0)
    assert "tests" not in shown.view


class Heard(io.StringIO):
    """Says when something was written that has this in it."""

    def __init__(self, words):
        super().__init__()
        self.words, self.heard = words, threading.Event()

    def write(self, text):
        if self.words in text:
            self.heard.set()
        return super().write(text)


def test_the_pace_is_printed_without_any_event():
    stream, clock = Heard("1 running"), Clock()
    tracker = ProgressTracker([job(submission())], 1, PassPolicy.ALL_CASES, clock)
    progress = RunProgress(tracker, 0, live=False, stream=stream, tick_interval=0.001)
    with progress:
        progress.started(JobStarted(job(submission())))
        clock.now += PACE_INTERVAL_S
        assert stream.heard.wait(60)
    assert stream.getvalue().splitlines()[1] == "· [0/1] 1 running"
    assert not [one for one in threading.enumerate() if one.name == TICKER]


def test_cached_results_do_not_count_for_the_pace():
    shown = Shown(*(job(submission(number)) for number in range(1, 6)))
    shown.finish(0, source="cached", **PASSED)
    shown.clock.now += PACE_INTERVAL_S
    shown.progress.tick()
    assert shown.lines[-1] == "· [1/5] 0 running"


def test_cached_results_do_not_count_for_the_remaining_time():
    shown = Shown(job(submission(1), expected=10.0), job(submission(2), expected=50.0, cached=True))
    assert "about 10 s left" in shown.view


def test_a_retry_is_printed_and_its_job_waits_again():
    shown = Shown(job(submission(), expected=10.0))
    shown.start()
    shown.clock.now += 4
    assert "about 6 s left" in shown.view
    shown.progress.retrying(JobRetrying(shown.jobs[0], Attempt(reason="no memory\n...", duration=4.0), 2.0))
    assert shown.lines == ["[0/1] RETRYING run/p/checkpoint_1 again in 2.0 s: no memory"]
    assert "0 running" in shown.view
    assert "about 10 s left" in shown.view


def test_stopping_counts_running_jobs_only():
    shown = Shown(*(job(submission(number), expected=10.0) for number in range(1, 5)))
    shown.start(0)
    shown.start(1)
    shown.progress.stopping()
    assert shown.lines == ["stopping: finishing 2 that run; Ctrl-C again stops now"]
    assert "stopping, 2 running, about 20 s left" in shown.view


def test_a_repeated_step_is_printed_once():
    shown = Shown(job(submission()))
    for image in ("a", "a", "b"):
        shown.progress.step(ProgressEvent(ProgressKind.PULL_IMAGE, image))
    assert shown.lines == ["· pulling a", "· pulling b"]


def test_the_view_shows_the_progress_and_running_jobs():
    shown = Shown(*(job(submission(number), expected=10.0) for number in range(1, 21)), slots=SHOWN_RUNNING + 2)
    for number in range(SHOWN_RUNNING + 4):
        shown.start(number)
        shown.clock.now += 1
    shown.finish(0, **PASSED)
    shown.finish(1)
    view = shown.view.splitlines()
    assert view[0].startswith("2/20 ")
    assert "1 passed  1 not passed" in view[0]
    assert "no verdict" not in view[0]
    assert view[1].startswith(f"{SHOWN_RUNNING + 2} running, 10.0 checkpoints a minute, about ")
    assert view[2] == "    10.0 s  run/p/checkpoint_3"
    assert len(view) == SHOWN_RUNNING + 3
    assert view[-1] == "  ... and 2 more"


def test_passes_do_not_scroll_by_where_there_is_a_live_view():
    shown = Shown(*(job(submission(number)) for number in range(1, 4)), live=True)
    with shown.progress:
        shown.finish(0, **PASSED)
        shown.finish(1, core=(1, 3))
        shown.finish(2, state="infrastructure_failure", reason="killed")
    said = shown.stream.getvalue()
    assert "] PASSED" not in said
    assert "[2/3] NOT PASSED run/p/checkpoint_2 1/3 (core 1/3)" in said
    assert "[3/3] NO VERDICT run/p/checkpoint_3: killed" in said


@pytest.mark.parametrize("live", [False, True])
def test_nothing_reaches_the_terminal_as_a_command(live):
    shown = Shown(job(submission(run=HOSTILE, problem=HOSTILE)), live=live)
    with shown.progress:
        shown.start()
        shown.progress.step(ProgressEvent(ProgressKind.RUN_SETUP_COMMAND, HOSTILE))
        shown.progress.retrying(JobRetrying(shown.jobs[0], Attempt(reason=HOSTILE, duration=1.0), 0.0))
        shown.start()
        view = shown.view
        shown.finish(state="infrastructure_failure", reason=HOSTILE)
    said = shown.stream.getvalue()
    for raw in ("\x1b]", "\x07", "\u202e", "\nFAKE", "\tFAKE"):
        assert raw not in said
        assert raw not in view
    escaped = "\\x1b]0;owned\\x07[red]"
    assert said.count(escaped) >= 7
    assert escaped in view


class Deaf(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "no space")])
def test_a_run_goes_on_when_nobody_listens_any_more(error, live):
    tracker = ProgressTracker([job(submission())], 1, PassPolicy.ALL_CASES)
    progress = RunProgress(tracker, 0, live=live, stream=Deaf(error))
    with progress:
        progress.finished(SubmissionOutcome(submission(), facts(), "evaluated"))
        progress.step(ProgressEvent(ProgressKind.PULL_IMAGE, "a"))


@pytest.mark.parametrize(("pairs", "left"), [(1, 50.0), (2, 20.0), (6, 0.0)])
def test_a_job_that_several_pairs_share_is_expected_to_end_earlier(pairs, left):
    clock, jobs = Clock(), [job(submission(), expected=60.0)]
    tracker = ProgressTracker(jobs, 1, PassPolicy.ALL_CASES, clock)
    tracker.started(jobs[0], pairs)
    clock.now += 10
    assert tracker.left == left
