"""What a submission could read of expected outputs while it runs."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import in_line, some
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity, Step, StepOutcome
from slop_code.authoring.check.python_sources import location_of_test
from slop_code.authoring.check.reference_verdict import unsound
from slop_code.authoring.check.shown_files import ASSETS, ShownFiles, covering, looks_expected, read_showing
from slop_code.authoring.check.workbench import EvaluationRequest
from slop_code.authoring.problem_folders import CONFIG
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.command import WATCH
from slop_code.execution.sandbox import sandbox_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig

SHOWN = Rule(
    "expected-shown",
    Severity.ERROR,
    "A test hands an expected output over to the submission",
    "Hand over the input file by its own path, or keep expected outputs in a folder that is never handed over.",
)
VISIBLE = Rule(
    "expected-visible",
    Severity.ERROR,
    "The configuration shows an expected output to the submission",
    "Take it out of `visible` or `static_assets`: the tests can read it without that.",
    in_code=False,
)
COPIED = Rule(
    "expected-copied",
    Severity.WARNING,
    "A test copies an expected output to where the submission may read it",
    "Copy the inputs only: tmp_path is shared with the submission.",
)
NOTHING_HIDDEN = Rule(
    "nothing-hidden",
    Severity.WARNING,
    "Nothing is hidden from the submission",
    "Use an environment with isolation, and call the submission through its entrypoint.",
    in_code=False,
)
MOST_FACTS = 1000


def run(bench: Workbench) -> StepOutcome:
    if open_to_all := list(nothing_hidden(bench)):
        return StepOutcome(tuple(open_to_all), ("everything can be read by the submission",))
    found = {checkpoint.name: watch(bench, checkpoint) for checkpoint in covering(bench.solved())}
    findings = [one for name, showing in found.items() for one in judged(bench.problem.path, name, showing)]
    summary = [f"{name}: the submission is shown {files(showing)}" for name, showing in found.items()]
    return StepOutcome(
        tuple(findings),
        tuple(summary),
        {"shown": {name: list(showing.shown[:MOST_FACTS]) for name, showing in found.items()}},
    )


def nothing_hidden(bench: Workbench) -> Iterator[Finding]:
    if sandbox_name(bench.environment) == "none":
        name = in_line(bench.environment.name)
        message = f"the environment {name} has isolation: none; tests and expected outputs can be read"
        yield Finding(NOTHING_HIDDEN, Location(bench.environment_file or CONFIG), message)
    if bench.problem.in_process:
        message = "in_process: true; the submission runs where tests and expected outputs can be read"
        yield Finding(NOTHING_HIDDEN, Location(CONFIG), message)


def watch(bench: Workbench, checkpoint: CheckpointConfig) -> ShownFiles:
    """The reference once more, with a judge that notes what it is shown."""
    with tempfile.TemporaryDirectory(prefix="slop-code-shown-") as folder:
        trial = EvaluationRequest(
            checkpoint, bench.solution(checkpoint), pytest_args=("-p", WATCH), output=Path(folder)
        )
        if fault := unsound(checkpoint.name, bench.evaluate(trial)):
            raise UsageError(fault)
        showing = read_showing(Path(folder))
    if showing is None:
        raise InfrastructureError(f"{checkpoint.name}: the judge left no word on what it showed; try again")
    return showing


def judged(folder: Path, checkpoint: str, showing: ShownFiles) -> Iterator[Finding]:
    along: dict[str, list[str]] = defaultdict(list)
    for file in showing.shown:
        root = showing.handed_with(file)
        if looks_expected(file) and root is not None:
            yield from_test(folder, SHOWN, checkpoint, showing.handed[root], f"{handed(root, file)}: it {BY_NAME}")
        elif looks_expected(file):
            how = "static_assets" if file.startswith(f"{ASSETS}/") else "visible"
            message = f"{how} shows tests/{in_line(file)} to the submission: it {BY_NAME}"
            yield Finding(VISIBLE, Location(CONFIG), message, checkpoint=checkpoint)
        elif root not in (None, file) and file in showing.read:
            along[str(root)].append(file)
    for root, came in along.items():
        message = f"{handed(root, some(came))}: the tests read what came along; is it what they expect?"
        yield from_test(folder, SHOWN, checkpoint, showing.handed[root], message, Severity.WARNING)
    for file, test in showing.copied.items():
        message = f"tests/{in_line(file)} is copied to where the submission may read it"
        if looks_expected(file):
            yield from_test(folder, COPIED, checkpoint, test, f"{message}: it {BY_NAME}")
        elif file in showing.read:
            message = f"{message}, and the tests read it, too; does it hold what they expect?"
            yield from_test(folder, COPIED, checkpoint, test, message, Severity.NOTE)
    yield from by_text(folder, checkpoint, showing)


def by_text(folder: Path, checkpoint: str, showing: ShownFiles) -> Iterator[Finding]:
    """The submission may be meant to read the same text, so that this is never more than a warning."""
    for one in showing.told:
        if one.expected is not None and one.expected not in showing.copied:
            rule = COPIED if one.way == "a file" else SHOWN
            where = "a file that the submission may read" if rule is COPIED else f"{in_line(one.way)} of a program"
            message = f"the text of tests/{in_line(one.expected)} is in {where}: it {BY_NAME}"
            yield from_test(folder, rule, checkpoint, one.test, message, Severity.WARNING)


BY_NAME = "has the name of an expected output"


def handed(root: str, file: str) -> str:
    if root == file:
        return f"tests/{in_line(file)} is handed over"
    return f"tests/{in_line(file)} is shown, as the folder tests/{in_line(root)} is handed over"


def from_test(
    folder: Path, rule: Rule, checkpoint: str, test: str, message: str, severity: Severity | None = None
) -> Finding:
    """`test`: empty where none was running."""
    place = location_of_test(folder, test) if test else Location("tests/conftest.py", 1)
    return Finding(rule, place, message, own_severity=severity, checkpoint=checkpoint, test=test or None)


def files(showing: ShownFiles) -> str:
    count, bad = len(showing.shown), sum(map(looks_expected, showing.shown))
    named = f", {bad} of them by name an expected output" if bad else ""
    return f"{count} {'file' if count == 1 else 'files'} of the tests folder{named}"


STEP = Step(
    "secrecy",
    "expected outputs stay hidden from the submission",
    (SHOWN, VISIBLE, COPIED, NOTHING_HIDDEN),
    run,
)
