"""A run of the SlopCodeBench runner, really evaluated into a mirrored tree."""

from __future__ import annotations

import pytest

from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.run_layout import RESULT_FILE
from tests.command import slop_code
from tests.scb_run import expected_statuses, write_scb_run


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


@pytest.mark.usefixtures("cache")
def test_a_run_of_their_runner_is_evaluated_without_touching_it(tmp_path, need_bubblewrap):
    need_bubblewrap()
    theirs = write_scb_run(tmp_path / "theirs", problems_dir=tmp_path / "problems")
    before = contents(theirs)
    words = ["-q", "-p", "problems", "eval", "theirs", "--save-dir", "out", "-proc", "2", "--exit-zero"]
    done = slop_code(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "NOT PASSED (all-cases): 2 of 7 checkpoints")
    assert contents(theirs) == before
    for path in theirs.glob(f"*/*/{RESULT_FILE}"):
        relative = path.relative_to(theirs)
        problem, checkpoint = relative.parts[:2]
        results = CorrectnessResults.load(tmp_path / "out" / relative)
        assert {test.nodeid: test.status for test in results.tests} == expected_statuses(problem, int(checkpoint[-1]))
