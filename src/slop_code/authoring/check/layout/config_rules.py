"""Rules about config.yaml and environment.yaml: invalid values, unknown keys and dependencies without a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.yaml_keys import line_of_key
from slop_code.evaluation.problem.dependency_lock import COMMAND as LOCK_COMMAND
from slop_code.evaluation.problem.dependency_lock import NAME as LOCK_NAME
from slop_code.evaluation.problem.dependency_lock import lock_path
from slop_code.evaluation.problem.problem_lookup import CONFIG, ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.errors import ConfigError

INVALID = Rule.error(
    "config-invalid", "config.yaml or environment.yaml is invalid", "Write the expected value.", in_code=False
)
UNREADABLE = Rule.error(
    "config-unreadable",
    "config.yaml or environment.yaml is not a readable YAML file",
    "Make it a file in UTF-8 that this user may read: a YAML mapping, indented with spaces, with each key once.",
    in_code=False,
)
UNKNOWN_KEY = Rule.warning(
    "config-unknown-key",
    "A key in config.yaml or environment.yaml is unknown",
    "Remove the key, or write the intended one.",
    in_code=False,
)
UNLOCKED = Rule.warning(
    "dependencies-unlocked",
    "test_dependencies are not pinned, so that verdicts may change with the versions of the day",
    f"`{LOCK_COMMAND}` writes tests/{LOCK_NAME}, with versions and hashes.",
    in_code=False,
)


def mistake_findings(error: ConfigError, file: str = CONFIG) -> Iterator[Finding]:
    """One finding for each mistake in a file that does not load."""
    for mistake in error.mistakes:
        if mistake.key is None:
            yield Finding(UNREADABLE, Location(file, mistake.line), single_line(mistake.message))
            continue
        last, fix = single_line(mistake.key.rpartition(".")[2]), ""
        if mistake.misspelt is not None:
            fix = f"Rename it to {last}."
        elif file == CONFIG and mistake.found is None:
            fix = f"Write {last} and its value."
        yield Finding(INVALID, Location(file, mistake.line), single_line(mistake.message), fix)


def unknown_keys(files: ProblemFiles) -> Iterator[Finding]:
    """Of environment files, only the problem's own is checked."""
    own = files.environment.unknown_keys if files.environment.file == files.folder / ENVIRONMENT else ()
    for file, unknown in ((ENVIRONMENT, own), (CONFIG, files.problem.unknown_keys)):
        for key in unknown:
            fix = f"Rename it to {key.near}." if key.near else ""
            yield Finding(UNKNOWN_KEY, Location(file, key.line), single_line(key.message()), fix)


def unlocked(files: ProblemFiles) -> Iterator[Finding]:
    """A lock that is damaged or of other dependencies blocks every evaluation, with a reason of its own."""
    if files.problem.test_dependencies and not lock_path(files.problem).exists():
        location = Location(CONFIG, line_of_key(files.config, "test_dependencies"))
        yield Finding(UNLOCKED, location, f"test_dependencies are given, and there is no tests/{LOCK_NAME}")
