"""`slop-code verify`: check stored results against the raw reports next to them."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code.cli.exit_codes import Exit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from slop_code.cli.shared_options import Commands
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
    option("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from rich.text import Text

    from slop_code.reporting.terminal import ResultConsole
    from slop_code.reporting.verification_lines import NEVER_CHECKED, in_all, unverified, verified

    console, found = ResultConsole(), []

    def say(lines: Iterable[tuple[str, str]]) -> None:
        with contextlib.suppress(BrokenPipeError):  # who has seen enough still gets the exit status
            for text, style in () if arguments.json else lines:
                console.print(Text(text, style), soft_wrap=True)

    for place, outcome in _outcomes(arguments):
        found.append((place, outcome))
        say(unverified(place, outcome) if isinstance(outcome, str) else verified(place, outcome))
    known = [outcome for _, outcome in found if not isinstance(outcome, str)]
    say(in_all(sum(not one.findings for one in known), len(found)))
    if arguments.json:
        print(json.dumps([_row(place, outcome, NEVER_CHECKED) for place, outcome in found], indent=2), flush=True)
    if any(one.findings for one in known):
        return Exit.NOT_PASSED
    return Exit.PASSED if len(known) == len(found) else Exit.USAGE


def _outcomes(arguments: argparse.Namespace) -> Iterator[tuple[str, Verification | str]]:
    """What became of each result with its path, one at a time; a text says why it cannot be verified."""
    from slop_code.errors import UsageError

    paths, runs = _places(arguments.results)
    recorded: dict[Path, CheckpointLine] = {}
    missing: list[tuple[str, str]] = []
    for one in runs:
        lines, without = _recorded(one)
        recorded |= lines
        missing += without
    for path in paths:
        try:
            yield str(path), _verify(path, arguments, recorded.get(path))
        except UsageError as error:
            yield str(path), str(error)
    yield from missing


def _places(given: Sequence[Path]) -> tuple[list[Path], list[RunResults]]:
    """Results that are given by themselves or by a folder around them, and the runs among these folders."""
    from slop_code.errors import UsageError
    from slop_code.runs.read_results import read_runs, result_files

    paths: list[Path] = []
    runs: dict[Path, RunResults] = {}
    for path in given:
        if not os.path.lexists(path):
            raise UsageError(f"{path}: there is no such file or folder; give an evaluation.json or its folder")
        inside = read_runs([path]) if path.is_dir() else []
        runs |= {run.folder: run for run in inside}
        paths += [one for run in inside for one in result_files(run.folder)] if path.is_dir() else [path]
    return list(dict.fromkeys(paths)), list(runs.values())


def _recorded(run: RunResults) -> tuple[Mapping[Path, CheckpointLine], list[tuple[str, str]]]:
    """What its summary says of its results; and checkpoints without one, each with its place and the reason."""
    from slop_code.errors import UsageError
    from slop_code.verification.recorded import recorded

    try:
        found = recorded(run)
    except UsageError as error:
        return {}, [(str(run.folder), str(error))]
    return found.lines, [
        (str(run.folder / line.problem / line.checkpoint), line.reason or "no result") for line in found.missing
    ]


def _verify(path: Path, arguments: argparse.Namespace, line: CheckpointLine | None) -> Verification:
    from slop_code.evaluation.problem_lookup import problem_of
    from slop_code.verification.recorded import differences
    from slop_code.verification.stored_document import read_document
    from slop_code.verification.verify import verify

    document, problem = read_document(path), None
    if arguments.problem is not None or arguments.problems_dir is not None:
        problem = problem_of(document.results.problem_name, arguments.problem, arguments.problems_dir)
    found = verify(path.parent, document, problem)
    return replace(found, findings=[*found.findings, *(differences(line, document) if line else [])])


def _row(place: str, found: Verification | str, never: str) -> dict[str, Any]:
    if isinstance(found, str):
        return {"result": place, "verified": None, "error": found}
    return {
        "result": place,
        "problem": found.stored.problem_name,
        "checkpoint": found.stored.checkpoint_name,
        "verified": not found.findings,
        "with_problem": found.with_problem,
        "tests": len(found.stored.tests),
        "evidence": found.stored.evidence,
        "findings": [asdict(finding) for finding in found.findings],
        "unchecked": [*found.unchecked, never],
    }
