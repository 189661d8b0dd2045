"""Rules about config.yaml and environment.yaml: invalid values, unknown keys and dependencies without a lock."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import read_text
from slop_code.authoring.check.yaml_keys import keys_of, line_of
from slop_code.authoring.problem_folders import CONFIG
from slop_code.evaluation.config import AssetConfig, CheckpointConfig, MarkerConfig, ProblemConfig
from slop_code.evaluation.problem.dependency_lock import COMMAND as LOCK_COMMAND
from slop_code.evaluation.problem.dependency_lock import NAME as LOCK_NAME
from slop_code.evaluation.problem.dependency_lock import lock_path
from slop_code.evaluation.problem.problem_lookup import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code._yaml import FileModel
    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.errors import ConfigError

INVALID = Rule.error(
    "config-invalid", "config.yaml or environment.yaml is invalid", "Write the expected value.", in_code=False
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
RULES = (INVALID, UNKNOWN_KEY, UNLOCKED)


def mistake_findings(folder: Path, error: ConfigError, file: str = CONFIG) -> Iterator[Finding]:
    """One finding for each mistake in a file that does not load."""
    text = read_text(folder / file)
    for mistake in error.mistakes:
        message = single_line(mistake.message)
        if file == CONFIG and mistake.key is not None and mistake.found is None:
            yield _missing(text, mistake.key, message)
        else:
            yield Finding(INVALID, Location(file, mistake.line), message)


def _missing(text: str, key: str, message: str) -> Finding:
    """A key with a similar name may be a misspelling of it."""
    above, _, last = key.rpartition(".")
    unknown = [name for name in keys_of(text, above) if name not in _known_at(above)]
    near = difflib.get_close_matches(last, unknown, n=1, cutoff=0.75)
    if not near:
        location = Location(CONFIG, line_of(text, key))
        return Finding(INVALID, location, message, f"Write {single_line(last)} and its value.")
    similar = f"{above}.{near[0]}" if above else near[0]
    location = Location(CONFIG, line_of(text, similar))
    return Finding(INVALID, location, f"{message}; {single_line(similar)} is similar", f"Rename it to {last}.")


def unknown_keys(files: ProblemFiles) -> Iterator[Finding]:
    yield from _unknown_in_environment(files)
    for key in files.problem.unknown_keys:
        above, _, last = key.rpartition(".")
        siblings = keys_of(files.config, above)
        free = [name for name in _known_at(above) if name not in siblings]
        near = difflib.get_close_matches(last, free, n=1, cutoff=0.75)
        location = Location(CONFIG, line_of(files.config, key))
        message = f"unknown key {single_line(key)}"
        if near:
            yield Finding(UNKNOWN_KEY, location, f"{message}; did you mean {near[0]}?", f"Rename it to {near[0]}.")
        else:
            yield Finding(UNKNOWN_KEY, location, message)


def unlocked(files: ProblemFiles) -> Iterator[Finding]:
    """A lock that is damaged or of other dependencies blocks every evaluation, with a reason of its own."""
    if files.problem.test_dependencies and not lock_path(files.problem).exists():
        location = Location(CONFIG, line_of(files.config, "test_dependencies"))
        yield Finding(UNLOCKED, location, f"test_dependencies are given, and there is no tests/{LOCK_NAME}")


def _unknown_in_environment(files: ProblemFiles) -> Iterator[Finding]:
    """Only the problem's own environment file is checked."""
    own = files.folder / ENVIRONMENT
    for key in files.environment.unknown_keys if files.environment.file == own else ():
        location = Location(ENVIRONMENT, line_of(read_text(own), key))
        yield Finding(UNKNOWN_KEY, location, f"unknown key {single_line(key)}")


def _known_at(above: str) -> list[str]:
    inner: dict[str, type[FileModel]] = {
        "checkpoints": CheckpointConfig,
        "static_assets": AssetConfig,
        "markers": MarkerConfig,
    }
    model = inner.get(above.partition(".")[0], ProblemConfig) if above else ProblemConfig
    return list(model.model_fields)
