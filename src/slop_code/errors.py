"""The one tree of errors a caller can meet; a message gives place, fact and next step."""

from __future__ import annotations


class SlopCodeError(Exception):
    """Base of every error that is shown to a user without a traceback."""


class UsageError(SlopCodeError):
    """What was asked for does not exist or does not fit together."""


class ConfigError(UsageError):
    """A problem or an environment file is wrong; one line per mistake."""


class SubmissionError(UsageError):
    """The submission is refused as it stands (not there, not readable, too deep)."""


class ResultError(UsageError):
    """A stored result is damaged or of another format."""


class InfrastructureError(SlopCodeError):
    """Nothing can be said about the submission: the evaluation itself could not run."""

    def __init__(self, reason: str, exit_code: int | None = None) -> None:
        super().__init__(reason)
        self.exit_code = exit_code
        """pytest's, where it came so far."""
