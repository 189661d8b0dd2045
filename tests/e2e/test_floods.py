"""More output than anyone can want: the verdict is right, and what is kept and held stays small."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

pytestmark = pytest.mark.e2e

MIB = 1 << 20
FLOOD = """
    import sys

    if sys.argv[1] == "lines":
        for number in range(100_000):
            print("line", number)
    else:
        block = b"x" * 1023 + b"\\n"
        out = sys.stderr.buffer if sys.argv[1] == "stderr" else sys.stdout.buffer
        for _ in range(1 << 20):
            out.write(block)
"""
TESTS = """
    import os
    import subprocess
    import sys

    def test_many_lines(run):
        lines = run("lines").stdout.splitlines()
        assert (len(lines), lines[-1]) == (100_000, "line 99999")

    def test_lines_not_captured(run):
        assert run("lines", capture_output=False).returncode == 0

    def test_stdout(run):
        assert run("stdout").returncode == 0

    def test_stderr(run):
        assert run("stderr").returncode == 0

    def test_not_captured(run):
        assert run("stdout", capture_output=False).returncode == 0

    def test_the_limit_is_in_the_message(run):
        assert "more than its limit of 8 MiB" in run("stdout").stderr

    def test_prints_itself():
        block = "x" * 1023 + "\\n"
        for _ in range(1 << 20):
            sys.stdout.write(block)
        assert not block

    def test_last(run):
        assert run("lines").returncode == 0
"""
CHILD = """
    import json, sys
    from pathlib import Path
    from slop_code.evaluation import ProblemConfig, PytestRunner
    from slop_code.execution import EnvironmentSpec

    problem, submission, out = map(Path, sys.argv[1:])
    spec = EnvironmentSpec.model_validate({"type": "local", "name": "test", "limits": {"output": "8M"}})
    problem = ProblemConfig.from_yaml(problem)
    results = PytestRunner(problem, problem.checkpoint(1), spec, submission, output_dir=out).run()
    results.save(out / "evaluation.json")
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    print(json.dumps({test.id: test.status for test in results.tests}))
    print(json.dumps([results.infrastructure_failure_reason, peak]))
"""


@pytest.mark.long
def test_floods_of_output_are_bounded(make_problem, make_submission, cache, need_bubblewrap, tmp_path):
    """A process of its own evaluates, so that its peak of memory is nobody else's."""
    need_bubblewrap()
    problem = make_problem({"test_checkpoint_1.py": TESTS}, config={"timeout": 60})
    argv = [sys.executable, "-c", dedent(CHILD), problem.path, make_submission({"main.py": FLOOD}), tmp_path]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    statuses, (reason, peak_kib) = map(json.loads, done.stdout.splitlines())
    assert reason is None
    assert statuses == {
        "test_many_lines": "passed",
        "test_lines_not_captured": "passed",
        "test_stdout": "failed",
        "test_stderr": "failed",
        "test_not_captured": "failed",
        "test_the_limit_is_in_the_message": "passed",
        "test_prints_itself": "failed",
        "test_last": "passed",
    }
    assert peak_kib < 300 * 1024
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 64 * MIB
