"""A run of the SlopCodeBench runner, really evaluated into a mirrored tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.run_layout import RESULT_FILE
from tests.scb_run import expected_statuses, write_scb_run

SLOP_CODE = Path(sys.executable).with_name("slop-code")


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


def test_a_run_of_their_runner_is_evaluated_without_touching_it(tmp_path, cache, need_bubblewrap):
    need_bubblewrap()
    theirs = write_scb_run(tmp_path / "theirs", problems_dir=tmp_path / "problems")
    before = contents(theirs)
    argv = [SLOP_CODE, "-q", "-p", "problems", "eval", "theirs", "--save-dir", "out", "-proc", "2", "--exit-zero"]
    variables = {**os.environ, "SCBENCH_CACHE_DIR": str(cache.root)}
    done = subprocess.run(argv, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=250)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "NOT PASSED (all-cases): 2 of 7 checkpoints")
    assert contents(theirs) == before
    for path in theirs.glob(f"*/*/{RESULT_FILE}"):
        relative = path.relative_to(theirs)
        problem, checkpoint = relative.parts[:2]
        results = CorrectnessResults.load(tmp_path / "out" / relative)
        assert {test.nodeid: test.status for test in results.tests} == expected_statuses(problem, int(checkpoint[-1]))
