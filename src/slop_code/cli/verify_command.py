"""`slop-code verify`: check stored results against the raw reports next to them."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import closed_pipe_ignored, print_json
from slop_code.cli.shared_options import add_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from slop_code.cli.shared_options import Commands
    from slop_code.reporting.terminal import StyledLine
    from slop_code.runs.checkpoint_lines import CheckpointLine
    from slop_code.runs.read_results import RunResults
    from slop_code.verification.verify import Verification

EXIT_HELP = (
    "Exit status: 0 all agree, 1 something differs, 2 something cannot be read, is missing, or has no raw reports."
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "verify",
        help="check stored results against their raw reports, without running anything",
        description="Compute counts and verdicts of stored results again from their raw reports, and compare them. "
        "Nothing is evaluated.",
        epilog=EXIT_HELP,
        examples=["slop-code verify runs/today", "slop-code verify runs/today --problems-dir problems"],
    )
    option = parser.add_argument
    option(
        "results", metavar="RESULT", nargs="+", type=Path, help="an evaluation.json, its folder, or the folder of a run"
    )
    option("-p", "--problem", help="name or path of the problem, to check its digests and markers, too")
    option(
        "--problems-dir",
        type=Path,
        metavar="DIR",
        help="folder of problems, to check each of them by the name in its results",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from slop_code.reporting.terminal import ResultConsole, print_lines
    from slop_code.reporting.verification_lines import unverified, verification_totals, verified

    console = ResultConsole()
    outcomes: list[tuple[str, Verification | str]] = []

    def show(lines: Iterable[StyledLine]) -> None:
        with closed_pipe_ignored():
            print_lines(console, () if arguments.json else lines)

    for path, outcome in _outcomes(arguments):
        outcomes.append((path, outcome))
        show(unverified(path, outcome) if isinstance(outcome, str) else verified(path, outcome))
    verifications = [outcome for _, outcome in outcomes if not isinstance(outcome, str)]
    show(verification_totals(sum(not verification.findings for verification in verifications), len(outcomes)))
    if arguments.json:
        print_json([_as_json(path, outcome) for path, outcome in outcomes])
    if any(verification.findings for verification in verifications):
        return Exit.NOT_PASSED
    return Exit.PASSED if len(verifications) == len(outcomes) else Exit.USAGE


def _outcomes(arguments: argparse.Namespace) -> Iterator[tuple[str, Verification | str]]:
    """The path of each result with its verification, or with the reason why it cannot be verified."""
    from slop_code.errors import UsageError

    paths, runs = _result_paths(arguments.results)
    recorded: dict[Path, CheckpointLine] = {}
    missing: list[tuple[str, str]] = []
    for run_results in runs:
        lines, without_result = _summary_lines(run_results)
        recorded |= lines
        missing += without_result
    for path in paths:
        try:
            yield str(path), _verify(path, arguments, recorded.get(path))
        except UsageError as error:
            yield str(path), str(error)
    yield from missing


def _result_paths(given: Sequence[Path]) -> tuple[list[Path], list[RunResults]]:
    """Result files that were given, or that lie in a folder that was given; and the runs among these folders."""
    from slop_code.errors import UsageError
    from slop_code.runs.folders.result_folders import result_files
    from slop_code.runs.read_results import read_runs

    paths: list[Path] = []
    runs: dict[Path, RunResults] = {}
    for path in given:
        if not os.path.lexists(path):
            raise UsageError(f"{path}: there is no such file or folder; give an evaluation.json or its folder")
        if not path.is_dir():
            paths.append(path)
            continue
        inside = read_runs([path])
        runs |= {run.folder: run for run in inside}
        paths += [file for run in inside for file in result_files(run.folder)]
    return list(dict.fromkeys(paths)), list(runs.values())


def _summary_lines(run: RunResults) -> tuple[Mapping[Path, CheckpointLine], list[tuple[str, str]]]:
    """Lines of the run's summary by result file; and its checkpoints without a result, each with the reason."""
    from slop_code.errors import UsageError
    from slop_code.verification.summary_check import summary_lines_by_result

    try:
        lines, missing = summary_lines_by_result(run)
    except UsageError as error:
        return {}, [(str(run.folder), str(error))]
    names = [str(run.folder / line.problem / line.checkpoint) for line in missing]
    return lines, [(name, line.reason or "no result") for name, line in zip(names, missing, strict=True)]


def _verify(path: Path, arguments: argparse.Namespace, line: CheckpointLine | None) -> Verification:
    from slop_code.errors import ResultError
    from slop_code.evaluation.problem.problem_lookup import problem_of
    from slop_code.runs.scb.load_result import read_scb_result
    from slop_code.verification.scb_result_check import check_scb_result
    from slop_code.verification.stored_document import read_document
    from slop_code.verification.summary_check import summary_discrepancies
    from slop_code.verification.verify import verify

    try:
        document, problem = read_document(path), None
    except ResultError:
        if (scb_result := read_scb_result(path)) is None:
            raise
        return check_scb_result(scb_result)
    if arguments.problem is not None or arguments.problems_dir is not None:
        problem = problem_of(document.results.problem_name, arguments.problem, arguments.problems_dir)
    verification = verify(path.parent, document, problem)
    further = summary_discrepancies(line, document) if line else []
    return replace(verification, findings=[*verification.findings, *further])


def _as_json(path: str, outcome: Verification | str) -> dict[str, Any]:
    if isinstance(outcome, str):
        return {"result": path, "verified": None, "error": outcome}
    from slop_code.reporting.verification_lines import NEVER_CHECKED

    return {
        "result": path,
        "problem": outcome.stored.problem_name,
        "checkpoint": outcome.stored.checkpoint_name,
        "verified": not outcome.findings,
        "with_problem": outcome.with_problem,
        "tests": len(outcome.stored.tests),
        "evidence": outcome.stored.evidence,
        "findings": [asdict(finding) for finding in outcome.findings],
        "unchecked": [*outcome.unchecked, NEVER_CHECKED],
    }
