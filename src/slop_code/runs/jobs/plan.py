"""Plan of a run: which results are up to date, which jobs are left and why, and what cannot be evaluated."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code._arguments import check_type, wrong_argument
from slop_code.errors import InfrastructureError, ResultError, UsageError
from slop_code.evaluation.config import AUTO
from slop_code.evaluation.parallel.divide_tests import pairs_worth
from slop_code.evaluation.parallel.parallel_proof import is_proven
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.evaluation.roster import MAX_PAIRS, shared_network
from slop_code.runs.discover import UNNAMED_RUN, issue_for
from slop_code.runs.jobs.job_records import Job
from slop_code.runs.result_cache_key import NO_RESULT, ExpectedDigests, duration_key, result_cache_key, stale_reason
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slop_code.evaluation.report import Digests
    from slop_code.runs.checkpoint_lines import CheckpointFacts
    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.job_records import RunIssue, Submission, SubmissionKey
    from slop_code.runs.result_cache import ResultCache
    from slop_code.runs.result_index import ResultIndex

OVERWRITE = "to be done again, as asked for"


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` equal parts of a plan, from 1."""

    number: int
    count: int

    def __post_init__(self) -> None:
        check_type("number", self.number, (int,), "a whole number")
        check_type("count", self.count, (int,), "a whole number")
        if not 1 <= self.number <= self.count:
            raise wrong_argument("shard", (self.number, self.count), "a number from 1 to the count of parts")

    @classmethod
    def parse(cls, text: str, name: str = "shard") -> Shard:
        """`name` is that of the argument, for messages."""
        check_type(name, text, (str,), "i/N with i from 1 to N, such as 2/8")
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(f"{name} {text}: expected i/N with i from 1 to N, such as 2/8")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True, slots=True)
class Plan:
    jobs: tuple[Job, ...]
    """The longest first; those of unknown duration before all others."""

    up_to_date: tuple[tuple[Submission, CheckpointFacts], ...]
    discovered_issues: tuple[RunIssue, ...]
    rejected: tuple[tuple[Submission, str], ...] = ()
    """Submissions that cannot be evaluated, each with the reason."""

    reasons: Mapping[SubmissionKey, str] = field(default_factory=dict)
    """Why the result of each target of a job is not up to date."""

    shard: Shard | None = None

    @property
    def issues(self) -> tuple[RunIssue, ...]:
        return (*self.discovered_issues, *(issue_for(submission, reason) for submission, reason in self.rejected))


def make_plan(
    runs: Sequence[DiscoveredRun],
    result_cache: ResultCache,
    indexes: Mapping[str, ResultIndex],
    *,
    overwrite: bool = False,
    shard: Shard | None = None,
    remote: bool = False,
) -> Plan:
    """`indexes` has what is known of the existing results, by the name of the run. `remote` is that of the executor."""
    submissions, issues = part_of_runs(runs, shard)
    expected = ExpectedDigests(remote)
    wanted: dict[str, list[tuple[Submission, Digests]]] = {}
    reasons: dict[SubmissionKey, str] = {}
    verdicts: set[SubmissionKey] = set()
    up_to_date: list[tuple[Submission, CheckpointFacts]] = []
    rejected: list[tuple[Submission, str]] = []
    for submission in submissions:
        index = indexes.get(submission.run) or indexes[UNNAMED_RUN]
        try:
            digests = expected.digests(submission, index.inputs)
        except (UsageError, InfrastructureError) as error:
            rejected.append((submission, str(error)))
            continue
        facts = index.facts(submission.output / RESULT_FILE) if submission.output else None
        reason = OVERWRITE if overwrite else stale_reason(facts, digests, evaluation_version())
        if reason is None and facts is not None:
            up_to_date.append((submission, facts))
            continue
        if facts is not None and facts.is_verdict_on(digests.submission):
            verdicts.add(submission.key)
        key = result_cache_key(submission.environment, digests)
        wanted.setdefault(key or f"unknown {len(wanted)}", []).append((submission, digests))
        reasons[submission.key] = reason or NO_RESULT
    jobs = [make_job(items, result_cache, overwrite, frozenset(verdicts), remote) for items in wanted.values()]
    longest_first = sorted(jobs, key=lambda job: -(job.expected_s if job.expected_s is not None else float("inf")))
    named = tuple(_named_by_results(issues, submissions, indexes))
    return Plan(tuple(longest_first), tuple(up_to_date), named, tuple(rejected), reasons, shard)


def _named_by_results(
    issues: Sequence[RunIssue], submissions: Sequence[Submission], indexes: Mapping[str, ResultIndex]
) -> Iterator[RunIssue]:
    """Issues with the names in the results of their folders: the folders themselves may have wrong names."""
    taken = {(submission.run, submission.problem.name, submission.checkpoint.name) for submission in submissions}
    for issue in issues:
        path = issue.output / RESULT_FILE if issue.output else None
        facts = indexes[issue.run].facts(path) if path else None  # the index names results that cannot be read
        try:
            results = CorrectnessResults.load(path) if path and facts else None
        except ResultError:
            results = None
        if results is None or (issue.run, results.problem_name, results.checkpoint_name) in taken:
            yield issue
            continue
        name, ordered = results.checkpoint_name, results.provenance.checkpoints
        order = ordered.index(name) + 1 if name in ordered else issue.order
        yield replace(issue, problem=results.problem_name, checkpoint=name, order=order)


def part_of_runs(runs: Sequence[DiscoveredRun], shard: Shard | None) -> tuple[list[Submission], list[RunIssue]]:
    """The shard's part of all submissions, finished or not, so that all shards of a plan agree at any time."""
    submissions = [submission for run in runs for submission in run.submissions]
    issues = [issue for run in runs for issue in run.issues]
    if shard is None:
        return submissions, issues
    return submissions[shard.number - 1 :: shard.count], issues if shard.number == 1 else []


def make_job(
    items: Sequence[tuple[Submission, Digests]],
    result_cache: ResultCache,
    overwrite: bool,
    verdicts: frozenset[SubmissionKey],
    remote: bool,
) -> Job:
    submission, digests = items[0]
    key = result_cache_key(submission.environment, digests)
    seconds = result_cache.expected_duration(duration_key(submission))
    return Job(
        key=key,
        digest=digests.submission or "",
        targets=tuple(submission for submission, _ in items),
        expected_s=seconds,
        max_pairs=1 if remote else _max_pairs(submission, digests, seconds),
        cached=not overwrite and key is not None and result_cache.has(key),
        verdicts=verdicts.intersection(submission.key for submission, _ in items),
    )


def _max_pairs(submission: Submission, digests: Digests, seconds: float | None) -> int:
    """More than 1 only where there is a proof for `parallel: auto`."""
    problem, checkpoint = submission.problem, submission.checkpoint.name
    if problem.parallel != AUTO or shared_network(submission.environment):
        return 1
    if not is_proven(problem, checkpoint, digests.tests, digests.config):
        return 1
    return MAX_PAIRS if seconds is None else min(MAX_PAIRS, pairs_worth(seconds))
