"""Guard of the summaries and results of other programs: before, during and after an evaluation."""

from __future__ import annotations

import contextlib

import pytest

from slop_code.errors import UsageError
from slop_code.execution.cache import Cache
from slop_code.execution.trees import file_signatures
from slop_code.runs import run_evaluation
from slop_code.runs.checkpoint_lines import CheckpointFacts, read_lines
from slop_code.runs.folders.foreign_guard import MAX_LINE_LENGTH, foreign_summary_files
from slop_code.runs.jobs.job_records import JobResult
from slop_code.runs.result_archive import deliver
from slop_code.runs.run_evaluation import RunSettings, open_runs
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE
from slop_code.runs.scb.scb_lines import read_scb_lines

OWN_LINE = '{"run": "a", "problem": "b", "checkpoint": "c", "order": 1, "state": "evaluated"}\n'
FOREIGN_LINE = '{"problem": "b", "version": 1, "checkpoint": "c", "path": "x", "idx": 1, "strict_pass_rate": 1.0}\n'
OWN_SUMMARY, FOREIGN_SUMMARY = '{"slop_code": "1.0"}', '{"score": 3}'


@pytest.mark.parametrize(
    ("lines", "summary", "foreign"),
    [
        (None, None, []),
        (OWN_LINE, OWN_SUMMARY, []),
        (OWN_LINE, None, []),
        (FOREIGN_LINE, None, [LINES_FILE]),
        (FOREIGN_LINE, FOREIGN_SUMMARY, [LINES_FILE, SUMMARY_FILE]),
        (FOREIGN_LINE, OWN_SUMMARY, [LINES_FILE]),
        (OWN_LINE + FOREIGN_LINE, OWN_SUMMARY, [LINES_FILE]),
        (OWN_LINE[:-9], OWN_SUMMARY, []),
        ("", OWN_SUMMARY, []),
        (OWN_LINE, OWN_SUMMARY[:-9], []),
        (OWN_LINE[:-9], OWN_SUMMARY[:-9], [LINES_FILE, SUMMARY_FILE]),
        ("", None, [LINES_FILE]),
    ],
)
def test_a_damaged_summary_is_ours_where_the_other_file_is(tmp_path, lines, summary, foreign):
    for name, text in ((LINES_FILE, lines), (SUMMARY_FILE, summary)):
        if text is not None:
            (tmp_path / name).write_text(text)
    assert [path.name for path in foreign_summary_files(tmp_path)] == foreign


def test_a_file_of_another_program_is_noticed_however_often_ours_was_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(file_signatures, "SETTLED_NS", -(10**18))
    lines = tmp_path / LINES_FILE
    lines.write_text(OWN_LINE)
    assert foreign_summary_files(tmp_path) == foreign_summary_files(tmp_path) == []
    lines.unlink()
    lines.write_text(FOREIGN_LINE)
    assert foreign_summary_files(tmp_path) == foreign_summary_files(tmp_path) == [lines]


FOREIGN_RESULT = '{"tests": {}}'


def test_a_long_line_tells_nothing_and_the_others_count(tmp_path):
    (tmp_path / LINES_FILE).write_text("x" * (3 * MAX_LINE_LENGTH) + "\n" + FOREIGN_LINE)
    (tmp_path / SUMMARY_FILE).write_text(OWN_SUMMARY)
    assert foreign_summary_files(tmp_path) == [tmp_path / LINES_FILE]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (OWN_LINE, None),
        ("", None),
        (FOREIGN_LINE.replace("path", "state"), [("b", "c")]),
        (FOREIGN_LINE.replace("idx", "number"), []),
        (OWN_LINE + FOREIGN_LINE.replace("path", "state"), [("b", "c")]),
    ],
)
def test_readers_take_the_maker_of_the_lines_as_the_guard_does(tmp_path, text, lines):
    (tmp_path / LINES_FILE).write_text(text)
    (tmp_path / SUMMARY_FILE).write_text(OWN_SUMMARY)
    assert bool(foreign_summary_files(tmp_path)) is (lines is not None)
    read = read_scb_lines(tmp_path / LINES_FILE)
    assert (None if read is None else [(line.problem, line.checkpoint) for line in read]) == lines


@pytest.fixture
def run(world):
    world.problem(count=1)
    world.run(snapshots={"words": ["a"]})
    [discovered] = world.discover()
    return discovered


@pytest.mark.parametrize("name", [LINES_FILE, SUMMARY_FILE])
@pytest.mark.parametrize("step", ["do this", None])
def test_a_summary_of_another_program_that_appears_during_the_evaluation_is_kept(world, run, name, step):
    world.finish(run.submissions[0])
    text = {LINES_FILE: FOREIGN_LINE, SUMMARY_FILE: FOREIGN_SUMMARY}[name]
    path = run.folder / name
    with open_runs([run], Cache(world.folder / "cache"), RunSettings(foreign_step=step)) as evaluation:
        evaluation.conclude()
        path.write_text(text)
        with pytest.raises(UsageError, match=r"another program.*do this") if step else contextlib.nullcontext():
            evaluation.conclude()
    kept = path if step else path.with_name(f"{path.stem}.scb{path.suffix}")
    assert kept.read_text() == text
    assert step or len(read_lines(run.folder / LINES_FILE)) == 1


@pytest.mark.parametrize("step", ["do this", None])
def test_a_result_of_another_program_that_appears_during_the_evaluation_is_kept(world, run, step):
    [target] = run.submissions
    results = world.results(target)
    result = JobResult(CheckpointFacts.of(results), world.archive(results))
    path = target.output / RESULT_FILE
    path.write_text(FOREIGN_RESULT)
    facts = deliver(target, result, move=False, foreign_step=step)
    kept = path if step else path.with_name("evaluation.scb.json")
    assert kept.read_text() == FOREIGN_RESULT
    assert facts.state == ("not_evaluated" if step else "evaluated")
    assert not step or "do this" in facts.reason
    assert sorted(child.name for child in target.output.iterdir()) == sorted({RESULT_FILE, kept.name, "snapshot"})


def test_replace_renames_no_result_that_another_evaluator_stored_before_the_lock(world, run, monkeypatch):
    """That evaluator has renamed the file of the other program."""
    [target] = run.submissions
    (target.output / RESULT_FILE).write_text(FOREIGN_RESULT)
    lock_runs = run_evaluation.lock_runs

    @contextlib.contextmanager
    def lock_late(*arguments):
        (target.output / RESULT_FILE).rename(target.output / "evaluation.scb.json")
        world.finish(target)
        with lock_runs(*arguments) as locked:
            yield locked

    monkeypatch.setattr(run_evaluation, "lock_runs", lock_late)
    with open_runs([run], Cache(world.folder / "cache"), RunSettings(foreign_step=None)) as evaluation:
        assert [submission for submission, _ in evaluation.plan.up_to_date] == [target]
    assert sorted(child.name for child in target.output.iterdir()) == [RESULT_FILE, "evaluation.scb.json", "snapshot"]


def test_a_file_of_another_program_that_appears_before_the_lock_stops_the_evaluation(world, run, monkeypatch):
    lock_runs = run_evaluation.lock_runs

    @contextlib.contextmanager
    def lock_late(*arguments):
        (run.folder / LINES_FILE).write_text(FOREIGN_LINE)
        with lock_runs(*arguments) as locked:
            yield locked

    monkeypatch.setattr(run_evaluation, "lock_runs", lock_late)
    with (
        pytest.raises(UsageError, match="written by another program"),
        open_runs([run], Cache(world.folder / "cache"), RunSettings()),
    ):
        pass
    assert (run.folder / LINES_FILE).read_text() == FOREIGN_LINE
