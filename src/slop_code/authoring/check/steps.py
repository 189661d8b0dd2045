"""Steps of `problems check`: their order, their execution and their reports."""

from __future__ import annotations

import importlib
import time
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code._suggestions import near_or_known
from slop_code.authoring.check.findings import Finding, Severity, Step, StepOutcome
from slop_code.authoring.check.python_sources import PythonSource, cached_source, is_allowed
from slop_code.errors import InfrastructureError, SlopCodeError, UsageError
from slop_code.execution.python_version import MissingPythonError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.authoring.check.workbench import Workbench

MODULES = {
    "layout": "layout.layout_step",
    "reference": "reference_step",
    "controls": "controls_step",
    "stability": "stability.stability_step",
    "strength": "strength.strength_step",
    "secrecy": "secrecy_step",
    "limits": "limits_step",
}
"""In the order of execution: quick steps, and those that others build on, come first."""

STEPS = tuple(MODULES)
MAX_TRACEBACK_CALLS = 5


def step(name: str) -> Step:
    """A step's module is imported when the step is asked for."""
    module = importlib.import_module(f"slop_code.authoring.check.{MODULES[name]}")
    loaded: Step = module.STEP
    return loaded


def choose_steps(wanted: Sequence[str], skipped: Sequence[str]) -> list[str]:
    for name in (*wanted, *skipped):
        if name not in STEPS:
            raise UsageError(f"no step {name!r}{near_or_known(name, STEPS)}")
    return [name for name in STEPS if name in (wanted or STEPS) and name not in skipped]


@dataclass(frozen=True, slots=True)
class StepReport:
    name: str
    outcome: StepOutcome
    seconds: float
    allowed: tuple[Finding, ...] = ()
    """Findings that a comment in the code allows."""

    broken: str | None = None
    """The reason why this machine could not run the step, so that nothing is known."""

    blocked: str | None = None
    """The reason why the problem itself prevents the step."""

    @property
    def undone(self) -> str | None:
        """The reason why the step was not done, for either cause."""
        return self.broken if self.broken is not None else self.blocked


@dataclass(frozen=True, slots=True)
class CheckReport:
    problem: str
    path: Path
    environment: str | None
    """None where invalid configuration leaves it unknown."""

    steps: tuple[StepReport, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for step in self.steps for finding in step.outcome.findings]

    @property
    def worst(self) -> Severity | None:
        return max((finding.severity for finding in self.findings), default=None)

    @property
    def broken(self) -> list[StepReport]:
        return [step for step in self.steps if step.broken is not None]

    @property
    def undone(self) -> list[StepReport]:
        return [step for step in self.steps if step.undone is not None]


def check_step(bench: Workbench, name: str) -> StepReport:
    """A step that cannot be done never affects the findings of others."""
    began = time.monotonic()
    report = _without_allowed(do_step(bench, step(name)), bench.problem.path)
    return replace(report, seconds=time.monotonic() - began)


def do_step(bench: Workbench, chosen: Step) -> StepReport:
    empty = StepReport(chosen.name, StepOutcome(), 0.0)
    try:
        return replace(empty, outcome=chosen.run(bench))
    except (MissingPythonError, InfrastructureError, OSError) as error:
        return replace(empty, broken=str(error))
    except UsageError as error:
        return replace(empty, blocked=str(error))
    except SlopCodeError:  # cancelled by the user
        raise
    except Exception as error:  # noqa: BLE001  (a bug in a step must not end the others)
        lines = traceback.format_exception(error, limit=-MAX_TRACEBACK_CALLS)
        return replace(empty, broken="a bug in slop-code; please report this:\n" + "".join(lines))


def _without_allowed(report: StepReport, folder: Path) -> StepReport:
    def allowed(finding: Finding) -> bool:
        file = finding.location.file
        source = cached_source(folder, file) if file.endswith(".py") else None
        return isinstance(source, PythonSource) and is_allowed(finding, source)

    let_pass = tuple(finding for finding in report.outcome.findings if allowed(finding))
    kept = tuple(finding for finding in report.outcome.findings if finding not in let_pass)
    return replace(report, outcome=replace(report.outcome, findings=kept), allowed=let_pass)
