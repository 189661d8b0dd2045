"""Records of `problems check`: rules, findings, and the outcome of a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from slop_code.authoring.check.workbench import Workbench


class Severity(IntEnum):
    NOTE = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    severity: Severity
    title: str
    """What is wrong in general, as a sentence without a full stop."""

    fix: str
    """How to fix it in general."""

    in_code: bool = True
    """Its findings have lines of Python, where a comment can allow them."""

    @classmethod
    def error(cls, id: str, title: str, fix: str, *, in_code: bool = True) -> Rule:
        return cls(id, Severity.ERROR, title, fix, in_code)

    @classmethod
    def warning(cls, id: str, title: str, fix: str, *, in_code: bool = True) -> Rule:
        return cls(id, Severity.WARNING, title, fix, in_code)

    @classmethod
    def note(cls, id: str, title: str, fix: str, *, in_code: bool = True) -> Rule:
        return cls(id, Severity.NOTE, title, fix, in_code)


@dataclass(frozen=True, slots=True)
class Location:
    file: str
    """Relative to the problem's folder."""

    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    location: Location
    message: str
    """What is wrong here, in a single line."""

    own_fix: str = ""
    """Replaces the rule's fix, unless empty."""

    own_severity: Severity | None = None
    """Replaces the rule's severity, unless None."""

    checkpoint: str | None = None
    test: str | None = None
    """`file::id`, relative to the tests folder."""

    detail: str = ""
    """Lines that show it: a diff, a failure, a command that reproduces it."""

    shared_cause: str = ""
    """Follows the number of tests where findings with the same text are shown together: `do not pass ...`."""

    measured: str = ""
    """The part of the message that the quarantine records as the reason."""

    @property
    def severity(self) -> Severity:
        return self.own_severity or self.rule.severity

    @property
    def fix(self) -> str:
        return self.own_fix or self.rule.fix


def count_by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    """Errors come first."""
    severities = [finding.severity for finding in findings]
    return {severity: severities.count(severity) for severity in sorted(Severity, reverse=True)}


@dataclass(frozen=True, slots=True)
class StepOutcome:
    findings: tuple[Finding, ...] = ()
    summary: tuple[str, ...] = ()
    """Lines for a person: what was measured, with or without findings."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """The measurements for programs, as JSON values."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    title: str
    """What the step checks, as a phrase."""

    rules: tuple[Rule, ...]
    run: Callable[[Workbench], StepOutcome]
    """Raises InfrastructureError where this machine prevents it, and UsageError where the problem itself does."""
