"""`problems check`: the chosen steps, one after the other, over one problem."""

from __future__ import annotations

import importlib
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.authoring.finding import Finding, Outcome, Severity, Step
from slop_code.authoring.sources import Source, is_allowed, read_source
from slop_code.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.authoring.bench import Workbench
    from slop_code.authoring.finding import Rule

STEPS = ("layout", "reference", "controls", "stability", "strength", "secrecy", "limits")
"""In the order they are done in: what is quick, and what the others build on, first."""


def step(name: str) -> Step:
    """Loaded when it is asked for."""
    found: Step = importlib.import_module(f"slop_code.authoring.steps.{name}").STEP
    return found


def all_rules() -> dict[str, Rule]:
    return {rule.id: rule for name in STEPS for rule in step(name).rules}


def choose_steps(wanted: Sequence[str], skipped: Sequence[str]) -> list[str]:
    for name in (*wanted, *skipped):
        if name not in STEPS:
            raise UsageError(f"no step {name!r}; there are {', '.join(STEPS)}")
    return [name for name in STEPS if name in (wanted or STEPS) and name not in skipped]


@dataclass(frozen=True, slots=True)
class StepReport:
    name: str
    outcome: Outcome
    seconds: float
    allowed: tuple[Finding, ...] = ()
    """What the author lets pass by a comment."""

    broken: str | None = None
    """Why it could not be done: nothing is known, which is not the same as nothing found."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    problem: str
    path: Path
    environment: str
    steps: tuple[StepReport, ...]

    @property
    def findings(self) -> list[Finding]:
        return [finding for step in self.steps for finding in step.outcome.findings]

    @property
    def worst(self) -> Severity | None:
        return max((finding.graveness for finding in self.findings), default=None)

    @property
    def broken(self) -> list[StepReport]:
        return [step for step in self.steps if step.broken is not None]


def check_problem(bench: Workbench, names: Sequence[str]) -> Iterator[StepReport]:
    """Each step as it is done; one that breaks off leaves the others alone."""
    for name in names:
        began = time.monotonic()
        bench.progress(f"checking {bench.problem.name}: {name}")
        try:
            report = StepReport(name, step(name).run(bench), 0.0)
        except (InfrastructureError, UsageError) as error:
            report = StepReport(name, Outcome(), 0.0, broken=str(error))
        yield replace(_without_allowed(report, bench.problem.path), seconds=time.monotonic() - began)


def _without_allowed(report: StepReport, folder: Path) -> StepReport:
    sources: dict[str, Source | SyntaxError | None] = {}

    def allowed(finding: Finding) -> bool:
        file = finding.place.file
        if file not in sources:
            readable = file.endswith(".py") and os.path.isfile(folder / file)
            sources[file] = read_source(folder, file) if readable else None
        source = sources[file]
        return isinstance(source, Source) and is_allowed(finding, source)

    passed = tuple(finding for finding in report.outcome.findings if allowed(finding))
    kept = tuple(finding for finding in report.outcome.findings if finding not in passed)
    return replace(report, outcome=replace(report.outcome, findings=kept), allowed=passed)
