"""Resource limits of the shell that starts slop-code: soft ones reach no box, too low hard ones are refused."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from slop_code.errors import InfrastructureError
from slop_code.evaluation import CorrectnessResults
from slop_code.execution.cache import Cache
from slop_code.execution.low_limits import low_limit_reason
from slop_code.execution.sandbox import sandbox_for

UNLIMITED = resource.RLIM_INFINITY
LOW = {"FSIZE": 1 << 20, "STACK": 1 << 20, "NOFILE": 200, "CPU": 1000, "AS": 8 << 30, "DATA": 8 << 30, "CORE": 0}
EXPECTED = {"STACK": 8 << 20, "CPU": UNLIMITED, "AS": UNLIMITED, "CORE": 0}
PRINT_LIMITS = f"""
import resource
print([resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0] for name in {list(EXPECTED)}])
"""
TESTS = f"""
import ast, resource, tempfile

def test_of_both_boxes(run):
    judge = [resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0] for name in {list(EXPECTED)}]
    assert [ast.literal_eval(run().stdout), judge] == 2 * [{list(EXPECTED.values())}]

def test_a_large_file():
    with tempfile.TemporaryFile() as file:
        file.write(bytes({LOW["FSIZE"]} + 1))

def test_many_open_files():
    for file in [open("/dev/null") for _ in range({LOW["NOFILE"]} + 1)]:
        file.close()
"""
EVALUATE = """
import sys
from pathlib import Path
from slop_code import Evaluator
from slop_code.execution import EnvironmentSpec

environment, cache, submission, problem = map(Path, sys.argv[1:])
spec = EnvironmentSpec.model_validate_json(environment.read_text())
with Evaluator(1, spec, cache=cache) as evaluator:
    for _ in range(3):
        print(evaluator.evaluate(submission, problem, 1).model_dump_json())
"""


@pytest.mark.parametrize(
    ("name", "hard", "expected"),
    [
        ("FSIZE", (1 << 30) - 1, "RLIMIT_FSIZE of this process, which is 1073741823; start slop-code where "
                                 "`bash -c 'ulimit -H -f'` prints 1048576 or more"),
        ("FSIZE", 1 << 30, None),
        ("CPU", 86400, "-t'` prints unlimited"),
        ("AS", 1 << 40, "-v'` prints unlimited"),
        ("DATA", 1 << 40, "-d'` prints unlimited"),
        ("NOFILE", 4095, "-n'` prints 4096 or more"),
        ("NOFILE", 4096, None),
        ("STACK", (8 << 20) - 1, "-s'` prints 8192 or more"),
        ("STACK", 8 << 20, None),
        ("NPROC", 511, "-u'` prints 512 or more"),
        ("NPROC", 512, None),
    ],
)  # fmt: skip
def test_a_hard_limit_that_is_too_low_has_a_reason(monkeypatch, name, hard, expected):
    number = getattr(resource, f"RLIMIT_{name}")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (0, hard if which == number else UNLIMITED))
    reason = low_limit_reason(1 << 30)
    assert reason is None if expected is None else expected in reason


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("sandbox", "disk", "hard", "wanted"),
    [
        ("none", 1, 1 << 40, "unlimited"),
        ("bubblewrap", 1, 1 << 30, None),
        ("bubblewrap", (1 << 31) + 1, 1 << 30, f"{(1 << 21) + 1} or more"),
    ],
)
def test_files_may_become_as_large_as_the_sandbox_allows(
    environment_spec, need, monkeypatch, sandbox, disk, hard, wanted
):
    need(sandbox)
    spec = environment_spec({"limits": {"disk": disk}}, sandbox=sandbox)
    getrlimit = resource.getrlimit
    monkeypatch.setattr(resource, "getrlimit", lambda n: (hard, hard) if n == resource.RLIMIT_FSIZE else getrlimit(n))
    if wanted is None:
        sandbox_for(spec, Cache.default())
        return
    with pytest.raises(InfrastructureError, match=f"ulimit -H -f'` prints {wanted}"):
        sandbox_for(spec, Cache.default())


@pytest.mark.e2e
@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_no_evaluation_begins_under_a_hard_limit_that_is_too_low(environment_spec, need, monkeypatch, sandbox):
    need(sandbox)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (UNLIMITED, 1000))
    with pytest.raises(InfrastructureError, match="verdicts would depend on the hard limit RLIMIT_FSIZE"):
        sandbox_for(environment_spec(sandbox=sandbox), Cache.default())


def set_low_soft_limits():
    for name, soft in LOW.items():
        number = getattr(resource, f"RLIMIT_{name}")
        resource.setrlimit(number, (soft, resource.getrlimit(number)[1]))


@pytest.mark.e2e
@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_soft_limits_of_the_shell_reach_no_box(
    make_problem, make_submission, environment_spec, need, cache, tmp_path, sandbox
):
    """Neither the judge, which is forked from a template at last, nor the submission, nor its set-up."""
    need(sandbox)
    problem = make_problem({"test_checkpoint_1.py": TESTS})
    submission = make_submission({"main.py": PRINT_LIMITS})
    setup = {"setup": {"commands": ["test $(ulimit -S -s) = 8192 && test $(ulimit -S -t) = unlimited"]}}
    (tmp_path / "environment").write_text(environment_spec(setup, sandbox=sandbox).model_dump_json())
    words = [tmp_path / "environment", cache.root, submission, problem.path]
    command = [sys.executable, "-c", EVALUATE, *map(str, words)]
    done = subprocess.run(command, preexec_fn=set_low_soft_limits, stdout=subprocess.PIPE, text=True, check=True)
    results = [CorrectnessResults.model_validate_json(line) for line in done.stdout.splitlines()]
    assert len(results) == 3
    for result in results:
        assert result.infrastructure_failure_reason is None
        assert [test.failure_message for test in result.tests if test.status != "passed"] == []
