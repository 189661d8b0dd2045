"""One problem's whole check, as a person asked for it: the steps and the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.authoring.check.findings import StepOutcome
from slop_code.authoring.check.steps import CheckReport, StepReport, check_step
from slop_code.authoring.check.workbench import Effort, Workbench, environment_for
from slop_code.authoring.problem_folders import CONFIG
from slop_code.errors import ConfigError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem_lookup import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding
    from slop_code.execution.progress_events import ProgressCallback


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    steps: Sequence[str]
    checkpoints: Sequence[str] = ()
    """Names or numbers; none: all."""

    environment: str | None = None
    effort: Effort = field(default_factory=Effort)
    quarantine: bool = False


@dataclass(frozen=True, slots=True)
class CheckListener:
    """Who is told of things as they come."""

    progress: ProgressCallback
    began: Callable[[str, Path, str | None], None]
    """A problem by its name, its folder and its environment, where that is known."""

    done: Callable[[StepReport, Path], None]
    changed: Callable[[str], None]
    """Something was written to the problem's folder."""


def check_problem(folder: Path, wanted: CheckRequest, listener: CheckListener) -> CheckReport:
    """Configuration that is refused is a finding, too, and keeps every other step from being done."""
    bench = _bench(folder, wanted, listener.progress)
    if isinstance(bench, StepReport):
        return _told(folder, bench, wanted, listener)
    listener.began(bench.problem.name, folder, bench.environment.name)
    reports = []
    for name in wanted.steps:
        report = check_step(bench, name)
        listener.done(report, folder)
        reports.append(report)
    if wanted.quarantine:
        _note(bench, [finding for report in reports for finding in report.outcome.findings], listener)
    return CheckReport(bench.problem.name, folder, bench.environment.name, tuple(reports))


def _bench(folder: Path, wanted: CheckRequest, progress: ProgressCallback) -> Workbench | StepReport:
    """A report where configuration of the problem's own is refused."""
    try:
        problem = ProblemConfig.from_yaml(folder)
    except ConfigError as error:
        return refused(folder, error)
    try:
        environment = environment_for(problem, wanted.environment)
    except ConfigError as error:
        if wanted.environment is not None:
            raise
        return refused(folder, error, ENVIRONMENT)
    return Workbench(
        problem,
        environment,
        checkpoints=[problem.checkpoint(one) for one in wanted.checkpoints],
        asked=wanted.environment,
        effort=wanted.effort,
        progress=progress,
    )


def refused(folder: Path, error: ConfigError, file: str = CONFIG) -> StepReport:
    """Told by the step that looks at files; nothing else can be said about such a problem."""
    from slop_code.authoring.check.layout.config_rules import refusals

    return StepReport("layout", StepOutcome(tuple(refusals(folder, error, file))), 0.0)


def _told(folder: Path, report: StepReport, wanted: CheckRequest, listener: CheckListener) -> CheckReport:
    """Of a problem that cannot be tried out."""
    name = folder.absolute().name
    reason = f"{report.outcome.findings[0].location.file} is refused; fix that first"
    rest = [one for one in wanted.steps if one != report.name]
    reports = (report, *(StepReport(one, StepOutcome(), 0.0, blocked=reason) for one in rest))
    listener.began(name, folder, None)
    for one in reports:
        listener.done(one, folder)
    return CheckReport(name, folder, None, reports)


def _note(bench: Workbench, findings: Sequence[Finding], listener: CheckListener) -> None:
    from slop_code.authoring.check.stability.quarantine_writer import quarantine

    if path := quarantine(bench, findings):
        listener.changed(f"{path}: tests that flake are in it now, and decide no verdict any more")
