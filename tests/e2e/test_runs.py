"""Whole runs: stopped early, evaluated by two processes at a time, cached, retried."""

from __future__ import annotations

import http.server
import os
import re
import signal
import threading

import pytest

from slop_code.evaluation import CorrectnessResults
from slop_code.runs.checkpoint_lines import read_lines
from slop_code.runs.result_cache import ResultCache
from slop_code.runs.summary import RunSummary


@pytest.fixture
def folder(sums, staying):
    """A run whose submissions stay as long as they may."""
    return sums.run("staying", mains={one: sums.main(one, first=staying.first) for one in sums.checkpoints})


def checkpoints_done(folder):
    return {path.parent.name for path in folder.glob("sums/*/evaluation.json")}


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def outcomes(said):
    """Each line of progress that tells an end: the checkpoint, and whether the store had it."""
    found = re.findall(r"\[ *\d+/\d+\] (?:NOT )?PASSED \S+/sums/(\S+) (.*?)\r?\n", said)
    return [(checkpoint, "(cached)" in rest) for checkpoint, rest in found]


class TestEndedEarly:
    def test_the_first_interrupt_finishes_what_runs(self, sums, fresh_cache, start, evaluated, staying, left_over):
        """What runs comes to its end and counts; what has not begun is done the next time."""
        first, *rest = sums.checkpoints
        mains = {first: sums.main("a", first=staying.first), **{one: sums.main(one) for one in rest}}
        folder, cache = sums.run("run", mains=mains), fresh_cache("cache")
        evaluator = start(cache, folder, "-j", 1, terminal=True)
        running = staying.arrived(1)
        evaluator.type(b"\x03")
        evaluator.until("stopping: finishing 1 that run; Ctrl-C again stops now")
        staying.let_go(*running)
        staying.let_go(*staying.arrived(1))  # that of its second test
        assert evaluator.end() == 130
        assert "Traceback" not in evaluator.said
        assert checkpoints_done(folder) == {first}
        lines = read_lines(folder / "checkpoint_results.jsonl")
        assert [line.state for line in lines] == ["evaluated", "not_evaluated", "not_evaluated"]
        assert RunSummary.load(folder / "summary.json").totals.checkpoints.evaluated == 1
        assert left_over(cache, evaluator.pid) == []

        before = files(folder / "sums" / first)
        status, said = evaluated(cache, folder, "-j", 1)
        assert (status, [one for one, _ in outcomes(said)]) == (0, rest)
        assert files(folder / "sums" / first) == before

    def test_a_second_interrupt_stops_at_once(self, folder, fresh_cache, start, staying, left_over):
        cache = fresh_cache("cache")
        evaluator = start(cache, folder, "-j", 2, terminal=True)
        staying.arrived(2)
        evaluator.type(b"\x03")
        evaluator.until("stopping")
        evaluator.type(b"\x03")
        assert evaluator.end() == 130
        assert staying.alive() == []
        assert "Traceback" not in evaluator.said
        assert checkpoints_done(folder) == set(), evaluator.said
        assert left_over(cache, evaluator.pid) == []


def test_unreadable_files_of_a_submission_are_a_warning(sums, fresh_cache, start):
    """Root is made to obey permissions, as everyone else has to."""
    folder = sums.run("run", mains={"checkpoint_1": sums.main("a")})
    snapshot = folder / "sums/checkpoint_1/snapshot"
    for name in ("a.txt", "b.txt"):
        (snapshot / name).touch(0)
    obeying = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    start(fresh_cache("cache"), folder, before=obeying).end()
    result = CorrectnessResults.load(folder / "sums/checkpoint_1/evaluation.json")
    assert result.passed["all-cases"], result.infrastructure_failure_reason
    assert result.warnings == [
        "2 of the submission's files and folders cannot be read by this user, nor by the submission, "
        "the first: a.txt; make them readable"
    ]


class TestTwoEvaluators:
    def test_a_second_evaluator_is_refused_and_sigterm_ends_the_first_at_once(
        self, folder, fresh_cache, start, evaluated, staying, left_over
    ):
        cache = fresh_cache("cache")
        first = start(cache, folder, "-j", 1)
        staying.arrived(1)
        before = files(folder)
        status, said = evaluated(cache, folder)
        assert status == 3
        assert f"{folder}: held by process {first.pid} " in said
        assert "wait for its end, or end it" in said
        assert files(folder) == before
        first.process.send_signal(signal.SIGTERM)
        assert first.end() == 130
        assert staying.alive() == []
        assert "Traceback" not in first.said
        assert checkpoints_done(folder) == set(), first.said
        assert left_over(cache, first.pid) == []

    @pytest.mark.long
    def test_evaluators_of_the_same_snapshots_share_results(self, sums, fresh_cache, start):
        """What one evaluates, the other waits for and takes."""
        cache = fresh_cache("cache")
        runs = [[sums.run(f"{who}/{number}", salt=str(number)) for number in range(3)] for who in ("one", "two")]
        both = [start(cache, *folders, "-j", 2) for folders in runs]
        assert [evaluator.end() for evaluator in both] == [0, 0]
        ended = [outcomes(evaluator.said) for evaluator in both]
        assert [len(one) for one in ended] == [9, 9]
        assert [stored for one in ended for _, stored in one].count(False) == 9
        one, two = ([files(folder / "sums") for folder in folders] for folders in runs)
        assert [sorted(contents.values()) for contents in one] == [sorted(contents.values()) for contents in two]


class TestTheStore:
    def test_results_are_shared_with_another_run(self, sums, fresh_cache, evaluated):
        cache = fresh_cache("cache")
        first, second = sums.run("first", salt="a"), sums.run("second", salt="a")
        assert evaluated(cache, first)[0] == 0
        status, said = evaluated(cache, second)
        assert (status, sorted(outcomes(said))) == (0, [(one, True) for one in sums.checkpoints])
        assert sorted(files(first / "sums").values()) == sorted(files(second / "sums").values())

        status, said = evaluated(cache, second, "--overwrite")
        assert (status, sorted(outcomes(said))) == (0, [(one, False) for one in sums.checkpoints])

    @pytest.mark.long
    def test_damaged_entries_are_dropped(self, sums, fresh_cache, evaluated):
        cache = fresh_cache("cache")
        first, second = sums.run("first", salt="a"), sums.run("second", salt="a")
        assert evaluated(cache, first)[0] == 0
        flipped, cut, whole = sorted(
            path for path in ResultCache(cache).root.glob("??/*") if not path.name.startswith(".")
        )
        content = bytearray(flipped.read_bytes())
        content[len(content) // 2] ^= 1
        flipped.write_bytes(content)
        cut.write_bytes(cut.read_bytes()[:-1])
        kept = whole.stat().st_ino
        status, said = evaluated(cache, second)
        assert (status, sorted(stored for _, stored in outcomes(said))) == (0, [False, False, True])
        assert checkpoints_done(second) == set(sums.checkpoints)
        assert all(ResultCache(cache).get(path.name) for path in (flipped, cut, whole))
        assert whole.stat().st_ino == kept


class TestTriedAgain:
    @pytest.fixture
    def flaky(self):
        """A server that is broken for so many requests, and then is not."""

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                left = self.server.broken
                self.server.broken -= 1
                self.send_response(500 if left > 0 else 200)
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield server
            server.shutdown()
            thread.join()

    @pytest.fixture
    def folder(self, sums, flaky):
        """Each set-up asks the server once."""
        url = f"http://127.0.0.1:{flaky.server_port}"
        fetch = f'"$VIRTUAL_ENV/bin/python" -c "import urllib.request; urllib.request.urlopen({url!r})"'
        return sums.run("run", environment={"setup": {"commands": [fetch], "on_failure": "infrastructure"}})

    def results(self, folder):
        return [CorrectnessResults.load(path) for path in sorted(folder.glob("sums/*/evaluation.json"))]

    def test_a_failed_setup_is_retried_until_it_works(self, folder, fresh_cache, evaluated, flaky):
        flaky.broken = 1
        status, said = evaluated(fresh_cache("cache"), folder, "-j", 1)
        assert status == 0
        assert "RETRYING run/sums/checkpoint_" in said
        attempts = [result.attempts for result in self.results(folder)]
        assert sorted(map(len, attempts)) == [0, 0, 1]
        (failed,) = max(attempts, key=len)
        assert failed.reason.startswith("set-up: `")
        assert "HTTP Error 500" in failed.reason
        assert sorted(line.attempts for line in read_lines(folder / "checkpoint_results.jsonl")) == [1, 1, 2]

    @pytest.mark.long
    def test_retries_are_limited(self, folder, fresh_cache, evaluated, flaky):
        flaky.broken = asked = 1000
        cache = fresh_cache("cache")
        status, said = evaluated(cache, folder, "--retries", 1)
        assert (status, asked - flaky.broken) == (3, 6)
        for result in self.results(folder):
            assert "HTTP Error 500" in result.infrastructure_failure_reason
            assert ["HTTP Error 500" in attempt.reason for attempt in result.attempts] == [True]
            assert not any(result.passed.values())
        found = RunSummary.load(folder / "summary.json").totals.checkpoints
        assert (found.planned, found.evaluated, found.infrastructure_failures) == (3, 0, 3)
        assert list(ResultCache(cache).root.glob("??/[!.]*")) == []
        assert said.count("RETRYING") == 3
