"""Regrades: what changed for each test and why, what may be graded without running, and what is kept."""

import os

import pytest

from slop_code.cli.main import run as main
from slop_code.errors import UsageError
from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.problem.problem_contents import inputs_of
from slop_code.evaluation.result_files.staleness import OTHER_RULES
from slop_code.runs.run_layout import RESULT_FILE
from slop_code.verification.regrade.earlier_results import EARLIER, EarlierResults, check_label, label_for, records_of
from slop_code.verification.regrade.input_changes import ALL_TESTS, OUTSIDE_TESTS, OWN_CODE, OWN_FILE, InputChanges
from slop_code.verification.regrade.regrade_record import RegradedCheckpoint, RegradeOutcome, RegradeRecord
from slop_code.verification.regrade.test_changes import FLAKY, changed_tests, verdict_changes
from tests.factories import case, result

TEST_FILE = "problems/words/tests/test_checkpoint_1.py"
BEFORE = "LIMIT = 3\n\ndef test_a():\n    assert LIMIT\n\ndef test_b():\n    assert 1\n"


@pytest.fixture
def edited(world):
    """`edited(files, **keys)`: the changes of the inputs by these edits of the problem, and its tests folder."""

    def make(files=None, **keys):
        versions = []
        for given, text in (({}, {}), (keys, files or {})):
            world.problem(**{"timeout": 10, **given})
            world.write({TEST_FILE: BEFORE, "problems/words/tests/conftest.py": "", **text})
            problem = ProblemConfig.from_yaml(world.problems / "words")
            versions.append(inputs_of(problem, problem.checkpoint(1)))
        return InputChanges(*versions), world.problems / "words/tests"

    return make


MARKERS = {"slow": {"group": "Error", "description": "slow tests"}}


@pytest.mark.parametrize(
    ("files", "keys", "expected"),
    [
        ({}, {"markers": MARKERS}, True),
        ({}, {"version": 2}, True),
        ({}, {"markers": MARKERS, "version": 2}, True),
        ({}, {"timeout": 11}, False),
        ({}, {"env": {"A": "1"}}, False),
        ({}, {"visible": ["data/*"]}, False),
        ({}, {"entry_file": "other.py"}, False),
        ({}, {"in_process": True}, False),
        ({}, {"test_dependencies": ["attrs"]}, False),
        ({}, {"checkpoints": {"checkpoint_0": {}, "checkpoint_1": {}}}, False),
        ({TEST_FILE: BEFORE + "\n"}, {}, False),
        ({"problems/words/tests/data/x.json": "{}"}, {}, False),
        ({"problems/words/tests/flaky.json": "{}"}, {}, False),
    ],
)
def test_only_settings_that_no_test_notices_are_graded_without_running(edited, files, keys, expected):
    changes, tests = edited(files, **keys)
    assert changes.text
    assert changes.only_grading(tests) is expected


@pytest.mark.parametrize(
    "word", ["filterwarnings('error')", "getini('markers')", "strict_markers = True", "config._inicache"]
)
def test_tests_that_may_notice_markers_are_evaluated_again(edited, world, word):
    changes, tests = edited(markers=MARKERS)
    (tests / "test_checkpoint_1.py").write_text(f"{BEFORE}# {word}\n")
    assert not changes.only_grading(tests)


@pytest.mark.parametrize(
    ("files", "keys", "test_a", "test_b"),
    [
        ({TEST_FILE: BEFORE.replace("assert 1", "assert 2")}, {}, [], [OWN_CODE]),
        ({TEST_FILE: BEFORE.replace("LIMIT = 3", "LIMIT = 4")}, {}, [OUTSIDE_TESTS], [OUTSIDE_TESTS]),
        ({TEST_FILE: "def ("}, {}, [OWN_FILE], [OWN_FILE]),
        (
            {"problems/words/tests/conftest.py": "X = 1\n"},
            {},
            *[["files that it may use changed: tests/conftest.py"]] * 2,
        ),
        ({}, {"timeout": 11}, *[["config.yaml changed: timeout"]] * 2),
        ({}, {"markers": MARKERS, "version": 3}, [], []),
    ],
)
def test_the_reasons_of_a_test_are_what_it_uses(edited, files, keys, test_a, test_b):
    changes, _ = edited(files, **keys)
    assert list(changes.reasons(case("test_a[x::y]"))) == test_a
    assert list(changes.reasons(case("test_b"))) == test_b


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (case(), case(), []),
        (None, case(), ["new"]),
        (case(), None, ["gone"]),
        (case(), case(status="failed"), ["status"]),
        (case(), case(group_type="Error"), ["group"]),
        (case(), case(markers=["quarantined"]), ["group"]),
        (case(), case(status="failed", group_type="Error"), ["status", "group"]),
    ],
)
def test_kinds_of_changes(old, new, kinds):
    results = [result([test] if test else []) for test in (old, new)]
    changes = changed_tests(*results, None)
    assert [change.kinds for change in changes] == ([kinds] if kinds else [])
    for change in changes:
        assert (change.old is None, change.new is None) == (old is None, new is None)


@pytest.mark.parametrize(
    ("digests", "provenance", "why"),
    [
        ({}, {}, [FLAKY]),
        ({"tests": "other"}, {}, [ALL_TESTS]),
        ({"config": "other"}, {}, ["config.yaml changed"]),
        ({"environment": "other"}, {}, ["the environment changed"]),
        ({"tests": "other", "submission": "other"}, {}, [ALL_TESTS, "the submission changed"]),
        ({}, {"evaluation_version": "other"}, [OTHER_RULES]),
    ],
)
def test_another_status_names_everything_that_may_be_the_cause(digests, provenance, why):
    old, new = result("+"), result("-", digests=digests, provenance=provenance)
    (change,) = changed_tests(old, new, None)
    assert change.why == why
    assert ("changed" in change.kinds) == (ALL_TESTS in why or "config.yaml changed" in why)
    assert {(each.old, each.new) for each in verdict_changes(old, new)} == {(True, False)}


@pytest.mark.parametrize("label", ["", ".", "..", ".hidden", "a/b", "-x", "a b", "x\n", "x" * 65, "ü"])
def test_a_label_is_a_safe_file_name(label):
    with pytest.raises(UsageError, match="--label"):
        check_label(label)
    assert check_label("v1.0_b-2") == "v1.0_b-2"


@pytest.fixture
def stored(world):
    """A run with one result, and the folder of that."""
    world.problem(count=1)
    run = world.run(snapshots={"words": ["a"]})
    return run, world.finish(world.discover()[0].submissions[0]).parent


def test_earlier_results_are_kept_once_and_never_overwritten(stored):
    run, output = stored
    earlier = EarlierResults(run, "v1")
    (output / ".scbench").mkdir()
    (output / ".scbench/stream.jsonl").write_text("evidence")
    before = (output / RESULT_FILE).read_bytes()
    earlier.keep(output, stale=True)
    assert not earlier.is_replaced(output)
    earlier.keep(output, stale=True)
    result("-").save(output / RESULT_FILE)
    assert earlier.is_replaced(output)
    with pytest.raises(UsageError, match="another result; give another with --label"):
        earlier.keep(output, stale=True)
    earlier.keep(output, stale=False)
    assert (earlier.of(output) / RESULT_FILE).read_bytes() == before
    assert (earlier.of(output) / ".scbench/stream.jsonl").read_text() == "evidence"


def test_a_new_result_never_becomes_an_earlier_one(stored):
    run, output = stored
    earlier = EarlierResults(run, "v1")
    RegradeRecord(label="v1", finished=False, slop_code="0").save(earlier.folder)
    earlier.keep(output, stale=False)
    assert not os.path.lexists(earlier.of(output))


def test_earlier_results_are_not_written_through_links(stored, tmp_path):
    run, output = stored
    (run / ".slop-code").mkdir(exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    (run / EARLIER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="a link"):
        EarlierResults(run, "v1").keep(output, stale=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_label_of_an_interrupted_regrade_is_used_again(stored):
    run, _ = stored
    assert label_for(run, "mine") == "mine"
    assert label_for(run, None) not in ("v1", "v2")
    RegradeRecord(label="v1", finished=True, slop_code="0").save(run / EARLIER / "v1")
    assert label_for(run, None) != "v1"
    (run / EARLIER / "v2").mkdir()
    assert label_for(run, None) == "v2"
    RegradeRecord(label="v2", finished=False, slop_code="0").save(run / EARLIER / "v2")
    assert label_for(run, None) == "v2"
    (run / EARLIER / "v1/regrade.json").write_text("damaged")
    assert [record.label for record in records_of(run)] == ["v2"]


def test_a_record_loads_back_equal(tmp_path):
    changes = changed_tests(result("+"), result("-s"), None)
    verdicts = verdict_changes(result("+"), result("-s"))
    checkpoint = RegradedCheckpoint(
        problem="words",
        checkpoint="checkpoint_1",
        outcome=RegradeOutcome.GRADED,
        reason="x",
        verdicts=verdicts,
        tests=changes,
    )
    record = RegradeRecord(label="v1", finished=True, slop_code="0", checkpoints=[checkpoint])
    record.save(tmp_path)
    assert RegradeRecord.load(tmp_path) == record
    assert record.differs


def test_results_of_another_program_are_refused_with_a_next_step(world, stored, monkeypatch, capsys):
    run, output = stored
    (output / RESULT_FILE).write_text('{"problem_name": "words", "tests": {}, "pass_counts": {}}')
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(world.folder / "cache"))
    before = (output / RESULT_FILE).read_bytes()
    assert main(["regrade", str(run), "--problems-dir", str(world.problems)]) == 2
    message = "written by another program, and would be replaced; evaluate the run with slop-code eval -o OUT"
    assert message in capsys.readouterr().err
    assert (output / RESULT_FILE).read_bytes() == before
    assert not os.path.lexists(run / EARLIER)
