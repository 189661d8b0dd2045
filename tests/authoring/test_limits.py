import pytest

from slop_code.authoring.check.limits_step import (
    FLOORS,
    ReferenceNeeds,
    Shortage,
    limit_summary,
    limit_text,
    long_sessions,
    reduced_limit,
    reducible_limits,
    shortage,
    shortage_finding,
    slow_tests,
    suggested_timeout,
    summary_lines,
    with_reduced_limits,
)
from slop_code.authoring.check.steps import check_step
from slop_code.errors import InfrastructureError
from slop_code.evaluation.config import CheckpointConfig
from slop_code.execution import EnvironmentSpec
from slop_code.execution.environment import Limits, TimeoutsSpec
from tests.authoring.reference_results import case, judged

FLAKY = case("c", "failed", markers=["quarantined"])


@pytest.mark.parametrize(
    ("slowest", "seconds"),
    [(0.0, 5), (0.5, 5), (0.51, 10), (1.0, 10), (1.01, 15), (5.9, 60), (60.0, 600), (61.0, 1200), (130.0, 1800)],
)
def test_the_suggested_timeout_is_round_and_generous(slowest, seconds):
    assert suggested_timeout(slowest) == seconds


@pytest.mark.parametrize(
    ("limits", "name", "tried"),
    [
        *[(Limits(processes=limit), "processes", tried) for limit, tried in ((100, 25), (7, 2), (2, 2), (1, 1))],
        (Limits(memory=1 << 30), "memory", 256 << 20),
    ],
)
def test_a_quarter_is_never_less_than_any_program_needs(limits, name, tried):
    assert reduced_limit(limits, name) == tried


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("processes", 25, "25"),
        ("memory", 1 << 30, "1G"),
        ("memory", 3 << 29, "1.5G"),
        ("disk", 50 << 20, "50M"),
        ("disk", 1023 << 20, "1023M"),
        ("output", 64 << 10, "64K"),
        ("output", 100, "100"),
    ],
)
def test_limits_are_printed_with_their_units(name, value, text):
    assert limit_text(name, value) == text


def test_only_the_named_limits_are_divided():
    spec = EnvironmentSpec.model_validate({"type": "local", "name": "test", "limits": {"memory": "1G", "disk": "1M"}})
    assert with_reduced_limits(spec, ["memory"]).limits == spec.limits.model_copy(update={"memory": 256 << 20})
    assert with_reduced_limits(spec, FLOORS).limits == spec.limits.model_copy(
        update={"memory": 256 << 20, "processes": 64, "disk": 1 << 20, "output": 8 << 20}
    )


@pytest.mark.parametrize(
    ("limits", "names", "summary"),
    [
        ({"memory": "1G"}, ["memory", "processes", "disk", "output"], "memory 1G (tried 256M)"),
        ({"memory": "64M"}, ["memory", "processes", "disk", "output"], "memory 64M (tried 32M)"),
        ({"memory": "32M", "processes": 2}, ["disk", "output"], "memory 32M (not tried: the minimum)"),
        ({"memory": "16M", "processes": 1, "disk": "4M", "output": "64K"}, [], "memory 16M (not tried: the minimum)"),
    ],
)
def test_only_what_can_be_less_is_tried(limits, names, summary):
    own = EnvironmentSpec.model_validate({"type": "local", "name": "test", "limits": limits}).limits
    assert (list(reducible_limits(own)), limit_summary(own, "memory")) == (names, summary)


@pytest.mark.parametrize(
    ("tried", "test", "reason"),
    [
        (judged(case("a"), case("b", "error", failure_message="no room"), FLAKY), "b", "no room"),
        (judged(FLAKY, case("a", "failed"), case("b", "failed")), "a", "it left no message"),
        (judged(reason="the session took too long"), None, "the session took too long"),
        (
            InfrastructureError("no box"),
            None,
            "it could not be started twice in a row, and with the full limits it can: no box",
        ),
    ],
)
def test_why_less_is_too_little(tried, test, reason):
    short = shortage(tried)
    assert (short.test and short.test.id, short.reason) == (test, reason)


def test_what_is_quarantined_tells_nothing_of_limits():
    assert shortage(judged(case("a"), FLAKY)) is None


@pytest.mark.parametrize(
    ("named", "location", "file"), [(None, "environment.yaml", "environment.yaml"), ("o.yaml", "config.yaml", "o.yaml")]
)
def test_the_environment_that_was_asked_for_is_to_be_changed(bench, named, location, file):
    own = bench({"environment.yaml": "type: local\nname: own\n"})
    own.named_environment = named
    finding = shortage_finding(own, "checkpoint_1", ["memory"], Shortage("no room"))
    assert str(finding.location) == location
    assert finding.fix == f"Set limits: {{memory: 2G}} or more in {file}, or make the reference use less."


def times(*tests, timeout=10.0, whole=1.0, session_timeout=None, **timeouts):
    checkpoint = CheckpointConfig(timeout=timeout, session_timeout=session_timeout)
    return ReferenceNeeds.of(checkpoint, judged(*tests, whole=whole), TimeoutsSpec(**timeouts))


@pytest.mark.parametrize(
    ("test", "found"),
    [
        (case("a", seconds=2.4), []),
        (case("a", seconds=2.6), ["Set timeout: 30 in config.yaml, or make the test quicker."]),
        (case("a", "failed", seconds=9.0), []),
        (case("a", seconds=9.0, markers=["timeout"]), []),
    ],
)
def test_tests_that_come_near_their_timeout(tmp_path, test, found):
    assert [one.fix for one in slow_tests(tmp_path, {"checkpoint_1": times(test)})] == found


def test_a_slow_test_is_told_once_where_it_has_the_least_room(tmp_path):
    seen = {f"checkpoint_{number}": times(case("a", seconds=taken)) for number, taken in enumerate((3.0, 4.0, 2.7), 1)}
    [finding] = slow_tests(tmp_path, seen)
    assert finding.checkpoint == "checkpoint_2"
    assert "takes 4.0 s" in finding.message
    assert "timeout of 10 s is 2.5 times that" in finding.message


@pytest.mark.parametrize(
    ("whole", "session_timeout", "short"),
    [(24.0, 100.0, False), (26.0, 100.0, True), (42.0, None, False), (44.0, None, True)],
)
def test_sessions_that_come_near_their_timeout(whole, session_timeout, short):
    """By default a session has 120 seconds, and for each test twice its timeout and 6 seconds."""
    own = times(case("a"), case("b"), whole=whole, session_timeout=session_timeout)
    assert len(list(long_sessions({"checkpoint_1": own}))) == short


def test_timeouts_of_the_environment_come_before_those_of_the_problem(tmp_path):
    """The advice names the setting that counts."""
    own = times(case("a", seconds=2.6), timeout=1.0, whole=26.0, session_timeout=1.0, test=10, session=100)
    assert (own.timeout, own.session_timeout) == (10, 100)
    [slow] = slow_tests(tmp_path, {"checkpoint_1": own})
    assert "the timeout of 10 s is 3.8 times that" in slow.message
    assert slow.fix == "Set timeouts.test: 30 in the environment, or make the test quicker."
    [long] = long_sessions({"checkpoint_1": own})
    assert long.fix == "Raise timeouts.session in the environment."
    assert times(case("a"), test=20).session_timeout == 120 + 2 * 20 + 6


def test_the_step_counts_with_the_timeouts_of_the_environment(bench, cache):
    environment = "type: local\nname: own\nisolation: none\ntimeouts: {test: 61, session: 501}\n"
    report = check_step(bench({"environment.yaml": environment}), "limits")
    facts = report.outcome.facts["checkpoints"]["checkpoint_1"]
    assert (facts["timeout"], facts["session_timeout"]) == (61, 501)


NEEDY = """\
import pathlib
import subprocess
import sys
import tempfile

what = sys.argv[1]
if what == "processes":
    started = [subprocess.Popen(["cat"], stdin=subprocess.PIPE) for _ in range(70)]
    for one in started:
        one.communicate()
    print(len(started))
elif what == "disk":
    with tempfile.TemporaryFile() as file:
        print(file.write(bytes(60 << 20)))
else:
    sys.stdout.write("x" * (10 << 20))
"""
NEEDS = """\
import pytest


@pytest.mark.parametrize(("what", "length"), [("processes", 3), ("disk", 9), ("output", 10 << 20)])
def test_needs(run, what, length):
    done = run(what)
    assert (done.returncode, len(done.stdout)) == (0, length)
"""


@pytest.mark.long
def test_the_limit_is_named(bench, cache, need_bubblewrap):
    need_bubblewrap()
    needy = {"solutions/checkpoint_1/main.py": NEEDY, "tests/test_checkpoint_1.py": NEEDS}
    report = check_step(bench(needy), "limits")
    assert report.broken is None
    found = [one for one in report.outcome.findings if one.rule.id == "limit-headroom"]
    assert [one.message.partition(":")[0] for one in found] == [
        "the reference of checkpoint_1 with processes 64 instead of 256",
        "the reference of checkpoint_1 with disk 50M instead of 200M",
        "the reference of checkpoint_1 with output 8M instead of 32M",
    ]
    assert [one.test for one in found] == [
        f"test_checkpoint_1.py::test_needs[{what}]" for what in ("processes-3", "disk-9", "output-10485760")
    ]
    assert found[0].fix.startswith("Set limits: {processes: 512} or more in environment.yaml")
    assert report.outcome.facts["limits"]["disk"] == {"limit": 200 << 20, "tried": 50 << 20}
    assert report.outcome.summary[-1] == (
        "limits: memory 1G (tried 256M), processes 256 (tried 64), disk 200M (tried 50M), output 32M (tried 8M); "
        "with the reduced limits not every reference passes"
    )
    assert set(report.outcome.facts["checkpoints"]["checkpoint_1"]) == {
        "slowest_test", "slowest_seconds", "timeout", "suggested_timeout", "tests_seconds", "session_timeout", "used",
    }  # fmt: skip


def test_the_summary_says_how_near_the_reference_comes_to_each_limit():
    none = dict.fromkeys(("cpu_s", "wait_s"), None)
    none |= dict.fromkeys(("judge_cpu_s", "judge_wait_s", "others_cpu_s", "stolen_s"), 0)
    sizes = {"memory_bytes": 512 << 20, "processes": 3, "written_bytes": 8 << 20, "disk_bytes": 50 << 20}
    none |= {"processors": 2}
    unknown = dict.fromkeys(sizes, None)
    tests = [
        case("a", seconds=3, usage={**none, **sizes}),
        case("b", usage={**none, **sizes, "memory_bytes": 1 << 20, "disk_bytes": 51 << 20}),
        case("c", usage={**none, **unknown}),
    ]
    own = times(*tests, timeout=30.0)
    limits = EnvironmentSpec.model_validate({"type": "local", "name": "test", "limits": {"disk": "200M"}}).limits
    slowest, _, used = summary_lines("checkpoint_1", own, limits)
    assert "the timeout is 30 s (10%); suggested: 30 s" in slowest
    assert used == (
        "checkpoint_1: the reference used at most 512M of 1G memory (50%), 3 of 256 processes (1%), "
        "51M of 200M disk (26%), 8M of 32M output (25%)"
    )
