"""One problem's whole check, as a person asked for it: the steps, what is mended on the way, the ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.authoring.bench import Effort, Workbench, environment_for
from slop_code.authoring.check import CheckReport, StepReport, check_problem
from slop_code.authoring.finding import Outcome
from slop_code.errors import ConfigError
from slop_code.evaluation.config import ProblemConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from slop_code.authoring.finding import Finding
    from slop_code.execution.boxes import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    steps: Sequence[str]
    checkpoints: Sequence[str] = ()
    """Names or numbers; none: all."""

    environment: str | None = None
    effort: Effort = field(default_factory=Effort)
    fix: bool = False
    quarantine: bool = False


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told of things as they come."""

    progress: Progress
    began: Callable[[str, Path, str], None]
    """A problem by its name, its folder and its environment."""

    done: Callable[[StepReport, Path], None]
    changed: Callable[[str], None]
    """Something was written to the problem's folder."""


def survey(folder: Path, wanted: Wanted, listener: Listener) -> CheckReport:
    """A configuration that is refused is a finding, too, and the only one."""
    problem = _loaded(folder)
    if isinstance(problem, StepReport) and wanted.fix and _mend(folder, problem.outcome.findings, listener):
        problem = _loaded(folder)
    if isinstance(problem, StepReport):
        return _told(folder, (problem,), listener)
    try:
        bench = _bench(problem, wanted, listener.progress)
    except ConfigError as error:
        if wanted.environment is not None:
            raise
        return _told(folder, [StepReport(name, Outcome(), 0.0, broken=str(error)) for name in wanted.steps], listener)
    listener.began(problem.name, folder, bench.environment.name)
    reports = []
    for name in wanted.steps:
        [report] = check_problem(bench, [name])
        if wanted.fix and _mend(folder, report.outcome.findings, listener):
            bench = _bench(ProblemConfig.from_yaml(folder), wanted, listener.progress)
            [report] = check_problem(bench, [name])
        listener.done(report, folder)
        reports.append(report)
    if wanted.quarantine:
        _note(bench, [finding for report in reports for finding in report.outcome.findings], listener)
    return CheckReport(problem.name, folder, bench.environment.name, tuple(reports))


def _loaded(folder: Path) -> ProblemConfig | StepReport:
    """A report where its configuration is refused."""
    try:
        return ProblemConfig.from_yaml(folder)
    except ConfigError as error:
        from slop_code.authoring.steps.layout import refused

        return refused(folder, error)


def _bench(problem: ProblemConfig, wanted: Wanted, progress: Progress) -> Workbench:
    return Workbench(
        problem,
        environment_for(problem, wanted.environment),
        checkpoints=[problem.checkpoint(one) for one in wanted.checkpoints],
        asked=wanted.environment,
        effort=wanted.effort,
        progress=progress,
    )


def _told(folder: Path, reports: Sequence[StepReport], listener: Listener) -> CheckReport:
    """Of a problem that cannot be tried out."""
    name = folder.absolute().name
    listener.began(name, folder, "none")
    for report in reports:
        listener.done(report, folder)
    return CheckReport(name, folder, "none", tuple(reports))


def _mend(folder: Path, findings: Sequence[Finding], listener: Listener) -> bool:
    from slop_code.authoring.fixes import apply

    mended = apply(folder, findings)
    for finding in mended:
        listener.changed(f"{folder / finding.place.file}: mended: {finding.fix}")
    return bool(mended)


def _note(bench: Workbench, findings: Sequence[Finding], listener: Listener) -> None:
    from slop_code.authoring.ledger import quarantine

    if path := quarantine(bench, findings):
        listener.changed(f"{path}: tests that flake are in it now, and decide no verdict any more")
