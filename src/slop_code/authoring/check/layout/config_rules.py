"""config.yaml: what is wrong in it, and keys that mean nothing."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from slop_code.authoring.check.failure_text import in_line
from slop_code.authoring.check.findings import Finding, Location, Rule, Severity
from slop_code.authoring.check.layout.problem_files import read_text
from slop_code.authoring.check.yaml_keys import keys_of, line_of
from slop_code.authoring.problem_folders import CONFIG
from slop_code.evaluation.config import AssetConfig, CheckpointConfig, MarkerConfig, ProblemConfig
from slop_code.evaluation.problem_lookup import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code._yaml import FileModel
    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.errors import ConfigError

INVALID = Rule(
    "config-invalid",
    Severity.ERROR,
    "config.yaml or environment.yaml cannot be used as it stands",
    "Write the value that is expected there.",
    in_code=False,
)
UNKNOWN_KEY = Rule(
    "config-unknown-key",
    Severity.WARNING,
    "A key in config.yaml or environment.yaml means nothing",
    "Take the key out, or write the one that was meant.",
    in_code=False,
)
RULES = (INVALID, UNKNOWN_KEY)


def refusals(folder: Path, error: ConfigError, file: str = CONFIG) -> Iterator[Finding]:
    """One for each mistake of a file that does not load."""
    text = read_text(folder / file)
    for mistake in error.mistakes:
        message = in_line(mistake.message)
        if file == CONFIG and mistake.key is not None and mistake.found is None:
            yield _missing(text, mistake.key, message)
        else:
            yield Finding(INVALID, Location(file, mistake.line), message)


def _missing(text: str, key: str, message: str) -> Finding:
    """It may be there under a name that is nearly the same."""
    above, _, last = key.rpartition(".")
    strange = [one for one in keys_of(text, above) if one not in _known_at(above)]
    near = difflib.get_close_matches(last, strange, n=1, cutoff=0.75)
    if not near:
        return Finding(INVALID, Location(CONFIG, line_of(text, key)), message, f"Write {in_line(last)} and its value.")
    found = f"{above}.{near[0]}" if above else near[0]
    place = Location(CONFIG, line_of(text, found))
    return Finding(INVALID, place, f"{message}; {in_line(found)} is nearly that", f"Rename it to {last}.")


def unknown_keys(reading: ProblemFiles) -> Iterator[Finding]:
    yield from _unknown_in_environment(reading)
    for key in reading.problem.unknown_keys:
        above, _, last = key.rpartition(".")
        siblings = keys_of(reading.config, above)
        free = [one for one in _known_at(above) if one not in siblings]
        near = difflib.get_close_matches(last, free, n=1, cutoff=0.75)
        place = Location(CONFIG, line_of(reading.config, key))
        message = f"the key {in_line(key)} means nothing"
        if near:
            yield Finding(UNKNOWN_KEY, place, f"{message}; was {near[0]} meant?", f"Rename it to {near[0]}.")
        else:
            yield Finding(UNKNOWN_KEY, place, message)


def _unknown_in_environment(reading: ProblemFiles) -> Iterator[Finding]:
    """Where it is the problem's own."""
    own = reading.folder / ENVIRONMENT
    for key in reading.environment.unknown_keys if reading.environment.file == own else ():
        place = Location(ENVIRONMENT, line_of(read_text(own), key))
        yield Finding(UNKNOWN_KEY, place, f"the key {in_line(key)} means nothing")


def _known_at(above: str) -> list[str]:
    inner: dict[str, type[FileModel]] = {
        "checkpoints": CheckpointConfig,
        "static_assets": AssetConfig,
        "markers": MarkerConfig,
    }
    model = inner.get(above.partition(".")[0], ProblemConfig) if above else ProblemConfig
    return list(model.model_fields)
