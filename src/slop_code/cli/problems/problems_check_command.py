"""`slop-code problems check`: check whether problems are sound."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._suggestions import near_or_known
from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import closed_pipe_ignored, print_json, print_step
from slop_code.cli.shared_options import add_environment, add_json, add_problem_paths, add_problems_dir, whole_number
from slop_code.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from slop_code.authoring.check.check_problem import CheckRequest
    from slop_code.authoring.check.findings import Severity
    from slop_code.authoring.check.steps import CheckReport
    from slop_code.authoring.check.workbench import Effort
    from slop_code.cli.shared_options import Commands

STEP_NAMES = "layout, reference, controls, stability, strength, secrecy, limits"
SEVERITIES = ("note", "warning", "error")
STATUS = (
    "Exit status: 0 no finding is as severe as --fail-on, 1 a finding is, or the problem blocks a step, 2 wrong use, "
    "3 this machine could not do a step, 130 interrupted."
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "check",
        examples=[
            "slop-code problems check problems/larder",
            "slop-code problems check --step layout --step reference",
        ],
        verbose="show allowed findings, too, and details in full",
        help="check whether problems are sound, and show how to fix them",
        description="Check whether problems are sound: the reference passes, nothing else does, and no test is flaky.",
        epilog=STATUS,
    )
    option = parser.add_argument
    add_problem_paths(parser)
    option("--step", action="append", default=[], metavar="NAME", help=f"run only this step: {STEP_NAMES}; repeatable")
    option("--skip", action="append", default=[], metavar="NAME", help="leave out this step; repeatable")
    option("-c", "--checkpoint", action="append", default=[], help="number or name of a checkpoint; repeatable")
    add_environment(parser)
    count = whole_number(1, 1000)
    option("-j", "--jobs", type=count, metavar="N", help="evaluations at a time (default: one per processor)")
    option("--repeat", type=count, metavar="N", help="runs for each condition of the step stability (default: 3)")
    option("--seed", type=int, metavar="N", help="seed of the first random order of tests (default: 1)")
    option("--budget", metavar="N", help="mutants for each checkpoint, or a time such as 5m (default: 20)")
    option("--quarantine", action="store_true", help="add flaky tests to tests/flaky.json")
    option("--lock", action="store_true", help="first pin test_dependencies, with hashes, in tests/requirements.lock")
    add_json(parser, "print the findings as JSON")
    option("--sarif", type=Path, metavar="FILE", help="also write the findings as SARIF 2.1.0")
    option(
        "--fail-on", choices=SEVERITIES, default="warning", help="lowest severity for exit status 1 (default: warning)"
    )
    add_problems_dir(parser)
    option("--explain", metavar="RULE", help="explain a rule, and exit")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.authoring.check.check_problem import CheckRequest, check_problem
    from slop_code.authoring.check.findings import Severity
    from slop_code.authoring.check.steps import choose_steps
    from slop_code.authoring.problem_folders import problem_folders
    from slop_code.reporting.check_lines import CheckView
    from slop_code.reporting.progress.check_progress import check_status

    if arguments.explain is not None:
        return _explain(arguments.explain, as_json=arguments.json)
    request = CheckRequest(
        steps=choose_steps(arguments.step, arguments.skip),
        checkpoints=arguments.checkpoint,
        environment=arguments.environment,
        effort=_effort(arguments),
        quarantine=arguments.quarantine,
        lock=arguments.lock,
    )
    _validate(request, arguments)
    folders = problem_folders(arguments.problems, arguments.problems_dir)
    with check_status(sys.stderr, quiet=arguments.quiet) as progress:
        view = CheckView(progress, quiet=arguments.json, verbose=arguments.verbose)
        reports = [check_problem(folder, request, view.listener) for folder in folders]
    status = status_of(reports, Severity[arguments.fail_on.upper()])
    if arguments.sarif is not None:
        _write_sarif(reports, status, arguments.sarif)
    with closed_pipe_ignored():
        if arguments.json:
            from slop_code.reporting.check_json import document

            print_json(document(reports, status))
        else:
            view.end(reports, all_checkpoints=not arguments.checkpoint)
    return status


def status_of(reports: Sequence[CheckReport], fail_on: Severity) -> Exit:
    """A step that this machine could not do outweighs any finding, since its result is unknown."""
    if any(report.broken for report in reports):
        return Exit.INFRASTRUCTURE
    if any(report.undone for report in reports):
        return Exit.NOT_PASSED
    worst = [report.worst for report in reports if report.worst is not None]
    return Exit.NOT_PASSED if worst and max(worst) >= fail_on else Exit.PASSED


def _validate(request: CheckRequest, arguments: argparse.Namespace) -> None:
    if not request.steps:
        raise UsageError("no step is left; remove a --skip")
    if request.quarantine and "stability" not in request.steps:
        raise UsageError("--quarantine needs the step stability, which finds flaky tests")
    if arguments.sarif is not None:
        from slop_code.runs.folders.result_folders import check_output

        check_output(arguments.sarif, "--sarif")


def _effort(arguments: argparse.Namespace) -> Effort:
    from slop_code.authoring.check.strength.mutant import parse_budget
    from slop_code.authoring.check.workbench import Effort

    budget = None if arguments.budget is None else parse_budget(arguments.budget)
    given = {name: getattr(arguments, name) for name in ("repeat", "seed", "jobs")} | {"budget": budget}
    return Effort(**{name: value for name, value in given.items() if value is not None})


def _explain(rule: str, *, as_json: bool) -> int:
    from slop_code.authoring.check.steps import STEPS, step
    from slop_code.reporting.check_json import rule_of
    from slop_code.reporting.check_lines import rule_lines

    known = {item.id: (item, name) for name in STEPS for item in step(name).rules}
    if rule not in known:
        raise UsageError(f"no rule {rule!r}{near_or_known(rule, sorted(known))}")
    if as_json:
        print_json(rule_of(*known[rule]))
        return Exit.PASSED
    for line, _ in rule_lines(*known[rule]):
        print(line)
    return Exit.PASSED


def _write_sarif(reports: Sequence[CheckReport], status: int, path: Path) -> None:
    from slop_code._io import write_atomic
    from slop_code.reporting.sarif import sarif

    write_atomic(path, json.dumps(sarif(reports, status, Path.cwd()), indent=2) + "\n")
    print_step(f"written: {path}")
