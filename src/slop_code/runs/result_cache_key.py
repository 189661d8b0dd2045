"""Result cache key: the digests of everything a result depends on."""

from __future__ import annotations

import contextlib
import functools
import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code._io import digest_of, unreadable_text
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.problem.dependency_lock import read_test_lock
from slop_code.evaluation.problem.problem_contents import Contents, checkpoint_inputs
from slop_code.evaluation.report import Digests
from slop_code.evaluation.result_files.staleness import OTHER_RULES, changed_input, evaluation_version
from slop_code.execution.docker.engine import Engine
from slop_code.execution.python_version import host_python
from slop_code.execution.submission import open_submission, tree_digest
from slop_code.runs.input_signatures import InputSignatures

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.runs.checkpoint_lines import CheckpointFacts
    from slop_code.runs.jobs.job_records import Submission

NO_RESULT = "no result yet"


def result_cache_key(spec: EnvironmentSpec, digests: Digests, version: str | None = None) -> str | None:
    """None where the image is not known yet.

    An image decides on the Python of judge and submission. Without one, both are part of the key, as far as known.
    """
    if spec.type == "docker":
        interpreter = digests.image
    else:
        interpreter = f"{platform.machine()} {platform.python_implementation()} {platform.python_version()}"
    if interpreter is None:
        return None
    inputs = digests.model_dump(mode="json", exclude={"image", "python"} if spec.type == "docker" else {"image"})
    return digest_of([inputs, interpreter, evaluation_version() if version is None else version])


def key_of_result(spec: EnvironmentSpec, facts: CheckpointFacts, *, remote: bool) -> str | None:
    """The key of the inputs that a result names itself, or None if it has no verdict.

    It is also None for a docker environment if the result names no digest of the image.
    With `remote`, it is the key that a plan for a remote executor has, without the version of the submission's Python.
    """
    if facts.state != "evaluated" or facts.digests is None:
        return None
    digests = facts.digests.model_copy(update={"python": None}) if remote else facts.digests
    return result_cache_key(spec, digests, facts.evaluation_version)


def duration_key(submission: Submission) -> str:
    return digest_of([submission.problem.name, submission.checkpoint.name, submission.environment.name])


def stale_reason(facts: CheckpointFacts | None, expected: Digests, version: str) -> str | None:
    """Why a stored result is not up to date; None where it is."""
    if facts is None:
        return NO_RESULT
    if facts.state == "infrastructure_failure":
        return "an infrastructure failure last time"
    if facts.state == "not_evaluated" or facts.digests is None:
        return facts.reason or NO_RESULT
    if (reason := changed_input(facts.digests, expected)) is not None:
        return reason
    return None if facts.evaluation_version == version else OTHER_RULES


@dataclass(frozen=True)
class EnvironmentDigests:
    """What the digests of a result have of its environment."""

    spec: EnvironmentSpec
    key: str
    """Its whole content."""

    digest: str
    versions: dict[str | None, str | None] = field(default_factory=dict)
    """By the Python that a checkpoint requires: the version of the submission's Python."""

    @functools.cached_property
    def image(self) -> str | None:
        return local_image_id(self.spec)

    def python_version(self, required: str | None) -> str | None:
        if required not in self.versions:
            self.versions[required] = host_python_version(self.spec.requiring(required))
        return self.versions[required]


@dataclass(slots=True)
class ExpectedDigests:
    """Digests of the inputs as they are now. Inputs that many submissions share are read once."""

    remote: bool = False
    """The submissions are evaluated elsewhere: the version of their Python is not known, and none is needed here."""

    shared: dict[tuple[Path, str, str], Digests | UsageError] = field(default_factory=dict)
    problems: dict[Path, dict[str, list[str]]] = field(default_factory=dict)
    """Digests of tests and configuration, by checkpoint."""

    environments: dict[str, EnvironmentDigests] = field(default_factory=dict)
    """By the content of the environment."""

    keys: dict[int, tuple[EnvironmentSpec, str]] = field(default_factory=dict)
    """The content, by the identity of the object, which is kept so that no other one can have it."""

    def digests(self, submission: Submission, known: InputSignatures | None = None) -> Digests:
        """`known` has digests of earlier evaluations, which are still right for folders that did not change."""
        problem, checkpoint = submission.problem, submission.checkpoint
        environment, known = self._environment(submission.environment), known or InputSignatures(None)
        key = (problem.path, checkpoint.name, environment.key)
        if key not in self.shared:
            self.shared[key] = self._shared(problem, checkpoint, environment, known)
        digests = self.shared[key]
        if isinstance(digests, UsageError):
            raise digests
        path = submission.path
        digest = known.digest("", [path], lambda: tree_digest(open_submission(path)), links=True)
        return digests.model_copy(update={"submission": digest})

    def _environment(self, spec: EnvironmentSpec) -> EnvironmentDigests:
        if id(spec) not in self.keys:
            self.keys[id(spec)] = (spec, spec.model_dump_json())
        key = self.keys[id(spec)][1]
        if key not in self.environments:
            self.environments[key] = EnvironmentDigests(spec, key, spec.digest())
        return self.environments[key]

    def _shared(
        self,
        problem: ProblemConfig,
        checkpoint: CheckpointConfig,
        environment: EnvironmentDigests,
        known: InputSignatures,
    ) -> Digests | UsageError:
        try:
            if problem.path not in self.problems:
                self.problems[problem.path] = _problem_digests(problem, known)
            tests, config = self.problems[problem.path].get(checkpoint.name) or _input_digests(problem, checkpoint)
            python = None if self.remote else environment.python_version(checkpoint.requires_python)
        except UsageError as error:
            return error
        except OSError as error:
            return UsageError(unreadable_text(error, problem.path))
        return Digests(
            tests=tests, config=config, environment=environment.digest, image=environment.image, python=python
        )


def _problem_digests(problem: ProblemConfig, known: InputSignatures) -> dict[str, list[str]]:
    """The digests of tests and configuration, by checkpoint; without checkpoints that cannot be evaluated."""

    def compute() -> dict[str, list[str]]:
        contents, digests = Contents.of(problem), {}
        for name, checkpoint in problem.checkpoints.items():
            with contextlib.suppress(UsageError):
                digests[name] = _input_digests(problem, checkpoint, contents)
        read_test_lock(problem)  # a damaged one is rejected before anything is evaluated
        return digests

    folders = [problem.path / "tests", *problem.assets.values()]
    return known.digest(digest_of(problem.model_dump_json()), folders, compute)


def _input_digests(problem: ProblemConfig, checkpoint: CheckpointConfig, contents: Contents | None = None) -> list[str]:
    inputs = checkpoint_inputs(problem, checkpoint, contents or Contents.of(problem))
    return [inputs.tests_digest, inputs.config_digest]


def host_python_version(spec: EnvironmentSpec) -> str | None:
    """Version of the submission's Python on this machine; None for other languages, and where an image decides.

    Raises ConfigError where none fits, so that it is known before anything is evaluated.
    """
    if spec.interpreter() is None or spec.type == "docker":
        return None
    return host_python(spec.python_request()).version


def local_image_id(spec: EnvironmentSpec) -> str | None:
    """None where the image is not on this machine: it is not pulled to make a plan."""
    if spec.docker is None or spec.type != "docker":
        return None
    engine = Engine(spec.docker.binary)
    try:
        inspect = ("image", "inspect", "--format", "{{.Id}}", spec.docker.image)
        answer = None if engine.unavailable_reason() else engine.run(*inspect)
    except InfrastructureError:
        return None
    return answer.output.strip() or None if answer and answer.exit_code == 0 else None
