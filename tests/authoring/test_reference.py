import json

import pytest

from slop_code.authoring.check.findings import Severity
from slop_code.authoring.check.python_sources import is_allowed, location_of_checkpoint, read_source
from slop_code.authoring.check.reference_step import findings_of
from slop_code.authoring.check.steps import check_step
from slop_code.authoring.check.workbench import reference_fault
from tests.authoring.reference_results import case, judged

TESTS = """\
import pytest


def test_right(run):
    assert run("hello").stdout == "HELLO\\n"


@pytest.mark.parametrize("word", ["\\x1b[31m", "plain"])
def test_wrong(run, word):
    assert run(word).stdout == "no such\\n"


@pytest.mark.skip(reason="not today")
def test_skipped(run):
    assert run("hello").stdout == "HELLO\\n"


@pytest.fixture
def broken():
    raise RuntimeError("no fixture")


def test_error(broken):
    pass


def test_flaky(run):
    assert run("a").stdout == "b\\n"
"""


@pytest.fixture
def reference(bench, cache, need_bubblewrap):
    need_bubblewrap()

    def check(*overlays):
        return check_step(bench(*overlays), "reference")

    return check


def test_every_test_that_does_not_pass_is_told(reference):
    quarantine = json.dumps({"schema_version": 1, "tests": [{"test": "test_checkpoint_1.py::test_flaky"}]})
    report = reference({"tests/test_checkpoint_1.py": TESTS, "tests/flaky.json": quarantine})
    found = {finding.test.partition("::")[2]: finding for finding in report.outcome.findings}
    assert {name: (one.location.line, one.severity) for name, one in found.items()} == {
        "test_wrong[\\x1b[31m]": (9, Severity.ERROR),
        "test_wrong[plain]": (9, Severity.ERROR),
        "test_skipped": (14, Severity.ERROR),
        "test_error": (23, Severity.ERROR),
        "test_flaky": (27, Severity.NOTE),
    }
    assert found["test_skipped"].message.endswith("is skipped with the reference of checkpoint_1: not today")
    assert "RuntimeError: no fixture" in found["test_error"].message
    assert 'assert run(word).stdout == "no such\\n"' in found["test_wrong[plain]"].detail
    assert not any("\x1b" in one.message + one.detail for one in found.values())
    assert report.outcome.facts["checkpoints"]["checkpoint_1"] | {"seconds": 0} == {
        "passed": 1, "total": 6, "seconds": 0, "no_verdict": None,
    }  # fmt: skip
    assert report.outcome.summary[0].startswith("checkpoint_1: 1 of 6 tests passed in ")


def test_a_session_that_does_not_end_is_a_finding(reference):
    config = "name: shout\nversion: 1\ndescription: ''\ntags: []\nentry_file: main\nsession_timeout: 3\n"
    report = reference(
        {
            "config.yaml": f"{config}checkpoints:\n  checkpoint_1:\n",
            "tests/test_checkpoint_1.py": "import os\n\n\ndef test_hangs():\n    os.read(os.pipe()[0], 1)\n",
        }
    )
    assert report.broken is None
    [finding] = report.outcome.findings
    assert finding.rule.id == "reference-no-verdict"
    assert "session timeout of 3 s" in finding.message


@pytest.mark.parametrize("name", ["reference", "stability", "strength", "secrecy", "limits"])
def test_without_a_reference_nothing_is_proven(bench, name):
    report = check_step(bench({"solutions/checkpoint_1/main.py": None}), name)
    assert report.blocked == "no reference for checkpoint_1: expected in solutions/checkpoint_1; fix that first"


@pytest.mark.parametrize(
    ("file", "location"),
    [
        ("tests/test_checkpoint_1.py", "tests/test_checkpoint_1.py:1"),
        ("tests/deep/test_checkpoint_1_more.py", "tests/deep/test_checkpoint_1_more.py:1"),
        ("tests/test_other.py", "tests"),
    ],
)
def test_where_the_tests_of_a_checkpoint_are(bench, file, location):
    own = bench({"tests/test_checkpoint_1.py": None, file: ""})
    assert str(location_of_checkpoint(own.problem, "checkpoint_1")) == location


def test_a_reason_of_many_lines_is_told_in_one(bench):
    own = bench()
    results = judged(case("test_a", "error"), reason="collection failed: \x1b[1mbad\nmore\nlines")
    [finding] = findings_of(own, own.checkpoints[0], results)
    assert finding.message == r"no verdict on the reference of checkpoint_1: collection failed: \x1b[1mbad"
    assert finding.detail.endswith("more\nlines")


FLAKY = case("flaky", "failed", markers=["quarantined"])


@pytest.mark.parametrize(
    ("results", "fault"),
    [
        (judged(case("a"), case("b")), None),
        (judged(case("a"), FLAKY), None),
        (judged(case("a"), case("b", "failed"), case("c", "skipped"), FLAKY), "2 of 3 tests fail with the reference"),
        (judged(reason="pytest exited with 2\nmore"), "no verdict on the reference of c1: pytest exited with 2;"),
    ],
)
def test_what_other_steps_can_build_on(results, fault):
    found = reference_fault("c1", results)
    assert found is None if fault is None else found.startswith(fault) and found.endswith("fix that first")


def test_a_comment_at_the_top_lets_a_finding_on_the_whole_pass(bench):
    own = bench({"tests/test_checkpoint_1.py": "# slop-code: allow reference-no-verdict  on purpose\nimport a\n"})
    [finding] = findings_of(own, own.checkpoints[0], judged(reason="collection failed"))
    assert is_allowed(finding, read_source(own.problem.path, finding.location.file))


@pytest.mark.parametrize("step", ["secrecy", "limits"])
def test_steps_that_need_a_sound_reference_are_not_done_without(step, bench, cache, need_bubblewrap):
    need_bubblewrap()
    wrong = "def test_wrong(run):\n    assert run('a').stdout == 'a'\n"
    report = check_step(bench({"tests/test_checkpoint_1.py": wrong}), step)
    assert report.outcome.findings == ()
    assert report.blocked == "1 of 1 tests fail with the reference of checkpoint_1; fix that first"
