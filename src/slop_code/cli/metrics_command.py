"""`slop-code metrics`: the code quality of snapshots, and the same after `slop-code eval --metrics`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import closed_pipe_ignored, print_json, print_progress, print_step
from slop_code.cli.shared_options import add_environment, add_json, add_workers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from slop_code.cli.shared_options import Commands
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.quality.measure_runs import MeasuredSnapshot, SnapshotToMeasure
    from slop_code.runs.jobs.plan import Plan


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "metrics",
        help="measure the code quality of snapshots with scb-check",
        description="Measure the code of every snapshot with scb-check: verbosity, erosion, source lines, complexity. "
        "The implementation and the submission's own tests are measured apart, and written to quality.json beside each "
        "snapshot. Runs need not be evaluated, and no verdict changes. The first use installs scb-check into the "
        "cache, which needs Python 3.12 or newer.",
        epilog="Exit status: 0 measured, 2 wrong use, or no Python fits; 3 something could not be measured: it is "
        "named; 130 interrupted.",
        examples=["slop-code metrics runs/today", "slop-code metrics runs/a runs/b -j 4 --json"],
    )
    option = parser.add_argument
    option("runs", nargs="+", type=Path, metavar="RUN_DIR", help="folder of a run, or a part of one")
    add_workers(parser, "snapshots")
    add_environment(parser, "local")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.cli.signals import cancelled_by_signals
    from slop_code.execution.environment import load_environment
    from slop_code.quality.measure_runs import find_snapshots
    from slop_code.reporting.quality_lines import quality_json

    spec = load_environment(arguments.environment) if arguments.environment is not None else None
    targets = find_snapshots(arguments.runs)
    with cancelled_by_signals():
        measured = measure(targets, spec, arguments.num_workers)
    with closed_pipe_ignored():
        if arguments.json:
            print_json([quality_json(each) for each in measured])
        else:
            show(measured)
    return Exit.INFRASTRUCTURE if any(each.reason is not None for each in measured) else Exit.PASSED


def measure_evaluated(plan: Plan, arguments: argparse.Namespace) -> None:
    """Measure the submissions of a plan once they are evaluated; whatever fails is said, and changes no verdict."""
    from slop_code.cli.signals import cancelled_by_signals
    from slop_code.errors import SlopCodeError
    from slop_code.quality.measure_runs import SnapshotToMeasure
    from slop_code.runs.run_layout import natural_order

    submissions = [target for job in plan.jobs for target in job.targets] + [each for each, _ in plan.up_to_date]
    targets = [
        SnapshotToMeasure(f"{each.run}/{each.problem.name}", each.checkpoint.name, each.path, each.output)
        for each in sorted(submissions, key=lambda each: natural_order(each.label))
        if each.output is not None
    ]
    if not targets:
        return
    unsandboxed = {each.environment.isolation for each in submissions} == {"none"}
    try:
        with cancelled_by_signals():
            measured = measure(targets, submissions[0].environment if unsandboxed else None, arguments.num_workers)
    except (SlopCodeError, OSError) as error:
        print_step(f"code quality was not measured: {error}")
        return
    for each in measured:
        if each.reason is not None:
            print_step(f"code quality of {each.target.label} was not measured: {each.reason}")
    if not arguments.json:
        with closed_pipe_ignored():
            show(measured)


def measure(
    targets: Sequence[SnapshotToMeasure], spec: EnvironmentSpec | None, workers: int | None
) -> list[MeasuredSnapshot]:
    """In the order of the targets, with a line on standard error for each that ends."""
    from slop_code.execution.cache import Cache
    from slop_code.execution.processors import available_cpus
    from slop_code.quality.measure import ScbCheck
    from slop_code.quality.measure_runs import measure_snapshots

    scb_check = ScbCheck.install(Cache.default(), spec, print_progress)
    measured = {}
    for each in measure_snapshots(scb_check, targets, workers or available_cpus()):
        measured[each.target] = each
        state = "measured" if each.reason is None else "not measured"
        print_step(f"{len(measured)} of {len(targets)} {state}: {each.target.label}")
    return [measured[target] for target in targets]


def show(measured: Sequence[MeasuredSnapshot]) -> None:
    from slop_code.reporting.quality_lines import show_quality
    from slop_code.reporting.terminal import ResultConsole

    show_quality(measured, ResultConsole())
