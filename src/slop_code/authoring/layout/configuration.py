"""config.yaml: what is wrong in it, and keys that mean nothing."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from slop_code.authoring.finding import Finding, Place, Rule, Severity
from slop_code.authoring.fixes import KeyRenamed
from slop_code.authoring.layout.reading import CONFIG, config_text, shown
from slop_code.authoring.yaml_text import line_of
from slop_code.evaluation.config import AssetConfig, CheckpointConfig, MarkerConfig, ProblemConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code._config import FileModel
    from slop_code.authoring.layout.reading import Reading
    from slop_code.errors import ConfigError

INVALID = Rule(
    "config-invalid",
    Severity.ERROR,
    "config.yaml cannot be used as it stands",
    "Write the value that is expected there.",
)
UNKNOWN_KEY = Rule(
    "config-unknown-key",
    Severity.WARNING,
    "A key in config.yaml means nothing",
    "Take the key out, or write the one that was meant.",
)
RULES = (INVALID, UNKNOWN_KEY)

_MARK = re.compile(r":(\d+):\d+: ")
_KEY = re.compile(r": ([^\s:]+): found ")
_UNKNOWN = re.compile(r": unknown key (.+) \(ignored\)\Z", re.DOTALL)


def refusals(folder: Path, error: ConfigError) -> Iterator[Finding]:
    """One for each mistake of a file that does not load."""
    text = config_text(folder)
    prefix = str(folder / CONFIG)
    for mistake in str(error).splitlines():
        rest = mistake.removeprefix(prefix)
        if mark := _MARK.match(rest):
            line: int | None = int(mark.group(1))
        else:
            line = line_of(text, key.group(1)) if (key := _KEY.match(rest)) else None
        message = shown(rest.lstrip(": ") or mistake)
        yield Finding(INVALID, Place(CONFIG, line), message)


def unknown_keys(reading: Reading) -> Iterator[Finding]:
    for warning in reading.problem.warnings:
        if not (match := _UNKNOWN.search(warning)):
            continue
        key = match.group(1)
        above, _, last = key.rpartition(".")
        near = difflib.get_close_matches(last, _known_at(above), n=1, cutoff=0.75)
        place = Place(CONFIG, line_of(reading.config, key))
        message = f"the key {shown(key)} means nothing"
        if near:
            fix = KeyRenamed(CONFIG, key, near[0])
            yield Finding(UNKNOWN_KEY, place, f"{message}; was {near[0]} meant?", f"Rename it to {near[0]}.", fix=fix)
        else:
            yield Finding(UNKNOWN_KEY, place, message)


def _known_at(above: str) -> list[str]:
    inner: dict[str, type[FileModel]] = {
        "checkpoints": CheckpointConfig,
        "static_assets": AssetConfig,
        "markers": MarkerConfig,
    }
    model = inner.get(above.partition(".")[0], ProblemConfig) if above else ProblemConfig
    return list(model.model_fields)
