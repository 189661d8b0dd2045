"""Step `secrecy`: expected outputs that a submission could read while it runs."""

from __future__ import annotations

import json
import re
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code._suggestions import first_names
from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity, Step, StepOutcome
from slop_code.authoring.check.python_sources import location_of_test
from slop_code.authoring.check.workbench import EvaluationRequest, reference_fault
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.problem.problem_lookup import CONFIG
from slop_code.evaluation.pytest_arguments import SHOWN_FILES_PLUGIN
from slop_code.evaluation.result_files.evidence_files import SHOWN as SHOWN_FILES
from slop_code.evaluation.staging import ASSETS
from slop_code.execution.progress_events import ProgressKind
from slop_code.execution.sandbox import REPORTS_DIR, sandbox_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slop_code.authoring.check.workbench import Workbench
    from slop_code.evaluation.config import CheckpointConfig

SHOWN = Rule.error(
    "expected-shown",
    "A test passes an expected output to the submission",
    "Pass the path of the input file itself, or keep expected outputs in a folder that is never passed.",
)
VISIBLE = Rule.error(
    "expected-visible",
    "The configuration shows an expected output to the submission",
    "Remove it from `visible` or `static_assets`: the tests can read it without that.",
    in_code=False,
)
COPIED = Rule.warning(
    "expected-copied",
    "A test copies an expected output to a folder that the submission can read",
    "Copy the inputs only: tmp_path is shared with the submission.",
)
NOTHING_HIDDEN = Rule.warning(
    "nothing-hidden",
    "Nothing is hidden from the submission",
    "Use an environment with isolation, and start the submission through its entrypoint.",
    in_code=False,
)
MAX_FACTS = 1000
MAX_NAMES = 3
MAX_LISTED = 20
"""Shown files that are named in the summary of a checkpoint."""
SIZE_LIMIT = 64 << 20
WORDS = frozenset((
    "answer", "answers", "expect", "expectation", "expectations", "expected", "gold", "golden", "goldens",
    "output", "outputs", "solution", "solutions", "stderr", "stdout", "wanted",
))  # fmt: skip
ENDINGS = (".out", ".ans", ".exp", ".ok", ".want")
BY_NAME = "has the name of an expected output"


class PassedBy(StrEnum):
    """The way of a text to a program, in the words of the judge's record."""

    ARGUMENT = "argument"
    ENVIRONMENT = "environment"
    FILE = "file"


RECEIVERS = {
    PassedBy.ARGUMENT: "an argument of a program",
    PassedBy.ENVIRONMENT: "the environment of a program",
    PassedBy.FILE: "a file that the submission can read",
}


@dataclass(frozen=True, slots=True)
class PassedText:
    """The content of a file of the tests folder that a test passed to the program it started."""

    files: tuple[str, ...]
    """All files with this content."""

    way: PassedBy
    test: str

    @property
    def expected(self) -> str | None:
        """None where an input file has the same content, since a test may mean that file."""
        return self.files[0] if self.files and all(map(looks_expected, self.files)) else None


@dataclass(frozen=True, slots=True)
class ShownFiles:
    """Paths are relative to the tests folder."""

    shown: tuple[str, ...]
    handed: Mapping[str, str]
    """Files and folders that tests passed to the submission, each with the first such test."""

    read: frozenset[str]
    copied: Mapping[str, str]
    texts: tuple[PassedText, ...] = ()

    def handed_with(self, file: str) -> str | None:
        """The file itself, or the innermost passed folder that contains it."""
        path = PurePosixPath(file)
        return next((str(parent) for parent in (path, *path.parents) if str(parent) in self.handed), None)


def looks_expected(file: str) -> bool:
    """Judged by the name of the file or of its folders: `expected/a.txt`, `a.out`, `a_expected_output.json`."""
    words = {word for word in re.split(r"[^a-z]+", file.lower()) if word}
    return bool(words & WORDS) or file.lower().endswith(ENDINGS)


def read_showing(output: Path) -> ShownFiles | None:
    """None where the judge left no readable record."""
    try:
        record = json.loads(read_bounded(output / REPORTS_DIR / SHOWN_FILES, SIZE_LIMIT))
        return ShownFiles(
            shown=tuple(_texts(record["shown"])),
            handed=_by_test(record["handed"]),
            read=frozenset(_texts(record["read"])),
            copied=_by_test(record["copied"]),
            texts=tuple(
                PassedText(tuple(_texts(item["files"])), PassedBy(item["way"]), str(item["test"]))
                for item in record["passed_texts"]
            ),
        )
    except (OSError, TooLargeError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value]


def _by_test(value: Any) -> dict[str, str]:
    return {str(file): str(test) for file, test in value.items()}


def run(bench: Workbench) -> StepOutcome:
    if open_to_all := list(nothing_hidden(bench)):
        return StepOutcome(tuple(open_to_all), ("everything can be read by the submission",))
    observed = {
        checkpoint.name: shown_files(bench, checkpoint) for checkpoint in covering(bench.checkpoints_with_reference())
    }
    findings = [finding for name, files in observed.items() for finding in findings_of(bench.problem.path, name, files)]
    return StepOutcome(
        tuple(findings),
        tuple(line for name, files in observed.items() for line in shown_lines(name, files)),
        {"shown": {name: list(files.shown[:MAX_FACTS]) for name, files in observed.items()}},
    )


def covering(checkpoints: Sequence[CheckpointConfig]) -> list[CheckpointConfig]:
    """The fewest checkpoints that run all tests: a checkpoint usually includes the tests of earlier ones."""
    chosen: list[CheckpointConfig] = []
    for checkpoint in reversed(checkpoints):
        chosen.insert(0, checkpoint)
        if checkpoint.include_prior_tests:
            break
    return chosen


def nothing_hidden(bench: Workbench) -> Iterator[Finding]:
    if sandbox_name(bench.environment) == "none":
        name = single_line(bench.environment.name)
        message = f"the environment {name} has isolation: none; tests and expected outputs can be read"
        yield Finding(NOTHING_HIDDEN, Location(bench.environment_file or CONFIG), message)
    if bench.problem.in_process:
        message = "in_process: true; the submission runs where tests and expected outputs can be read"
        yield Finding(NOTHING_HIDDEN, Location(CONFIG), message)


def shown_files(bench: Workbench, checkpoint: CheckpointConfig) -> ShownFiles:
    """Evaluates the reference again, with a judge that records which files the subject is shown."""
    bench.notify(ProgressKind.EVALUATE_REFERENCE, checkpoint)
    with tempfile.TemporaryDirectory(prefix="slop-code-shown-") as folder:
        request = EvaluationRequest(
            checkpoint, bench.solution(checkpoint), pytest_args=("-p", SHOWN_FILES_PLUGIN), output=Path(folder)
        )
        if fault := reference_fault(checkpoint.name, bench.evaluate(request)):
            raise UsageError(fault)
        files = read_showing(Path(folder))
    if files is None:
        raise InfrastructureError(f"{checkpoint.name}: the judge left no record of shown files; try again")
    return files


def findings_of(folder: Path, checkpoint: str, files: ShownFiles) -> Iterator[Finding]:
    along: dict[str, list[str]] = defaultdict(list)
    for file in files.shown:
        root = files.handed_with(file)
        if looks_expected(file) and root is not None:
            yield from_test(folder, SHOWN, checkpoint, files.handed[root], f"{handed(root, file)}: it {BY_NAME}")
        elif looks_expected(file):
            how = "static_assets" if file.startswith(f"{ASSETS}/") else "visible"
            message = f"{how} shows tests/{single_line(file)} to the submission: it {BY_NAME}"
            yield Finding(VISIBLE, Location(CONFIG), message, checkpoint=checkpoint)
        elif root not in (None, file) and file in files.read:
            along[str(root)].append(file)
    for root, paths in along.items():
        message = f"{handed(root, first_names(paths, MAX_NAMES))}: the tests read it as well; is it an expected output?"
        yield from_test(folder, SHOWN, checkpoint, files.handed[root], message, Severity.WARNING)
    for file, test in files.copied.items():
        message = f"tests/{single_line(file)} is copied to a folder that the submission can read"
        if looks_expected(file):
            yield from_test(folder, COPIED, checkpoint, test, f"{message}: it {BY_NAME}")
        elif file in files.read:
            message = f"{message}, and the tests read it as well; is it an expected output?"
            yield from_test(folder, COPIED, checkpoint, test, message, Severity.NOTE)
    yield from by_text(folder, checkpoint, files)


def by_text(folder: Path, checkpoint: str, files: ShownFiles) -> Iterator[Finding]:
    """Never more than a warning, since the submission may be meant to read the same text."""
    for text in files.texts:
        if text.expected is not None and text.expected not in files.copied:
            rule = COPIED if text.way is PassedBy.FILE else SHOWN
            message = f"the text of tests/{single_line(text.expected)} is in {RECEIVERS[text.way]}: it {BY_NAME}"
            yield from_test(folder, rule, checkpoint, text.test, message, Severity.WARNING)


def handed(root: str, file: str) -> str:
    if root == file:
        return f"tests/{single_line(file)} is passed to the submission"
    return f"tests/{single_line(file)} is shown, as the folder tests/{single_line(root)} is passed to the submission"


def from_test(
    folder: Path, rule: Rule, checkpoint: str, test: str, message: str, severity: Severity | None = None
) -> Finding:
    """An empty `test` stands for code outside of tests."""
    location = location_of_test(folder, test) if test else Location("tests/conftest.py", 1)
    return Finding(rule, location, message, own_severity=severity, checkpoint=checkpoint, test=test or None)


def shown_lines(checkpoint: str, files: ShownFiles) -> Iterator[str]:
    """The files of the problem that the submission could read, each with its way; suspicious ones first."""
    ways = {file: way_of(file, files) for file in files.shown}
    ways |= {file: f"copied by {test_text(test)}" for file, test in files.copied.items() if file not in ways}
    bad = sum(map(looks_expected, ways))
    count = f"{len(ways) or 'no'} {'file' if len(ways) == 1 else 'files'}"
    named = f", {bad} of them by name an expected output" if bad else ""
    yield f"{checkpoint}: besides its own files the submission is shown {count}{named}"
    for file in sorted(ways, key=lambda file: not looks_expected(file))[:MAX_LISTED]:
        yield f"  {path_text(file)}: {ways[file]}"
    if len(ways) > MAX_LISTED:
        yield f"  and {len(ways) - MAX_LISTED} more; --json names them"


def way_of(file: str, files: ShownFiles) -> str:
    if file.startswith(f"{ASSETS}/"):
        return "static_assets"
    root = files.handed_with(file)
    if root is None:
        return "visible"
    folder = "" if root == file else f"with the folder {path_text(root)}, "
    return f"{folder}passed by {test_text(files.handed[root])}"


def path_text(file: str) -> str:
    return single_line(file if file.startswith(f"{ASSETS}/") else f"tests/{file}")


def test_text(test: str) -> str:
    return single_line(test) or "code outside of tests"


STEP = Step(
    "secrecy", "expected outputs stay hidden from the submission", (SHOWN, VISIBLE, COPIED, NOTHING_HIDDEN), run
)
