"""`eval --follow` beside a process that writes the snapshots of a run in pieces."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading

import pytest

from slop_code.cli.eval.follow_action import POLL_S
from slop_code.evaluation import CorrectnessResults
from slop_code.execution.submission import tree_digest
from slop_code.runs.checkpoint_lines import read_lines
from slop_code.runs.summary import RunSummary
from tests.e2e.test_hangs import processes

SETTLE_S = 1
LOOKS = 4
"""Looks at the run, with at least a settle time between the first and the last of them."""
assert (LOOKS - 1) * POLL_S > SETTLE_S

AGENT = """
import json, pathlib, sys
for line in sys.stdin:
    path, text = json.loads(line)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(text)
    print(flush=True)
"""


class Agent:
    """A process of its own that writes the run: each call appends a piece to a file, and returns when that is done."""

    def __init__(self, run):
        self.run = run
        argv = [sys.executable, "-c", AGENT]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def write(self, path, text=""):
        self.process.stdin.write(json.dumps([str(self.run / path), text]) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline()

    def snapshot(self, number, main, done_file="snapshot.done"):
        """The whole of it."""
        self.write(f"sums/checkpoint_{number}/snapshot/main.py", main)
        self.write(f"sums/checkpoint_{number}/{done_file}")


@pytest.fixture
def agent(sums):
    agent = Agent(sums.folder / "followed")
    with agent.process:
        yield agent


@pytest.fixture
def follow(start, agent, fresh_cache):
    """`follow("--stop-at", "strict")` starts the command with a cache that all of them share."""
    cache = fresh_cache("cache")

    def call(*arguments):
        return start(cache, agent.run, "--follow", "--settle", SETTLE_S, "-v", *arguments)

    return call


@contextlib.contextmanager
def letting_go(staying):
    """Submissions that stay are let go whenever there are any."""
    ended = threading.Event()

    def let_go():
        while not ended.wait(0.02):
            for process in processes(staying.word):
                with contextlib.suppress(ProcessLookupError):
                    staying.let_go(process)

    thread = threading.Thread(target=let_go)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def more_looks(evaluator):
    evaluator.until("looked at", evaluator.said.count("looked at") + LOOKS)


def result(run, number):
    return CorrectnessResults.load(run / f"sums/checkpoint_{number}/evaluation.json")


def is_of_the_final_folder(run, number):
    """The digest in the result is that of the snapshot as it is now."""
    snapshot = run / f"sums/checkpoint_{number}/snapshot"
    return result(run, number).provenance.digests.submission == tree_digest(snapshot)


def judged(evaluator):
    """Every outcome that was shown, whatever came of it."""
    verdicts = ("PASSED followed/", "NO VERDICT followed/")
    return sum(evaluator.said.count(verdict) for verdict in verdicts)


def test_no_snapshot_is_judged_before_it_is_complete_and_the_command_ends_with_the_run(sums, agent, follow):
    evaluator = follow("--report", sums.folder / "report.html")
    evaluator.until("waiting for")
    main = sums.main("pieces")
    for piece in (main[: len(main) // 2], main[len(main) // 2 :]):
        agent.write("sums/checkpoint_1/snapshot/main.py", piece)
        more_looks(evaluator)
    assert not (agent.run / "sums/checkpoint_1/evaluation.json").exists()
    agent.write("sums/checkpoint_1/inference_result.json", "{}")
    evaluator.until("PASSED followed/sums/checkpoint_1")
    agent.snapshot(2, main)
    evaluator.until("PASSED followed/sums/checkpoint_2")
    agent.write("unknown/checkpoint_1/snapshot/main.py", "never judged")
    agent.write("sums/checkpoint_3/snapshot/main.py", "never finished")
    agent.write("run.done")
    assert evaluator.end() == 3, evaluator.said
    assert judged(evaluator) == 2
    assert "Traceback" not in evaluator.said
    assert all(is_of_the_final_folder(agent.run, number) for number in (1, 2))
    assert not (agent.run / "sums/checkpoint_3/evaluation.json").exists()
    summary = RunSummary.load(agent.run / "summary.json")
    reasons = {issue.label: issue.reason for issue in summary.issues}
    assert reasons["followed/sums/checkpoint_3"].startswith("the snapshot is not complete: there is neither")
    assert "no such problem" in reasons["followed/unknown/checkpoint_1"]
    assert summary.totals.checkpoints.evaluated == 2
    assert "followed" in (sums.folder / "report.html").read_text()


@pytest.mark.long
def test_a_snapshot_that_changes_while_it_is_evaluated_is_judged_as_it_is_in_the_end(sums, agent, follow, staying):
    agent.snapshot(1, sums.main("early", first=staying.first))
    evaluator = follow()
    staying.arrived(1)
    agent.write("sums/checkpoint_1/snapshot/late.txt", "it was not complete")
    agent.write("run.done")
    with letting_go(staying):
        evaluator.end()
    discarded = "NO VERDICT followed/sums/checkpoint_1: the submission changed"
    assert evaluator.said.count(discarded) == 1, evaluator.said
    assert evaluator.said.count("] PASSED followed/sums/checkpoint_1") == 1
    assert "RETRYING" not in evaluator.said
    assert is_of_the_final_folder(agent.run, 1)
    assert result(agent.run, 1).passed["all-cases"]


@pytest.mark.long
def test_a_snapshot_that_changes_after_its_evaluation_is_evaluated_again(sums, agent, follow):
    evaluator = follow()
    agent.snapshot(1, sums.main("first", kind="wrong"))
    evaluator.until("NOT PASSED followed/sums/checkpoint_1")
    first = result(agent.run, 1).provenance.digests.submission
    agent.write("sums/checkpoint_1/snapshot/notes.txt", "more")
    evaluator.until("NOT PASSED followed/sums/checkpoint_1", 2)
    agent.write("run.done")
    assert evaluator.end() == 3, evaluator.said  # the other checkpoints have no snapshot
    assert is_of_the_final_folder(agent.run, 1)
    assert result(agent.run, 1).provenance.digests.submission != first


@pytest.mark.long
def test_killed_and_started_again_it_loses_nothing(sums, agent, follow, staying):
    evaluator = follow()
    agent.snapshot(1, sums.main("kept"))
    evaluator.until("PASSED followed/sums/checkpoint_1")
    agent.snapshot(2, sums.main("cut off", first=staying.first))
    staying.arrived(1)
    evaluator.process.kill()
    assert evaluator.end() == -signal.SIGKILL
    kept = agent.run / "sums/checkpoint_1/evaluation.json"
    before = kept.read_bytes(), kept.stat().st_mtime_ns
    assert not (agent.run / "sums/checkpoint_2/evaluation.json").exists()

    agent.snapshot(3, sums.main("written meanwhile"))
    agent.write("result.json", "{}")
    again = follow()
    with letting_go(staying):
        assert again.end() == 0, again.said
    assert (kept.read_bytes(), kept.stat().st_mtime_ns) == before
    assert "PASSED followed/sums/checkpoint_1 " not in again.said
    assert all(is_of_the_final_folder(agent.run, number) for number in (1, 2, 3))
    lines = read_lines(agent.run / "checkpoint_results.jsonl")
    assert [line.passed["all-cases"] for line in lines] == [True, True, True]


@pytest.mark.long
def test_a_checkpoint_below_the_policy_stops_the_run(sums, agent, follow):
    evaluator = follow("--stop-at", "strict")
    agent.snapshot(1, sums.main("good"))
    evaluator.until("PASSED followed/sums/checkpoint_1")
    assert not (agent.run / "stop.json").exists()
    agent.snapshot(2, sums.main("wrong", kind="wrong"))
    assert evaluator.end() == 4, evaluator.said
    stop = json.loads((agent.run / "stop.json").read_text())
    assert (stop["run"], stop["problem"], stop["checkpoint"]) == ("followed", "sums", "checkpoint_2")
    assert stop["policy"] == "strict"
    assert (stop["pass_counts"]["Regression"], stop["total_counts"]["Regression"]) == (1, 2)
    assert stop["submission"] == result(agent.run, 2).provenance.digests.submission

    again = follow("--stop-at", "strict")
    assert again.end() == 4, again.said  # also where the results are there already
    assert json.loads((agent.run / "stop.json").read_text())["checkpoint"] == "checkpoint_2"
    agent.write("run.done")
    assert follow("--stop-at", "any").end() == 3
    assert not (agent.run / "stop.json").exists()


@pytest.mark.long
def test_an_interrupt_while_it_waits_writes_the_summary(sums, agent, follow):
    evaluator = follow()
    agent.snapshot(1, sums.main("good"))
    evaluator.until("PASSED followed/sums/checkpoint_1")
    more_looks(evaluator)
    evaluator.process.send_signal(signal.SIGINT)
    assert evaluator.end() == 130
    assert "interrupted; the same command goes on" in evaluator.said
    assert "checkpoint sums/checkpoint_1: PASSED" in evaluator.said
    assert RunSummary.load(agent.run / "summary.json").totals.checkpoints.evaluated == 1
