"""Specification of a checkpoint, for agents of other systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.errors import ConfigError

if TYPE_CHECKING:
    from slop_code.evaluation.config import ProblemConfig

SPECIFICATION_STEP = "a task needs the specification of every checkpoint: write it there"


def specification(problem: ProblemConfig, checkpoint: str) -> str:
    path = problem.path / f"{checkpoint}.md"
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        fact = (error.strerror if isinstance(error, OSError) else None) or "it is no text in UTF-8"
        raise ConfigError(f"{path}: the specification cannot be read: {fact}; {SPECIFICATION_STEP}") from error
    if not text:
        raise ConfigError(f"{path}: empty; {SPECIFICATION_STEP}")
    return text
