"""Steps that cannot be done, and the cause that is reported."""

from __future__ import annotations

import errno

import pytest

from slop_code.authoring.check.findings import Step
from slop_code.authoring.check.steps import do_step
from slop_code.errors import ConfigError, InfrastructureError, UsageError
from slop_code.execution.cancellation import EvaluationCancelledError
from slop_code.execution.python_version import MissingPythonError


def step(error: BaseException) -> Step:
    def run(_):
        raise error

    return Step("odd", "fails", (), run)


@pytest.mark.parametrize(
    ("error", "broken", "blocked"),
    [
        (UsageError("no reference"), None, "no reference"),
        (ConfigError("flaky.json: not JSON"), None, "flaky.json: not JSON"),
        (MissingPythonError("no Python fits"), "no Python fits", None),
        (InfrastructureError("no sandbox"), "no sandbox", None),
        (OSError(errno.ENOSPC, "No space left on device"), "[Errno 28] No space left on device", None),
    ],
    ids=["use", "configuration", "python", "infrastructure", "system"],
)
def test_a_step_that_raises_is_broken_or_blocked(bench, error, broken, blocked):
    report = do_step(bench(), step(error))
    assert (report.broken, report.blocked, report.outcome.findings) == (broken, blocked, ())


def test_a_defect_is_told_with_its_place(bench):
    report = do_step(bench(), step(RecursionError("too deep")))
    assert report.broken is not None
    assert report.broken.startswith("a bug in slop-code")
    assert f"{__file__}" in report.broken
    assert report.broken.endswith("RecursionError: too deep\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EvaluationCancelledError()], ids=["interrupted", "stopped"])
def test_a_person_ends_it_all(bench, error):
    with pytest.raises(type(error)):
        do_step(bench(), step(error))
