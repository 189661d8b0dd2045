"""stop.json: when it is written, what it holds, and that a file of somebody else is never removed."""

from __future__ import annotations

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.policy import parse_policy
from slop_code.evaluation.result_files.stored_record import load_stored
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.follow.stop_file import STOP_FILE, StopFile, check_stop_file, misses, remove_stop_file
from tests.factories import result


@pytest.mark.parametrize(
    ("tests", "failure", "policy", "missed"),
    [
        ("++", None, "strict", False),
        ("+-", None, "strict", True),
        ("+-", None, "any", False),
        ("--", None, "any", True),
        ("+-", None, "core >= 50%", False),
        ("+-", None, "core >= 60%", True),
        ("--", "killed", "strict", False),
        ("++", "killed", "any", False),
    ],
)
def test_only_a_verdict_misses_a_policy(tests, failure, policy, missed):
    facts = CheckpointFacts.of(result(tests, infrastructure_failure_reason=failure))
    assert misses(facts, parse_policy(policy)) == missed


def test_a_checkpoint_that_was_not_evaluated_misses_nothing():
    assert not misses(CheckpointFacts.no_verdict("no snapshot"), parse_policy("strict"))


@pytest.fixture
def stop(world):
    world.problem()
    world.run()
    submission = world.discover()[0].submissions[1]
    results = world.results(submission, "+-")
    return StopFile.of(submission, CheckpointFacts.of(results), parse_policy("core == 1"))


def test_the_file_names_the_checkpoint_and_loads_back(stop, tmp_path):
    path = stop.write(tmp_path)
    assert load_stored(StopFile, path, "") == stop
    assert (stop.run, stop.problem, stop.checkpoint, stop.policy) == ("monday", "words", "checkpoint_2", "core == 1")
    assert (sum(stop.pass_counts.values()), sum(stop.total_counts.values())) == (1, 2)
    assert len(stop.submission) == 64


def test_the_file_of_an_earlier_evaluation_is_removed(stop, tmp_path):
    stop.write(tmp_path)
    remove_stop_file(tmp_path)
    assert not (tmp_path / STOP_FILE).exists()
    remove_stop_file(tmp_path)
    remove_stop_file(tmp_path / "nothing")


@pytest.mark.parametrize("kind", ["text", "folder", "link"])
def test_a_file_of_another_maker_is_refused_and_kept(stop, tmp_path, kind):
    path = tmp_path / STOP_FILE
    stop.write(tmp_path / "elsewhere")
    target = tmp_path / "elsewhere" / STOP_FILE
    {"text": lambda: path.write_text("{}"), "folder": path.mkdir, "link": lambda: path.symlink_to(target)}[kind]()
    for refused in (check_stop_file, stop.write):
        with pytest.raises(UsageError, match="not written by slop-code"):
            refused(tmp_path)
    remove_stop_file(tmp_path)
    assert (path.is_dir(), path.is_symlink()) == (kind == "folder", kind == "link")
    assert kind == "folder" or path.read_text() == ("{}" if kind == "text" else target.read_text())


def test_the_file_of_an_earlier_evaluation_is_replaced(stop, tmp_path):
    stop.write(tmp_path)
    check_stop_file(tmp_path)
    stop.write(tmp_path)
