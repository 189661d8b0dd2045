"""Requests and answers of the reward service, as JSON."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator

from slop_code.errors import UsageError
from slop_code.evaluation.reward_values import rewards_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slop_code.bridges.service.queue_records import EvaluationOutcome
    from slop_code.evaluation.evaluator.submission_source import SubmissionSource
    from slop_code.evaluation.report import CorrectnessResults, TestResult

MAX_FAILURES = 1000
MAX_MESSAGE_LENGTH = 4000
"""Characters of a failure's message in an answer; the rest is left out."""

ServiceState = Literal["evaluated", "partial", "infrastructure_failure", "rejected"]
"""Only `evaluated` is a verdict. `partial`: a part of the tests was asked for."""

Fault = Literal["request", "submission"]
EvaluationSource = Literal["evaluated", "cached"]

STATUS_CODES: dict[ServiceState, int] = {
    "evaluated": 200,
    "partial": 200,
    "infrastructure_failure": 503,
    "rejected": 422,
}


Text = Annotated[str, Field(max_length=4096)]
"""A text that errors repeat."""

MAX_KEYS = 32
"""Of an object with named fields. Each unknown one would be a mistake to report, which takes memory."""


class RequestPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MAX_KEYS:
            raise ValueError(f"more than {MAX_KEYS} keys")
        return data


class EncodedFile(RequestPart):
    base64: str


def _check_files(data: Any) -> Any:
    """Only the first mistake is reported: there may be a million."""
    for name, content in data.items() if isinstance(data, dict) else ():
        if not isinstance(content, str) and not (isinstance(content, dict) and [*content] == ["base64"]):
            raise ValueError(f'{name[:100]!r}: expected a text or {{"base64": "..."}}')
    return data


class SubmissionPart(RequestPart):
    """The submission's files, in one of three ways."""

    files: Annotated[dict[str, str | EncodedFile] | None, BeforeValidator(_check_files)] = Field(
        None, description="contents by their names"
    )
    path: Text | None = Field(None, description="a folder of the server, below one that it allows")
    tar: str | None = Field(None, description="a tar archive, plain or compressed with gzip, in base64")

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        given = [name for name, value in self if value is not None]
        if len(given) != 1:
            raise ValueError(f"give one of files, path and tar, found {' and '.join(given) or 'none'}")
        return self

    def content(self) -> SubmissionSource:
        """The archive or the mapping; a path is not resolved here."""
        if self.tar is not None:
            return _decoded("tar", self.tar)
        contents = (self.files or {}).items()
        return {name: text if isinstance(text, str) else _decoded(name, text.base64) for name, text in contents}


def _decoded(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"submission: {name!r}: not base64: {error}; send standard base64, with padding") from error


class EvaluateRequest(RequestPart):
    """A request to evaluate a submission."""

    problem: Text = Field(description="name of a problem of the server")
    checkpoint: int | Text = Field(description="number or name")
    submission: SubmissionPart
    environment: Text | None = Field(None, description="one of the server's environments; none: its default")
    policy: Text = Field("all-cases", description="the policy that `reward` answers for: a name or an expression")
    tests: Annotated[list[Text], FailFast()] = Field(
        [], max_length=1000, description="only these tests: node ids, or -k, -m and --group with a value; no verdict"
    )
    durable: bool = Field(False, description="answer at once, and keep the job until its result is fetched")

    def repeated_fields(self) -> dict[str, str]:
        """Those that an answer repeats. They are small: who waits for an answer keeps these, not the request."""
        return {"problem": self.problem, "checkpoint": str(self.checkpoint), "policy": self.policy}


class BatchRequest(RequestPart):
    requests: Annotated[list[EvaluateRequest], FailFast()] = Field(min_length=1, max_length=100_000)


class FailureAnswer(BaseModel):
    id: str
    file: str
    group: str
    status: str
    message: str | None

    @classmethod
    def of(cls, test: TestResult) -> FailureAnswer:
        message = test.failure_message and test.failure_message[:MAX_MESSAGE_LENGTH]
        return cls(id=test.id, file=test.file_path, group=test.group_type, status=test.status, message=message)


class EvaluationAnswer(BaseModel):
    """The answer to a request. Without a verdict, `reward` is null: an infrastructure failure is no reward of 0."""

    state: ServiceState
    reason: str | None = Field(None, description="why there is no verdict")
    problem: str
    checkpoint: str
    policy: str
    reward: float | None = Field(None, description="1 or 0, by the policy")
    rewards: dict[str, float] = Field({}, description="strict, isolated and core, and the pass rate of each group")
    passed: dict[str, bool] = Field({}, description="by named policy")
    pass_counts: dict[str, int] = {}
    total_counts: dict[str, int] = {}
    failures: list[FailureAnswer] = Field([], description=f"the first {MAX_FAILURES} tests that did not pass")
    fault: Fault | None = Field(None, description="of a rejected request: what is wrong, the request or the submission")
    source: EvaluationSource = "evaluated"
    attempts: int = 1
    duration: float = 0.0
    isolation: dict[str, Any] = {}
    provenance: dict[str, Any] = {}
    warnings: list[str] = []

    @classmethod
    def of(cls, repeated: Mapping[str, str], outcome: EvaluationOutcome) -> EvaluationAnswer:
        """`repeated` has the `repeated_fields` of the request."""
        results = outcome.results
        if results is None:
            fault = outcome.fault if outcome.state == "rejected" else None
            return cls(state=outcome.state, reason=outcome.reason, fault=fault, attempts=outcome.attempts, **repeated)
        return cls(
            state=outcome.state,
            reason=outcome.reason,
            source=outcome.source,
            **{**repeated, "checkpoint": results.checkpoint_name},
            **(reward_fields(results, repeated["policy"]) if outcome.state in ("evaluated", "partial") else {}),
            attempts=len(results.attempts) + 1,
            duration=results.duration,
            isolation=results.isolation,
            provenance=results.provenance.model_dump(mode="json"),
            warnings=results.warnings,
        )


def reward_fields(results: CorrectnessResults, policy: str) -> dict[str, Any]:
    failed = [test for test in results.tests if test.status != "passed" and not test.quarantined]
    return {
        "reward": None if results.partial else float(results.passes(policy)),
        "rewards": rewards_of(results),
        "passed": {} if results.partial else results.passed,
        "pass_counts": results.pass_counts,
        "total_counts": results.total_counts,
        "failures": [FailureAnswer.of(test) for test in failed[:MAX_FAILURES]],
    }


class BatchAnswer(EvaluationAnswer):
    index: int = Field(description="position of its request, from 0")


class JobAnswer(BaseModel):
    """A durable job."""

    id: str
    state: Literal["queued", "running", "finished"]
    result: EvaluationAnswer | None = None


class ProblemAnswer(BaseModel):
    name: str
    checkpoints: list[str]


class ErrorAnswer(BaseModel):
    error: str
    fault: Fault | None = Field(None, description="with status 422: what is wrong, the request or the submission")
