"""Files of the tests folder that a submission was shown, as recorded by the judge."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.evaluation.evidence import SHOWN
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig

SIZE_LIMIT = 64 << 20
WORDS = frozenset((
    "answer", "answers", "expect", "expectation", "expectations", "expected", "gold", "golden", "goldens",
    "output", "outputs", "solution", "solutions", "stderr", "stdout", "wanted",
))  # fmt: skip
ENDINGS = (".out", ".ans", ".exp", ".ok", ".want")


@dataclass(frozen=True, slots=True)
class PassedText:
    """The content of a file of the tests folder that a test passed to the program it started."""

    files: tuple[str, ...]
    """All files with this content."""

    way: str
    """`an argument`, `the environment` or `a file`."""

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
        record = json.loads(read_bounded(output / REPORTS_DIR / SHOWN, SIZE_LIMIT))
        return ShownFiles(
            shown=tuple(_texts(record["shown"])),
            handed=_by_test(record["handed"]),
            read=frozenset(_texts(record["read"])),
            copied=_by_test(record["copied"]),
            texts=tuple(
                PassedText(tuple(_texts(item["files"])), str(item["way"]), str(item["test"])) for item in record["told"]
            ),
        )
    except (OSError, TooLargeError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value]


def _by_test(value: Any) -> dict[str, str]:
    return {str(file): str(test) for file, test in value.items()}


def covering(checkpoints: Sequence[CheckpointConfig]) -> list[CheckpointConfig]:
    """The fewest checkpoints that run all tests: a checkpoint usually includes the tests of earlier ones."""
    chosen: list[CheckpointConfig] = []
    for checkpoint in reversed(checkpoints):
        chosen.insert(0, checkpoint)
        if checkpoint.include_prior_tests:
            break
    return chosen
