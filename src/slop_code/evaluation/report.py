"""Results of an evaluation, and `evaluation.json`, the file that stores them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    computed_field,
    model_validator,
)
from pydantic_core import PydanticCustomError

from slop_code._arguments import check_path
from slop_code._io import write_atomic
from slop_code.errors import UsageError
from slop_code.evaluation.groups import QUARANTINED, GroupType
from slop_code.evaluation.policy import PassPolicy, Policy, as_policy, passes
from slop_code.evaluation.pytest_arguments import select_part
from slop_code.evaluation.reports.raw_test import Status  # noqa: TC001  (pydantic reads it)
from slop_code.evaluation.result_files.stored_record import (
    OTHER_VERSION,
    Duration,
    Stored,
    StoredWhole,
    check_storable,
    edited,
    load_stored,
)
from slop_code.evaluation.usage.resources import StruckLimit, TestTimeout, Usage  # noqa: TC001  (pydantic reads them)

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic.functional_validators import ModelWrapValidatorHandler

DERIVED = ("pass_counts", "total_counts", "infrastructure_failure", "passed")
"""Fields that are computed from the other fields."""
SKIP_DERIVED_CHECK: dict[str, Any] = {}
"""Validation context: derived fields in the input are not compared with the computed values."""
SCHEMA_VERSION = 1
NO_REASON = "no reason was given"
RESULT_FILE = "evaluation.json"


class TestAttempt(Stored):
    """An earlier attempt of a test, which is not believed: it, or another, had no processor or no memory."""

    __test__: ClassVar[bool] = False

    status: Status
    duration_ms: Duration
    failure_message: str | None
    usage: Usage | None
    timeout: TestTimeout | None
    limits: list[StruckLimit] = Field(default_factory=list)

    @classmethod
    def of(cls, test: TestResult) -> TestAttempt:
        return cls(**{name: getattr(test, name) for name in cls.model_fields})


class RefusedPath(Stored):
    """A path of the tests folder that a call named and that was not handed over to the submission."""

    path: str
    """Relative to the tests folder."""
    reason: str


class TestResult(Stored):
    __test__: ClassVar[bool] = False

    id: str
    """The node id without its file part."""
    checkpoint: str
    """The checkpoint that the test was written for, by the name of its file."""
    group_type: GroupType
    status: Status
    duration_ms: Duration
    file_path: str
    markers: list[str]
    failure_message: str | None = None
    calls: list[str] = Field(default_factory=list)
    """The first commands that a test which did not pass started, shell-quoted."""
    output: str | None = None
    """The captured output of a test that did not pass."""
    usage: Usage | None = None
    """What the submission and the machine used while the test ran."""
    limits: list[StruckLimit] = Field(default_factory=list)
    """Limits of the environment that the submission reached."""
    timeout: TestTimeout | None = None
    """The time limit that ended the test."""
    attempts: list[TestAttempt] = Field(default_factory=list)
    """Earlier attempts, which are not believed."""
    refused_paths: list[RefusedPath] = Field(default_factory=list)

    @property
    def nodeid(self) -> str:
        return f"{self.file_path}::{self.id}"

    @property
    def quarantined(self) -> bool:
        """A quarantined test runs and is reported, but does not count in any policy."""
        return QUARANTINED in self.markers


class Digests(StoredWhole):
    """A digest is None if the evaluation failed before it was computed, or if there is no image."""

    submission: str | None = None
    tests: str | None = None
    config: str = ""
    environment: str = ""
    image: str | None = None
    python: str | None = None
    """No digest, but the version of the submission's Python, or None if it is in another language."""


class Provenance(StoredWhole):
    digests: Digests = Digests.model_construct()  # builds no validator while modules are loaded
    evaluation_version: str = ""
    """Results of two versions may differ for the same submission."""
    test_dependencies: dict[str, str] = Field(default_factory=dict)
    test_lock: str | None = None
    """Digest of the problem's lock of its test_dependencies, or None if there is none."""
    python: str = ""
    platform: str = ""
    slop_code: str = ""
    command: list[str] = Field(default_factory=list)
    pytest_args: list[str] = Field(default_factory=list)
    checkpoints: list[str] = Field(default_factory=list)
    """All checkpoints of the problem, in order; the name of a test file contains that of its checkpoint."""
    groups: dict[str, GroupType] = Field(default_factory=dict)
    """Groups by the names of the problem's own markers."""


class Attempt(Stored):
    """An infrastructure failure that was retried, or an evaluation that was starved."""

    reason: str
    duration: Duration


class CorrectnessResults(StoredWhole):
    ADDED = frozenset({"missing_entry_file"})

    schema_version: Literal[1] = 1
    problem_name: str
    checkpoint_name: str
    duration: Duration
    """Seconds of the whole evaluation."""
    tests: list[TestResult]
    pytest_exit_code: int
    infrastructure_failure_reason: str | None = None
    setup_failure: str | None = None
    """Why the submission cannot be set up, by its own fault. This is a verdict: every test fails with this reason."""
    missing_entry_file: str | None = None
    """The file that starts the submission, where the submission does not have it."""
    isolation: Annotated[dict[str, Any], AfterValidator(check_storable)] = Field(default_factory=dict)
    """Isolation that was in effect."""
    phases: dict[str, Duration] = Field(default_factory=dict)
    """Seconds of prepare, setup, tests and parse."""
    provenance: Provenance = Provenance.model_construct()
    deselected: int = Field(default=0, ge=0)
    """Number of tests that pytest arguments left out; unless it is 0, there is no verdict and no policy passes."""
    evidence: str = ""
    """The report that the tests were read from."""
    warnings: list[str] = Field(default_factory=list)
    attempts: list[Attempt] = Field(default_factory=list)
    """Earlier attempts, each an infrastructure failure."""

    _policy: Policy = PrivateAttr(default=PassPolicy.ALL_CASES)
    _permanent_failure: bool = PrivateAttr(default=False)

    def with_policy(self, policy: Policy | str) -> Self:
        """The same result, for which `passes()` answers by this policy. The policy is not stored."""
        copy = self.model_copy()
        copy._policy = as_policy(policy)
        return copy

    def with_failure_kind(self, *, permanent: bool) -> Self:
        """The same result, whose infrastructure failure another attempt cannot change. That is not stored."""
        copy = self.model_copy()
        copy._permanent_failure = permanent
        return copy

    @property
    def selects_none(self) -> bool:
        """Pytest arguments left out every test, which no other attempt changes. A test without a result is an error."""
        return self.deselected > 0 and not self.tests

    @property
    def permanent_failure(self) -> bool:
        return self._permanent_failure and self.infrastructure_failure

    def __eq__(self, other: object) -> bool:
        """Compares all stored fields; the policy is not stored."""
        return isinstance(other, CorrectnessResults) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def infrastructure_failure(self) -> bool:
        return self.infrastructure_failure_reason is not None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def pass_counts(self) -> dict[GroupType, int]:
        return _counts(test.group_type for test in self._counted_tests if test.status == "passed")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total_counts(self) -> dict[GroupType, int]:
        return _counts(test.group_type for test in self._counted_tests)

    @property
    def partial(self) -> bool:
        """Whether only a part of the tests was asked for: there is no verdict, even if that part is all of them."""
        return self.deselected > 0 or select_part(self.provenance.pytest_args)

    @property
    def _counted_tests(self) -> list[TestResult]:
        return [test for test in self.tests if not test.quarantined]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def passed(self) -> dict[str, bool]:
        good, total, no_verdict = self.pass_counts, self.total_counts, self._has_no_verdict
        return {policy.value: passes(policy, good, total, no_verdict) for policy in PassPolicy}

    def passes(self, policy: Policy | str | None = None) -> bool:
        """Whether this policy passes. The default is the policy of `with_policy`, else `all-cases`."""
        chosen = self._policy if policy is None else as_policy(policy)
        return passes(chosen, self.pass_counts, self.total_counts, self._has_no_verdict)

    @property
    def _has_no_verdict(self) -> bool:
        return self.infrastructure_failure or self.partial

    @model_validator(mode="wrap")
    @classmethod
    def _check_derived(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Derived fields are optional for a program and required in a file; they must equal the computed values."""
        if not isinstance(data, Mapping):
            return handler(data)
        if isinstance(version := data.get("schema_version"), int) and version != SCHEMA_VERSION:
            text = "schema_version is {version}, and this slop-code reads {known} only"
            raise PydanticCustomError(OTHER_VERSION, text, {"version": version, "known": SCHEMA_VERSION})
        fields = {key: value for key, value in data.items() if key not in DERIVED}
        if info.mode != "json" and data.get("infrastructure_failure") is True:
            fields["infrastructure_failure_reason"] = fields.get("infrastructure_failure_reason") or NO_REASON
        result = handler(fields)
        for name in () if info.context is SKIP_DERIVED_CHECK else DERIVED:
            derived = getattr(result, name)
            if name not in data:
                if info.mode == "json":
                    raise edited(f"{name} is missing")
                continue
            given = data[name] if info.mode == "json" else _with_zeros(data[name], derived)
            if _json(given) != _json(derived):
                raise edited(f"{name} is not what follows from the rest: {_json(given)} for {_json(derived)}")
        return result

    @model_validator(mode="after")
    def _check_duplicates(self) -> Self:
        seen = Counter((test.file_path, test.id) for test in self.tests)
        if duplicates := [key for key, count in seen.items() if count > 1]:
            raise edited(f"tests holds {'::'.join(duplicates[0])} twice")
        return self

    def save(self, path: Path | str) -> None:
        file = check_path("path", path, "the path of a file")
        try:
            self.write(file)
        except OSError as error:
            step = "give the path of a file that can be written"
            raise UsageError(f"{file}: cannot be written: {error.strerror}; {step}") from error

    def write(self, file: Path) -> None:
        """As `save`, for callers that handle OSError themselves."""
        write_atomic(file, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> CorrectnessResults:
        file = check_path("path", path, "the path of an evaluation.json")
        return load_stored(cls, file, "evaluate the snapshot again")


def _counts(groups: Iterable[GroupType]) -> dict[GroupType, int]:
    counted = Counter(groups)
    return {group: counted[group] for group in GroupType}


def _with_zeros(given: Any, derived: Any) -> Any:
    """A program may leave out groups without tests from the counts."""
    if not isinstance(given, Mapping) or not isinstance(derived, dict):
        return given
    return {**{key: value for key, value in derived.items() if value == 0}, **given}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def json_schema() -> dict[str, Any]:
    schema = CorrectnessResults.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "evaluation.json"}
