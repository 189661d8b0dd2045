"""What is known of a checkpoint without its tests: small, whatever the number of tests."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from slop_code._io import TooLargeError, read_bounded, write_atomic
from slop_code.errors import ResultError
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy, Policy, passes
from slop_code.evaluation.report import SIZE_LIMIT, Digests, Duration, Stored, first_mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pydantic import BaseModel

    from slop_code.evaluation.report import CorrectnessResults

VerdictState = Literal["evaluated", "infrastructure_failure", "not_evaluated"]
RegressionKind = Literal["introduced", "repaired"]
WARNINGS_LIMIT = 100
PassedByTest = dict[tuple[str, str], bool]
"""Whether a test passed, by its file and id."""


class CheckpointFacts(Stored):
    state: VerdictState
    reason: str | None = None
    """Why there is no verdict."""

    passed: dict[PassPolicy, bool] = Field(default_factory=dict)
    pass_counts: dict[GroupType, int] = Field(default_factory=dict)
    total_counts: dict[GroupType, int] = Field(default_factory=dict)
    duration: Duration = 0.0
    phases: dict[str, Duration] = Field(default_factory=dict)
    attempts: int = Field(default=1, ge=0)
    """How often it was tried; more than 1 means that infrastructure failed before."""

    digests: Digests | None = None
    evaluation_version: str = ""
    warnings: list[str] = Field(default_factory=list)
    """What is probably not meant as it is: of the problem, the environment, or the submission."""

    @classmethod
    def of(cls, results: CorrectnessResults) -> CheckpointFacts:
        """pytest arguments make another evaluation than that of a run, and a part of the tests is no verdict."""
        if arguments := results.provenance.pytest_args:
            return cls.no_verdict(f"evaluated with pytest arguments: {' '.join(arguments)}")
        if results.deselected:
            return cls.no_verdict(f"evaluated without {results.deselected} of its tests")
        return cls(
            state="infrastructure_failure" if results.infrastructure_failure else "evaluated",
            reason=results.infrastructure_failure_reason,
            passed=results.passed,
            pass_counts=results.pass_counts,
            total_counts=results.total_counts,
            duration=results.duration,
            phases=results.phases,
            attempts=len(results.attempts) + 1,
            digests=results.provenance.digests,
            evaluation_version=results.provenance.evaluation_version,
            warnings=results.warnings[:WARNINGS_LIMIT],
        )

    @classmethod
    def no_verdict(cls, reason: str, *, state: VerdictState = "not_evaluated", attempts: int = 0) -> CheckpointFacts:
        """Facts of a checkpoint without a result."""
        return cls(
            state=state,
            reason=reason,
            passed=dict.fromkeys(PassPolicy, False),
            pass_counts=dict.fromkeys(GroupType, 0),
            total_counts=dict.fromkeys(GroupType, 0),
            attempts=attempts,
        )

    def passes(self, policy: Policy) -> bool:
        """What is not proven to be a pass is none."""
        if isinstance(policy, PassPolicy):
            return self.state == "evaluated" and self.passed.get(policy, False)
        return passes(policy, self.pass_counts, self.total_counts, self.state != "evaluated")


class Regressions(Stored):
    """Of the tests that ran at both checkpoints."""

    since: str
    """The nearest earlier checkpoint that has a verdict."""

    introduced: int = Field(ge=0)
    """Tests that passed there and do not pass here."""

    repaired: int = Field(ge=0)
    """Tests that did not pass there and pass here."""


class CheckpointLine(CheckpointFacts):
    """One line of checkpoint_results.jsonl."""

    run: str
    problem: str
    checkpoint: str
    order: int = Field(ge=1)
    """Its place among the problem's checkpoints, from 1."""

    regressions: Regressions | None = None
    """None for the first checkpoint with a verdict, and where there is no verdict."""

    evaluation: str | None = None
    """Where its evaluation.json lies, seen from the file that holds this line."""

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.run, self.problem, self.checkpoint) if part)


def passed_by_test(results: CorrectnessResults) -> PassedByTest:
    return {(test.file_path, test.id): test.status == "passed" for test in results.tests if not test.quarantined}


def regression_kind(earlier: bool | None, later: bool | None) -> RegressionKind | None:
    """What became of one test; None: nothing. One that is missing says nothing: it came or went with the checkpoint."""
    if earlier is None or later is None or earlier == later:
        return None
    return "repaired" if later else "introduced"


def compare(earlier: Mapping[tuple[str, str], bool], later: PassedByTest, *, since: str) -> Regressions:
    turns = Counter(regression_kind(earlier.get(test), passed) for test, passed in later.items())
    return Regressions(since=since, introduced=turns["introduced"], repaired=turns["repaired"])


def json_line(record: BaseModel) -> str:
    """ASCII alone, so that no other character is ever taken for the end of the line."""
    return json.dumps(record.model_dump(mode="json"), separators=(",", ":"), allow_nan=False) + "\n"


def write_lines(path: Path, lines: Iterable[CheckpointLine]) -> None:
    ordered = sorted(lines, key=lambda line: (line.run, line.problem, line.order, line.checkpoint))
    write_atomic(path, "".join(json_line(line) for line in ordered))


def read_lines(path: Path) -> list[CheckpointLine]:
    try:
        raw = read_bounded(path, SIZE_LIMIT).splitlines()
    except TooLargeError as error:
        raise ResultError(f"{path}: larger than {SIZE_LIMIT} bytes; evaluate the run again") from error
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror}") from error
    lines = []
    for number, line in enumerate(raw, start=1):
        try:
            lines.append(CheckpointLine.model_validate_json(line, strict=True))
        except ValidationError as error:
            raise ResultError(f"{path}:{number}: {first_mistake(error)}; evaluate the run again") from error
    return lines
