"""`slop-code verify`: stored results against the raw reports beside them; nothing is run."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code.cli.exits import Exit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from slop_code.cli.commands import Commands
    from slop_code.evaluation.verify import Verification

STATUS = "Exit status: 0 all agree, 1 something differs, 2 something cannot be read or has no raw reports."


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "verify",
        help="check stored results against their raw reports, without running anything",
        description="Come to counts and verdicts of stored results once more, from the raw reports beside them.",
        epilog=STATUS,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("results", metavar="RESULT", nargs="+", type=Path, help="evaluation.json, its folder, or that of a run")
    option("-p", "--problem", help="name or path of the problem, to check its digests and markers too")
    option("--problems-dir", type=Path, help="the same for problems by the names that the results give")
    option("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from rich.text import Text

    from slop_code.errors import UsageError
    from slop_code.reporting.terminal import ResultConsole, one_line
    from slop_code.reporting.verification import verified

    console, rows, differ, failed = ResultConsole(), [], False, False

    def say(text: str, style: str) -> None:
        if not arguments.json:
            with contextlib.suppress(BrokenPipeError):  # who has seen enough still gets the exit status
                console.print(Text(text, style), soft_wrap=True)

    for path in _paths(arguments.results):
        try:
            found = _verify(path, arguments)
        except UsageError as error:
            failed = True
            rows.append({"result": str(path), "verified": None, "error": str(error)})
            say(f"{one_line(str(path))}: cannot be verified: {one_line(str(error))}", "bold red")
            continue
        differ = differ or bool(found.findings)
        rows.append(_row(path, found))
        for text, style in verified(str(path), found):
            say(text, style)
    if arguments.json:
        print(json.dumps(rows, indent=2), flush=True)
    return Exit.NOT_PASSED if differ else Exit.USAGE if failed else Exit.PASSED


def _paths(given: Sequence[Path]) -> list[Path]:
    from slop_code.errors import UsageError
    from slop_code.runs.results import result_files, runs_below

    found: list[Path] = []
    for path in given:
        if not os.path.lexists(path):
            raise UsageError(f"{path}: there is no such file or folder; give an evaluation.json or its folder")
        found += [one for run in runs_below(path) for one in result_files(run)] if path.is_dir() else [path]
    if not found:
        raise UsageError(f"{given[0]}: no evaluation.json there; evaluate it first: slop-code eval {given[0]}")
    return list(dict.fromkeys(found))


def _verify(path: Path, arguments: argparse.Namespace) -> Verification:
    from slop_code.evaluation.document import read_document
    from slop_code.evaluation.find import problem_of
    from slop_code.evaluation.verify import verify

    document, problem = read_document(path), None
    if arguments.problem is not None or arguments.problems_dir is not None:
        problem = problem_of(document.results.problem_name, arguments.problem, arguments.problems_dir)
    return verify(path.parent, document, problem)


def _row(path: Path, found: Verification) -> dict[str, Any]:
    return {
        "result": str(path),
        "problem": found.stored.problem_name,
        "checkpoint": found.stored.checkpoint_name,
        "verified": not found.findings,
        "tests": len(found.stored.tests),
        "evidence": found.stored.evidence,
        "findings": [asdict(finding) for finding in found.findings],
        "unchecked": found.unchecked,
    }
