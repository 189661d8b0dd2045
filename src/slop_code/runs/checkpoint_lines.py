"""Facts of a checkpoint without its tests, and the lines of checkpoint_results.jsonl."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field, ValidationError

from slop_code._arguments import check_path
from slop_code._io import read_bounded, write_atomic
from slop_code.errors import ResultError
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy, Policy, passes
from slop_code.evaluation.report import Digests  # noqa: TC001  (pydantic reads it)
from slop_code.evaluation.result_files.stored_record import (
    SIZE_LIMIT,
    Duration,
    Stored,
    as_result_errors,
    first_mistake,
    storable,
)
from slop_code.evaluation.usage.resources import LimitKind
from slop_code.runs.scb.agent_facts import AgentFacts  # noqa: TC001  (pydantic reads it)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pydantic import BaseModel

    from slop_code.evaluation.report import CorrectnessResults

VerdictState = Literal["evaluated", "infrastructure_failure", "not_evaluated"]
RegressionKind = Literal["introduced", "repaired"]
MAX_WARNINGS = 100
MAX_SETUP_FAILURE_LENGTH = 300
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
    """More than 1 after infrastructure failures, or if it was starved."""

    digests: Digests | None = None
    evaluation_version: str = ""
    setup_failure: str | None = None
    """Why the submission's set-up failed, so that every test did: the command and the first line of its output."""

    limits: dict[LimitKind, int] = Field(default_factory=dict)
    """Tests that did not pass and reached this limit of the environment; limits that did not strike are left out."""

    timeouts: int = Field(default=0, ge=0)
    """Tests that a time limit ended."""

    repeated: int = Field(default=0, ge=0)
    """Tests that ran again, alone, since the machine had no processor or no memory for them or another."""

    warnings: list[str] = Field(default_factory=list)
    """Probable mistakes in the problem, the environment or the submission."""

    @classmethod
    def of(cls, results: CorrectnessResults) -> CheckpointFacts:
        """A result with pytest arguments, or of a part of the tests, is no verdict of a run."""
        arguments = results.provenance.pytest_args
        if arguments and (results.selects_none or not results.infrastructure_failure):
            reason = results.infrastructure_failure_reason
            return cls.no_verdict(reason or f"evaluated with pytest arguments: {' '.join(arguments)}")
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
            setup_failure=_short(results.setup_failure),
            limits=_struck_limits(results),
            timeouts=sum(test.timeout is not None for test in results.tests),
            repeated=sum(bool(test.attempts) for test in results.tests),
            warnings=results.warnings[:MAX_WARNINGS],
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

    def is_verdict_on(self, digest: str | None) -> bool:
        """Whether this is a verdict on the submission with this digest. If it is unknown, any verdict counts."""
        if self.state != "evaluated" or self.digests is None:
            return False
        return digest is None or self.digests.submission == digest

    def passes(self, policy: Policy) -> bool:
        """False wherever a pass is not proven."""
        if isinstance(policy, PassPolicy):
            return self.state == "evaluated" and self.passed.get(policy, False)
        return passes(policy, self.pass_counts, self.total_counts, self.state != "evaluated")


def _short(setup_failure: str | None) -> str | None:
    lines = [line.strip() for line in (setup_failure or "").split("\n") if line.strip()]
    return ": ".join(lines[:2])[:MAX_SETUP_FAILURE_LENGTH] or None


def _struck_limits(results: CorrectnessResults) -> dict[LimitKind, int]:
    failed = [test for test in results.tests if test.status != "passed"]
    counts = Counter(kind for test in failed for kind in {struck.kind for struck in test.limits})
    return {kind: counts[kind] for kind in get_args(LimitKind) if counts[kind]}


class Regressions(Stored):
    """Changes of the tests that ran at both checkpoints."""

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
    """Number among the problem's checkpoints, from 1."""

    regressions: Regressions | None = None
    """None for the first checkpoint with a verdict, and where there is no verdict."""

    evaluation: str | None = None
    """Path of its evaluation.json, relative to the folder of this file."""

    agent: AgentFacts | None = None
    """Cost, tokens and times of the agent's work, or None if not recorded."""

    not_looked_at_again: str | None = None
    """Why the result is an earlier one, which the last evaluation of the run has not looked at; None where it has."""

    @classmethod
    def with_facts(cls, facts: CheckpointFacts, **own: Any) -> CheckpointLine:
        """A line with facts that are valid already; text of `own` becomes storable."""
        return cls.model_construct(set(cls.model_fields), **vars(facts), **storable(own))

    @property
    def label(self) -> str:
        return "/".join(part for part in (self.run, self.problem, self.checkpoint) if part)

    @property
    def submission_digest(self) -> str | None:
        return self.digests.submission if self.digests else None


def passed_by_test(results: CorrectnessResults) -> PassedByTest:
    return {(test.file_path, test.id): test.status == "passed" for test in results.tests if not test.quarantined}


def regression_kind(earlier: bool | None, later: bool | None) -> RegressionKind | None:
    """None where nothing changed. A test that is missing at a checkpoint was added or removed with it."""
    if earlier is None or later is None or earlier == later:
        return None
    return "repaired" if later else "introduced"


def count_regressions(earlier: Mapping[tuple[str, str], bool], later: PassedByTest, *, since: str) -> Regressions:
    kinds = Counter(regression_kind(earlier.get(test), passed) for test, passed in later.items())
    return Regressions(since=since, introduced=kinds["introduced"], repaired=kinds["repaired"])


def json_line(record: BaseModel) -> str:
    """ASCII only: some Unicode characters end a line."""
    text = record.model_dump_json()
    return f"{text if text.isascii() else json.dumps(json.loads(text), separators=(',', ':'))}\n"


def write_lines(path: Path, lines: Iterable[CheckpointLine]) -> None:
    ordered = sorted(lines, key=lambda line: (line.run, line.problem, line.order, line.checkpoint))
    write_atomic(path, "".join(json_line(line) for line in ordered))


def read_lines(path: Path | str) -> list[CheckpointLine]:
    file = check_path("path", path, "the path of a checkpoint_results.jsonl")
    with as_result_errors(file, "evaluate the run again"):
        raw = read_bounded(file, SIZE_LIMIT).splitlines()
    lines = []
    for number, line in enumerate(raw, start=1):
        try:
            lines.append(CheckpointLine.model_validate_json(line, strict=True))
        except ValidationError as error:
            raise ResultError(f"{path}:{number}: {first_mistake(error)}; evaluate the run again") from error
    return lines
