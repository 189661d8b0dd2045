"""Records of an evaluator: requests and outcomes."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._arguments import check_optional_folder, check_type
from slop_code.evaluation.command import check_pytest_args
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.evaluator.submission_source import SubmissionSource, check_source
from slop_code.evaluation.policy import PassPolicy, Policy, as_policy
from slop_code.execution.environment import EnvironmentSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.errors import SlopCodeError
    from slop_code.evaluation.report import CorrectnessResults


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatorRequest:
    """An evaluation of a submission. Its fields are the parameters of `evaluate`."""

    submission: SubmissionSource = field(repr=False)
    """A folder, a tar archive (bytes, a path, or a file that is open in binary mode), or contents by their names."""

    problem: str | Path | ProblemConfig
    checkpoint: int | str
    environment: str | Path | EnvironmentSpec | None = None
    """None stands for that of the evaluator, else the problem's own, else `local`."""

    _: KW_ONLY
    output: str | Path | None = None
    replace: bool = False
    policy: Policy | str = PassPolicy.ALL_CASES
    pytest_args: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "submission", check_source(self.submission))
        check_type("problem", self.problem, (str, Path, ProblemConfig), "a path, a name or a ProblemConfig")
        check_type("checkpoint", self.checkpoint, (int, str), "the number or the name of a checkpoint")
        environments = (str, Path, EnvironmentSpec, type(None))
        check_type("environment", self.environment, environments, "a name, a path or an EnvironmentSpec")
        object.__setattr__(self, "output", check_optional_folder("output", self.output))
        check_type("replace", self.replace, (bool,), "True or False")
        object.__setattr__(self, "pytest_args", check_pytest_args(self.pytest_args))
        object.__setattr__(self, "policy", as_policy(self.policy))


def request_of(function: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> EvaluatorRequest:
    """The request for a call of `function`, which the TypeError of a call with wrong parameters names."""
    try:
        inspect.signature(EvaluatorRequest).bind(*arguments, **options)
    except TypeError as error:
        raise TypeError(f"{function}(): {error}") from None
    return EvaluatorRequest(*arguments, **options)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatorOutcome:
    """The end of an evaluation: a result, or the error that `evaluate` would have raised."""

    index: int
    """Position of the request among all requests, from 0."""

    request: EvaluatorRequest
    results: CorrectnessResults | None = None
    error: SlopCodeError | None = None

    def passes(self, policy: Policy | str | None = None) -> bool:
        """Without a result, no policy is passed; without a policy, that of the request counts."""
        return self.results is not None and self.results.passes(policy)
