"""The exception tree; a message gives the location, the fact and the next step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class SlopCodeError(Exception):
    """Base of every error that is shown to a user without a traceback."""


class UsageError(SlopCodeError):
    """What was asked for does not exist or does not fit together."""


@dataclass(frozen=True, slots=True)
class ConfigMistake:
    """One mistake in a file that somebody wrote: at a key, or of the file as a whole."""

    path: Path
    message: str
    """Without the path and the line."""

    line: int | None = None
    column: int | None = None
    key: str | None = None
    """With its parents: `checkpoints.checkpoint_1.order`."""

    found: str | None = None
    """The value, or None if the key is missing or the mistake is not at a key."""

    expected: str | None = None
    misspelt: str | None = None
    """The unknown key that was probably meant for this one, where it is missing."""

    def __str__(self) -> str:
        position = "".join(f":{number}" for number in (self.line, self.column) if number)
        return f"{self.path}{position}: {self.message}"


class ConfigError(UsageError):
    """A problem or an environment file is wrong; a line per mistake."""

    def __init__(self, message: str = "", mistakes: Sequence[ConfigMistake] = ()) -> None:
        super().__init__(message or "\n".join(dict.fromkeys(map(str, mistakes))))
        self.mistakes = tuple(mistakes)
        """Of a YAML file, or of the quarantine; empty for any other error."""


class SubmissionError(UsageError):
    """The submission is no folder, or one that slop-code may not read."""


class SubmissionSetupError(SlopCodeError):
    """The submission cannot be set up, and that is proven to be its own fault: a verdict, not a failure of ours."""


class ResultError(UsageError):
    """A stored result is damaged or of another format."""

    def __init__(self, message: str, fact: str = "") -> None:
        super().__init__(message)
        self.fact = fact
        """The message without the path and the next step, where a single file is wrong."""


class InfrastructureError(SlopCodeError):
    """Nothing can be said about the submission: the evaluation itself could not run."""

    def __init__(self, reason: str, exit_code: int | None = None) -> None:
        super().__init__(reason)
        self.exit_code = exit_code
        """pytest's, where it came so far."""


class SlowSetupError(InfrastructureError):
    """Set-up exceeded a time limit, which is the submission's fault unless the machine was busy."""

    def __init__(self, fact: str) -> None:
        super().__init__(f"set-up: {fact}")
        self.fact = fact
