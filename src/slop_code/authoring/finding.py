"""What is wrong with a problem: the rule it breaks, how grave that is, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from slop_code.authoring.bench import Workbench


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
    """What is wrong, in general, as one sentence without a full stop."""

    mend: str
    """What to do about it, in general."""

    in_code: bool = True
    """Found at lines of Python, where a comment can let it pass."""


@dataclass(frozen=True, slots=True)
class Place:
    """In the problem's folder, which `file` is relative to."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    place: Place
    message: str
    """What is wrong here, in one line."""

    mend: str = ""
    """What to do here; empty: what the rule says."""

    severity: Severity | None = None
    """Where it is not that of the rule."""

    checkpoint: str | None = None
    test: str | None = None
    """As `file::id`, seen from the tests folder."""

    detail: str = ""
    """Lines that show it: a diff, a failure, a command that reproduces it."""

    @property
    def graveness(self) -> Severity:
        return self.severity or self.rule.severity

    @property
    def advice(self) -> str:
        return self.mend or self.rule.mend


def counted(findings: Iterable[Finding]) -> dict[Severity, int]:
    """The gravest first."""
    grave = [finding.graveness for finding in findings]
    return {severity: grave.count(severity) for severity in sorted(Severity, reverse=True)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step has found."""

    findings: tuple[Finding, ...] = ()
    summary: tuple[str, ...] = ()
    """Lines for a person: what was measured, whether or not anything is wrong."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs: what JSON can hold."""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    title: str
    """What it does, for `--help`."""

    rules: tuple[Rule, ...]
    run: Callable[[Workbench], Outcome]
    """An InfrastructureError: nothing can be said here and now; a UsageError: not before something is mended."""
