"""What a submission was shown of the tests folder, as the judge noted it, and what of it gives answers away."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.evaluation.evidence import SHOWN
from slop_code.evaluation.staging import ASSETS
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig

__all__ = ["ASSETS", "PassedText", "ShownFiles", "covering", "looks_expected", "read_showing"]

SIZE_LIMIT = 64 << 20
WORDS = frozenset((
    "answer", "answers", "expect", "expectation", "expectations", "expected", "gold", "golden", "goldens",
    "output", "outputs", "solution", "solutions", "stderr", "stdout", "wanted",
))  # fmt: skip
ENDINGS = (".out", ".ans", ".exp", ".ok", ".want")


@dataclass(frozen=True, slots=True)
class PassedText:
    """A text of the tests folder that a test gave to the program it started."""

    files: tuple[str, ...]
    """All that have this text."""

    way: str
    """`an argument`, `the environment` or `a file`."""

    test: str

    @property
    def expected(self) -> str | None:
        """None where an input has the same text: that one may have been meant."""
        return self.files[0] if self.files and all(map(looks_expected, self.files)) else None


@dataclass(frozen=True, slots=True)
class ShownFiles:
    """Paths are relative to the tests folder."""

    shown: tuple[str, ...]
    handed: Mapping[str, str]
    """Files and folders that were handed over, each with the first test that did it."""

    read: frozenset[str]
    copied: Mapping[str, str]
    told: tuple[PassedText, ...] = ()

    def handed_with(self, file: str) -> str | None:
        """Itself, else the innermost folder that brought it along."""
        path = PurePosixPath(file)
        return next((str(one) for one in (path, *path.parents) if str(one) in self.handed), None)


def looks_expected(file: str) -> bool:
    """By its name, or that of a folder it lies in: `expected/a.txt`, `a.out`, `a_expected_output.json`."""
    words = {word for word in re.split(r"[^a-z]+", file.lower()) if word}
    return bool(words & WORDS) or file.lower().endswith(ENDINGS)


def read_showing(output: Path) -> ShownFiles | None:
    """None where the judge left none that can be read."""
    try:
        found = json.loads(read_bounded(output / REPORTS_DIR / SHOWN, SIZE_LIMIT))
        return ShownFiles(
            shown=tuple(_texts(found["shown"])),
            handed=_by_test(found["handed"]),
            read=frozenset(_texts(found["read"])),
            copied=_by_test(found["copied"]),
            told=tuple(
                PassedText(tuple(_texts(one["files"])), str(one["way"]), str(one["test"])) for one in found["told"]
            ),
        )
    except (OSError, TooLargeError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value]


def _by_test(value: Any) -> dict[str, str]:
    return {str(file): str(test) for file, test in value.items()}


def covering(checkpoints: Sequence[CheckpointConfig]) -> list[CheckpointConfig]:
    """As few as have all the tests between them: a later one runs those of the earlier ones too, as a rule."""
    chosen: list[CheckpointConfig] = []
    for checkpoint in reversed(checkpoints):
        chosen.insert(0, checkpoint)
        if checkpoint.include_prior_tests:
            break
    return chosen
