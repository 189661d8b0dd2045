"""The check of a problem: its steps, and the quarantine of flaky tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code._io import write_atomic
from slop_code.authoring.check.findings import StepOutcome
from slop_code.authoring.check.steps import CheckReport, StepReport, check_step
from slop_code.authoring.check.workbench import Effort, Workbench
from slop_code.authoring.problem_folders import environment_for
from slop_code.errors import ConfigError
from slop_code.evaluation.config import AUTO, ProblemConfig
from slop_code.evaluation.problem.dependency_lock import lock_path, make_test_lock
from slop_code.evaluation.problem.problem_lookup import CONFIG, ENVIRONMENT
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import sandbox_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from slop_code.authoring.check.findings import Finding
    from slop_code.execution.progress_events import ProgressCallback


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    steps: Sequence[str]
    checkpoints: Sequence[str] = ()
    """Names or numbers; an empty sequence stands for all."""

    environment: str | None = None
    effort: Effort = field(default_factory=Effort)
    quarantine: bool = False
    lock: bool = False
    """Write the lock of the problem's test_dependencies first."""


@dataclass(frozen=True, slots=True)
class CheckListener:
    """Callbacks for what happens during a check."""

    progress: ProgressCallback
    began: Callable[[str, Path, str | None], None]
    """Gets the problem's name, its folder, and its environment where that is known."""

    done: Callable[[StepReport, Path], None]
    changed: Callable[[str], None]
    """Gets a message about a file that was written to the problem's folder."""


def check_problem(folder: Path, request: CheckRequest, listener: CheckListener) -> CheckReport:
    """Invalid configuration becomes findings, and blocks every other step."""
    bench = _bench(folder, request, listener.progress)
    if isinstance(bench, StepReport):
        listener.began(folder.absolute().name, folder, None)
        return CheckReport(folder.absolute().name, folder, None, _blocked_reports(folder, bench, request, listener))
    listener.began(bench.problem.name, folder, bench.environment.name)
    if request.lock:
        try:
            _lock(bench, listener)
        except ConfigError as error:
            if not error.mistakes:
                raise
            blocked = _blocked_reports(folder, config_report(error), request, listener)
            return CheckReport(bench.problem.name, folder, bench.environment.name, blocked)
    reports = []
    for number, name in enumerate(request.steps, start=1):
        bench.progress(
            ProgressEvent(ProgressKind.CHECK_STEP, name, bench.problem.name, count=number, total=len(request.steps))
        )
        report = check_step(bench, name)
        listener.done(report, folder)
        reports.append(report)
    if bench.problem.parallel == AUTO:
        _record_proofs(bench, [report for report in reports if report.name == "stability"], listener)
    if request.quarantine:
        _quarantine(bench, [finding for report in reports for finding in report.outcome.findings], listener)
    return CheckReport(bench.problem.name, folder, bench.environment.name, tuple(reports))


def _bench(folder: Path, request: CheckRequest, progress: ProgressCallback) -> Workbench | StepReport:
    """A report of the step layout where the problem's own configuration is invalid."""
    try:
        problem = ProblemConfig.from_yaml(folder)
    except ConfigError as error:
        return config_report(error)
    try:
        environment = environment_for(problem, request.environment)
    except ConfigError as error:
        if request.environment is not None:
            raise
        return config_report(error, ENVIRONMENT)
    return Workbench(
        problem,
        environment,
        checkpoints=[problem.checkpoint(name) for name in request.checkpoints],
        named_environment=request.environment,
        effort=request.effort,
        progress=progress,
    )


def config_report(error: ConfigError, file: str = CONFIG) -> StepReport:
    """Findings about invalid configuration, as a report of the step layout."""
    from slop_code.authoring.check.layout.config_rules import mistake_findings

    return StepReport("layout", StepOutcome(tuple(mistake_findings(error, file))), 0.0)


def _blocked_reports(
    folder: Path, report: StepReport, request: CheckRequest, listener: CheckListener
) -> tuple[StepReport, ...]:
    """The reports on a problem whose configuration is invalid."""
    reason = f"{report.outcome.findings[0].location.file} is invalid; fix that first"
    others = [step for step in request.steps if step != report.name]
    reports = (report, *(StepReport(step, StepOutcome(), 0.0, blocked=reason) for step in others))
    for step_report in reports:
        listener.done(step_report, folder)
    return reports


def _lock(bench: Workbench, listener: CheckListener) -> None:
    path = lock_path(bench.problem)
    if not bench.problem.test_dependencies:
        listener.changed(f"{path}: not written, since the problem has no test_dependencies")
        return
    sandbox = sandbox_for(bench.environment, bench.cache, bench.progress)
    with bench.cache.shared_lock():
        write_atomic(path, make_test_lock(sandbox, bench.problem))
    listener.changed(f"{path}: written; every evaluation uses these versions of test_dependencies")


def _record_proofs(bench: Workbench, reports: Sequence[StepReport], listener: CheckListener) -> None:
    from slop_code.authoring.check.stability.stability_step import record_proofs

    for report in reports:
        try:
            if path := record_proofs(bench, report.outcome):
                listener.changed(f"{path}: written; it says which tests may run in parallel")
        except OSError as error:
            listener.changed(f"{error.filename}: not written: {error.strerror}; tests run one after the other")


def _quarantine(bench: Workbench, findings: Sequence[Finding], listener: CheckListener) -> None:
    from slop_code.authoring.check.stability.stability_step import add_to_quarantine

    if path := add_to_quarantine(bench, findings):
        listener.changed(f"{path}: flaky tests were added; they no longer decide a verdict")
