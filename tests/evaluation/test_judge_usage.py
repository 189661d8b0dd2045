"""Time limits that the judge's plugin finds in the errors of tests, and the numbers that it writes."""

from __future__ import annotations

import socket
import subprocess
import threading
import urllib.error

import pytest

from slop_code.evaluation.judge.usage import HEAD, PROCESSORS, UsageMeter, timeout_of
from slop_code.evaluation.reports.raw_test import MAX_REPORTED_DURATION
from slop_code.evaluation.usage.resources import parse_resources
from slop_code.pytest_plugin.submission_calls import fail_call


def error_of(action):
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        action()
    return caught.value


def expired(limit):
    return subprocess.TimeoutExpired(["main"], limit)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (expired(10), ("call", 10)),
        (expired(6), ("call", 6)),
        (TimeoutError("timed out"), ("call", 12)),
        (type("TIMEOUT", (Exception,), {})("as pexpect has it"), ("call", 12)),
        (urllib.error.URLError(TimeoutError("timed out")), ("call", 12)),
        (pytest.fail.Exception("Timeout (>2.5s) from pytest-timeout."), ("test", 2.5)),
        (pytest.fail.Exception("Timeout (>1.2.3s)"), None),
        (pytest.fail.Exception(f"Timeout (>{10**20}s)"), ("test", MAX_REPORTED_DURATION)),
        (pytest.fail.Exception("another failure"), None),
        (AssertionError(), None),
        pytest.param(expired(-0.1), ("call", 12), id="the rest of its time was over"),
        pytest.param(expired(0.001), ("call", 12), id="the rest of its time"),
        pytest.param(expired(10_000), ("call", 12), id="milliseconds"),
        pytest.param(expired(float("inf")), ("call", 12), id="infinite"),
        pytest.param(expired(float("nan")), ("call", 12), id="no number"),
        pytest.param(expired("10"), ("call", 12), id="text"),
    ],
)
def test_the_time_limit_of_an_error_after_twelve_seconds(error, expected):
    found = timeout_of(error, 12.0)
    assert (found and (found["kind"], found["limit_s"])) == expected


def test_a_fixture_that_ended_by_a_time_limit_is_that_of_the_first_test_alone():
    error = expired(10)
    assert timeout_of(error, 10.0) is not None
    assert timeout_of(error, 0.1) is None, "pytest raises it again for every test that needs the fixture"


class TestFixturesOfThePlugin:
    @pytest.mark.parametrize(("limit", "expected"), [(10.0, {"kind": "call", "limit_s": 10.0}), (None, None)])
    def test_a_failure_by_time_carries_its_limit(self, limit, expected):
        failed = error_of(lambda: fail_call("too late", ["main"], limit))
        assert (type(failed), str(failed)) == (pytest.fail.Exception, "too late")
        assert timeout_of(failed, 10.0) == expected
        assert failed.__context__ is None or failed.__suppress_context__, "the report does not show it"

    def test_inside_of_an_except_block(self):
        def fail():
            try:
                raise ValueError
            except ValueError:
                fail_call("too late", ["main"], 10.0)

        assert timeout_of(error_of(fail), 10.0) == {"kind": "call", "limit_s": 10.0}


def gate_that_answers(folder, *answers):
    """A socket like that of the spawner, which closes the connection instead of an answer of None."""
    path = str(folder / "gate")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(len(answers))

    def serve():
        with listener:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(64)
                    if answer is not None:
                        connection.send(answer)

    threading.Thread(target=serve, daemon=True).start()
    return path


@pytest.mark.e2e
class TestMeter:
    def measured(self, meter):
        """As the evaluator reads it."""
        return parse_resources(meter.take()).usage

    def test_times_after_a_missing_answer_are_not_those_of_one_test(self, tmp_path):
        answer = HEAD.pack(2_000_000_000, 3_000_000_000, 4, 5, 6, 7, 0)
        meter = UsageMeter(gate_that_answers(tmp_path, answer, None, answer, answer), {})
        meter.start()
        missing, after, usual = (self.measured(meter) for _ in range(3))
        assert (missing.cpu_s, missing.wait_s, missing.processes) == (None, None, None)
        assert (after.cpu_s, after.wait_s, after.processes) == (None, None, 5)
        assert (usual.cpu_s, usual.wait_s, usual.processes) == (2.0, 3.0, 5)

    def test_a_kernel_that_does_not_measure_waiting(self, tmp_path):
        answer = HEAD.pack(2_000_000_000, (1 << 64) - 1, 4, 5, 6, 7, 0)
        meter = UsageMeter(gate_that_answers(tmp_path, answer, answer), {})
        meter.start()
        usage = self.measured(meter)
        assert (usage.cpu_s, usage.wait_s) == (2.0, None)

    @pytest.mark.parametrize(("cpus", "expected"), [(None, PROCESSORS), (0.5, 0.5), (1e6, PROCESSORS)])
    def test_processors_that_the_submission_may_use(self, cpus, expected):
        assert self.measured(UsageMeter(None, {}, cpus)).processors == expected

    def test_every_number_is_one_that_a_result_accepts(self, tmp_path):
        answer = HEAD.pack(*[(1 << 64) - 1] * 6, 0)
        meter = UsageMeter(gate_that_answers(tmp_path, answer, answer), {})
        meter.start()
        meter.last.own_wait = meter.last.own_cpu = meter.last.busy = meter.last.stolen = 1e18  # clocks that went back
        usage = self.measured(meter)
        assert (usage.processes, usage.judge_wait_s) == ((1 << 63) - 1, 0)
        assert (usage.others_cpu_s, usage.stolen_s) == (0, 0)
