"""What is up to date, what is left to do, and why: found out by digests, before anything runs."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.provenance import evaluation_version
from slop_code.evaluation.report import Digests
from slop_code.evaluation.staging import Contents, tests_digest
from slop_code.execution.docker.engine import Engine
from slop_code.execution.submission import open_submission, tree_digest
from slop_code.runs.discover import RESULT_FILE, UNNAMED_RUN, issue_for
from slop_code.runs.job_records import Job, Submission

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.runs.checkpoint_lines import CheckpointFacts
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.job_records import RunIssue
    from slop_code.runs.result_cache import ResultCache
    from slop_code.runs.result_index import ResultIndex

CHANGED = {
    "submission": "the submission changed",
    "tests": "the tests changed",
    "config": "config.yaml changed",
    "environment": "the environment changed",
    "image": "the image changed",
}
NO_RESULT = "no result yet"
OVERWRITE = "to be done again, as asked for"


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` equal parts of a plan, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise UsageError(f"--shard {text}: expected i/N with i from 1 to N, such as 2/8")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True, slots=True)
class Plan:
    jobs: tuple[Job, ...]
    """Longest first; those of unknown length before all."""

    kept: tuple[tuple[Submission, CheckpointFacts], ...]
    issues: tuple[RunIssue, ...]
    refused: tuple[tuple[Submission, str], ...] = ()
    """Those of the troubles that are a submission's or its problem's, as it stands."""

    reasons: Mapping[int, str] = field(default_factory=dict)
    """Why each target of a job is not up to date, by its identity: two may be equal."""

    shard: Shard | None = None

    def reason(self, job: Job, target: Submission) -> str:
        return self.reasons.get(id(target), job.reason)


def make_plan(
    runs: Sequence[DiscoveredRun],
    store: ResultCache,
    indexes: Mapping[str, ResultIndex],
    *,
    overwrite: bool = False,
    shard: Shard | None = None,
) -> Plan:
    """`indexes`: what is known of the results that lie there, by the run's name."""
    submissions, issues = _part(runs, shard)
    expected = ExpectedDigests()
    wanted: dict[str, list[tuple[Submission, Digests, str]]] = {}
    kept: list[tuple[Submission, CheckpointFacts]] = []
    refused: list[tuple[Submission, str]] = []
    for submission in submissions:
        try:
            digests = expected.digests(submission)
        except (UsageError, InfrastructureError) as error:
            refused.append((submission, str(error)))
            continue
        index = indexes.get(submission.run) or indexes[UNNAMED_RUN]
        found = index.facts(submission.output / RESULT_FILE) if submission.output else None
        reason = OVERWRITE if overwrite else stale_reason(found, digests, evaluation_version())
        if reason is None and found is not None:
            kept.append((submission, found))
            continue
        key = result_cache_key(submission.environment, digests)
        wanted.setdefault(key or f"unknown {len(wanted)}", []).append((submission, digests, reason or NO_RESULT))
    jobs = [_job(items, store, overwrite) for items in wanted.values()]
    longest_first = sorted(jobs, key=lambda job: -(job.expected_s if job.expected_s is not None else float("inf")))
    issues += [issue_for(submission, reason) for submission, reason in refused]
    reasons = {id(submission): reason for items in wanted.values() for submission, _, reason in items}
    return Plan(tuple(longest_first), tuple(kept), tuple(issues), tuple(refused), reasons, shard)


def stale_reason(found: CheckpointFacts | None, expected: Digests, version: str) -> str | None:
    """Why a result is not up to date; None where it is."""
    if found is None:
        return NO_RESULT
    if found.state == "infrastructure_failure":
        return "an infrastructure failure last time"
    if found.state == "not_evaluated" or found.digests is None:
        return found.reason or NO_RESULT
    for name, words in CHANGED.items():
        now = getattr(expected, name)
        if getattr(found.digests, name) != now and not (name == "image" and now is None):
            return words
    return None if found.evaluation_version == version else "slop-code evaluates differently now"


def result_cache_key(spec: EnvironmentSpec, digests: Digests, version: str | None = None) -> str | None:
    """None where the image is not known yet; without one, this machine's interpreter is what runs things."""
    if spec.type == "docker":
        identity = digests.image
    else:
        identity = f"{platform.machine()} {platform.python_implementation()} {platform.python_version()}"
    if identity is None:
        return None
    own = digests.model_dump(mode="json", exclude={"image"})
    return digest_of([own, identity, evaluation_version() if version is None else version])


def duration_name(submission: Submission) -> str:
    return digest_of([submission.problem.name, submission.checkpoint.name, submission.environment.name])


def _part(runs: Sequence[DiscoveredRun], shard: Shard | None) -> tuple[list[Submission], list[RunIssue]]:
    """Of everything there is, done or not: so the shards of one plan agree whenever each is made."""
    submissions = [submission for run in runs for submission in run.submissions]
    issues = [issue for run in runs for issue in run.issues]
    if shard is None:
        return submissions, issues
    return submissions[shard.number - 1 :: shard.count], issues if shard.number == 1 else []


@dataclass(slots=True)
class ExpectedDigests:
    """Each thing that many submissions share is looked at once."""

    shared: dict[tuple[Path, str, str], Digests | UsageError] = field(default_factory=dict)
    contents: dict[Path, Contents] = field(default_factory=dict)
    images: dict[str, str | None] = field(default_factory=dict)

    def digests(self, submission: Submission) -> Digests:
        problem, checkpoint, spec = submission.problem, submission.checkpoint, submission.environment
        key = (problem.path, checkpoint.name, spec.model_dump_json())
        if key not in self.shared:
            self.shared[key] = self._shared(problem, checkpoint, spec, key[2])
        found = self.shared[key]
        if isinstance(found, UsageError):
            raise found
        return found.model_copy(update={"submission": tree_digest(open_submission(submission.path))})

    def _shared(
        self, problem: ProblemConfig, checkpoint: CheckpointConfig, spec: EnvironmentSpec, written: str
    ) -> Digests | UsageError:
        try:
            if problem.path not in self.contents:
                self.contents[problem.path] = Contents.of(problem)
            tests = tests_digest(problem, checkpoint, self.contents[problem.path])
        except UsageError as error:
            return error
        except OSError as error:
            return UsageError(f"{error.filename}: cannot be read: {error.strerror}")
        if written not in self.images:
            self.images[written] = known_image(spec)
        return Digests(
            tests=tests, config=problem.digest(checkpoint), environment=spec.digest(), image=self.images[written]
        )


def known_image(spec: EnvironmentSpec) -> str | None:
    """Without pulling it: a plan changes nothing."""
    if spec.docker is None or spec.type != "docker":
        return None
    engine = Engine(spec.docker.binary)
    try:
        answer = (
            None
            if engine.unavailable_reason()
            else engine.run("image", "inspect", "--format", "{{.Id}}", spec.docker.image)
        )
    except InfrastructureError:
        return None
    return answer.output.strip() or None if answer and answer.exit_code == 0 else None


def _job(items: Sequence[tuple[Submission, Digests, str]], store: ResultCache, overwrite: bool) -> Job:
    submission, digests, reason = items[0]
    key = result_cache_key(submission.environment, digests)
    return Job(
        key=key,
        digest=digests.submission or "",
        targets=tuple(submission for submission, _, _ in items),
        reason=reason,
        expected_s=store.expected(duration_name(submission)),
        stored=not overwrite and key is not None and store.has(key),
    )
