"""`slop-code problems check`: whether problems are sound."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.errors import UsageError
from slop_code.evaluation.problem_lookup import PROBLEMS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.authoring.check.check_problem import CheckRequest
    from slop_code.authoring.check.findings import Severity
    from slop_code.authoring.check.steps import CheckReport
    from slop_code.authoring.check.workbench import Effort
    from slop_code.cli.shared_options import Commands

STEPS = "layout, reference, controls, stability, strength, secrecy, limits"
SEVERITIES = ("note", "warning", "error")
STATUS = (
    "Exit status: 0 nothing found that is as grave as --fail-on says, 1 something was, or keeps a step from being "
    "done, 2 wrong use, 3 a step could not be done here, so that nothing is known, 130 interrupted."
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "check",
        examples=[
            "slop-code problems check problems/larder",
            "slop-code problems check --step layout --step reference",
        ],
        verbose="show allowed findings, too, and details in full",
        help="say whether problems are sound, and what to mend",
        description="Say whether problems are sound: their reference passes, nothing else does, and nothing flakes.",
        epilog=STATUS,
    )
    option = parser.add_argument
    option(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a problem's folder or name, or a folder of problems (default: this folder, else all there are)",
    )
    option("--step", action="append", default=[], metavar="NAME", help=f"only this one of {STEPS}; repeatable")
    option("--skip", action="append", default=[], metavar="NAME", help="all steps but this one; repeatable")
    option("-c", "--checkpoint", action="append", default=[], help="number or name of a checkpoint; repeatable")
    option("-e", "--environment", help="name or path of the environment (default: the problem's own, else local)")
    option("-j", "--jobs", type=count, metavar="N", help="evaluations at a time (default: one per processor)")
    option("--repeat", type=count, metavar="N", help="runs for each condition of the step stability (default: 3)")
    option(
        "--seed", type=int, metavar="N", help="of the first random order, which comes after the reverse (default: 1)"
    )
    option("--budget", metavar="N", help="mutants for each checkpoint, or a time such as 5m (default: 20)")
    option("--quarantine", action="store_true", help="note tests that flake in tests/flaky.json")
    option("--json", action="store_true", help="print what was found as JSON")
    option("--sarif", type=Path, metavar="FILE", help="write what was found as SARIF 2.1.0, too")
    option(
        "--fail-on",
        choices=SEVERITIES,
        default="warning",
        help="how grave a finding has to be for exit status 1 (default: warning)",
    )
    option(
        "--problems-dir",
        type=Path,
        help=f"where to find problems by name (default: ${PROBLEMS_VARIABLE}, else problems)",
    )
    option("--explain", metavar="RULE", help="say what a rule is about, and exit")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.authoring.check.check_problem import CheckRequest, check_problem
    from slop_code.authoring.check.findings import Severity
    from slop_code.authoring.check.steps import choose_steps
    from slop_code.authoring.problem_folders import problem_folders
    from slop_code.reporting.check_view import CheckView

    if arguments.explain is not None:
        return _explain(arguments.explain)
    wanted = CheckRequest(
        steps=choose_steps(arguments.step, arguments.skip),
        checkpoints=arguments.checkpoint,
        environment=arguments.environment,
        effort=_effort(arguments),
        quarantine=arguments.quarantine,
    )
    _agree(wanted, arguments)
    folders = problem_folders(arguments.paths, arguments.problems_dir)
    view = CheckView(quiet=arguments.json, every=arguments.verbose)
    reports = [check_problem(folder, wanted, view.listener) for folder in folders]
    status = status_of(reports, Severity[arguments.fail_on.upper()])
    if arguments.sarif is not None:
        _write_sarif(reports, status, arguments.sarif)
    with contextlib.suppress(BrokenPipeError):  # who has seen enough still gets the exit status
        if arguments.json:
            from slop_code.reporting.check_json import document

            print(json.dumps(document(reports, status), indent=2), flush=True)
        else:
            view.end(reports)
    return status


def status_of(reports: Sequence[CheckReport], fail_on: Severity) -> Exit:
    """What could not be done here says nothing, and so less than any finding: it comes first."""
    if any(report.broken for report in reports):
        return Exit.INFRASTRUCTURE
    if any(report.undone for report in reports):
        return Exit.NOT_PASSED
    worst = [report.worst for report in reports if report.worst is not None]
    return Exit.NOT_PASSED if worst and max(worst) >= fail_on else Exit.PASSED


def _agree(wanted: CheckRequest, arguments: argparse.Namespace) -> None:
    if not wanted.steps:
        raise UsageError("no step is left to be done; leave out some --skip")
    if wanted.quarantine and "stability" not in wanted.steps:
        raise UsageError("--quarantine needs the step stability, which finds the tests that flake")
    if arguments.sarif is not None:
        from slop_code.runs.read_results import check_output

        check_output(arguments.sarif, "--sarif")
        if not arguments.sarif.parent.is_dir():
            raise UsageError(f"{arguments.sarif}: its folder is not there; make it first")


def _effort(arguments: argparse.Namespace) -> Effort:
    from slop_code.authoring.check.strength.mutant_selection import parse_budget
    from slop_code.authoring.check.workbench import Effort

    budget = None if arguments.budget is None else parse_budget(arguments.budget)
    given = {name: getattr(arguments, name) for name in ("repeat", "seed", "jobs")} | {"budget": budget}
    return Effort(**{name: value for name, value in given.items() if value is not None})


def _explain(rule: str) -> int:
    from slop_code.authoring.check.steps import STEPS, step
    from slop_code.reporting.check_lines import rule_lines

    known = {one.id: (one, name) for name in STEPS for one in step(name).rules}
    if rule not in known:
        raise UsageError(f"no rule {rule!r}; there are {', '.join(sorted(known))}")
    for line, _ in rule_lines(*known[rule]):
        print(line)
    return Exit.PASSED


def _write_sarif(reports: Sequence[CheckReport], status: int, path: Path) -> None:
    from slop_code._io import write_atomic
    from slop_code.reporting.sarif import sarif
    from slop_code.reporting.text import one_line

    write_atomic(path, json.dumps(sarif(reports, status, Path.cwd()), indent=2) + "\n")
    print(f"· written: {one_line(os.fspath(path))}", file=sys.stderr)


def count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1 to 1000")
    return int(text)
