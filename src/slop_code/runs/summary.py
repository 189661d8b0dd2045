"""Summary of a run or several, and summary.json."""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field

from slop_code._arguments import check_path
from slop_code._io import write_atomic
from slop_code._version import __version__
from slop_code.errors import InfrastructureError
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import PassPolicy, Policy, RatePolicy, pass_rate
from slop_code.evaluation.result_files.stored_record import FrozenRecord, Stored, load_stored
from slop_code.evaluation.usage.resources import LimitKind
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine, write_lines
from slop_code.runs.run_layout import LINES_FILE, SUMMARY_FILE
from slop_code.runs.samples import Interval, PassTable, Samples, copies_among, samples_of, share_interval
from slop_code.runs.scb.agent_facts import AgentIdentity  # noqa: TC001  (pydantic reads it)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from slop_code.runs.jobs.job_records import RunIssue
    from slop_code.runs.scb.agent_facts import AgentFacts


class Checkpoints(FrozenRecord):
    planned: int
    """Sum of the next three fields."""
    evaluated: int
    infrastructure_failures: int
    not_evaluated: int
    not_looked_at_again: int = 0
    """Evaluated checkpoints that keep an earlier result."""


class Passed(FrozenRecord):
    count: int
    rate: float | None
    """Share of all planned checkpoints."""


class RateFigures(FrozenRecord):
    solved: int
    """Checkpoints at rate 1."""
    share: float | None
    """Share of all planned checkpoints that are solved."""
    mean: float | None
    """Mean rate of the evaluated checkpoints that have such tests."""


class GroupRate(FrozenRecord):
    passed: int
    total: int
    rate: float | None


class Changes(FrozenRecord):
    compared: int
    """Checkpoints that have an earlier verdict to compare with."""
    introduced: int
    repaired: int


class Durations(FrozenRecord):
    total: float
    mean: float | None
    median: float | None
    longest: float | None


class AgentTotals(FrozenRecord):
    """Sums over the checkpoints for which the agent's files have the figure, or None if no checkpoint has it."""

    recorded: int
    """Checkpoints of which anything is recorded."""
    cost: float | None
    """In US dollars."""
    steps: float | None
    input: float | None
    output: float | None
    cache_read: float | None
    cache_write: float | None
    reasoning: float | None
    elapsed: float | None
    """Seconds."""


class Totals(FrozenRecord):
    checkpoints: Checkpoints
    passed: dict[str, Passed]
    """By policy; a file has the seven with names."""
    rates: dict[RatePolicy, RateFigures] = Field(default_factory=dict)
    pass_rates: dict[GroupType, GroupRate]
    regressions: Changes
    retried: int
    """Checkpoints with more than one attempt."""
    limits: dict[LimitKind, int] = Field(default_factory=dict)
    """Tests that did not pass and reached this limit of the environment."""
    timeouts: int = 0
    """Tests that a time limit ended."""
    repeated: int = 0
    """Tests that ran again, alone, since the machine was busy."""
    durations: Durations
    """Seconds of evaluated checkpoints."""
    agent: AgentTotals | None = None
    """It is None if nothing is recorded."""


class Share(Passed):
    interval: Interval | None


class CheckpointSummary(FrozenRecord):
    runs: int
    """Runs of the problem, without copies; a run without this checkpoint did not pass it."""
    evaluated: int
    passed: dict[str, Share]


class ProblemSummary(Stored):
    totals: Totals
    samples: Samples | None
    checkpoints: dict[str, CheckpointSummary]


class LabelledReason(Stored):
    label: str
    reason: str


class RunSummary(Stored):
    schema_version: Literal[1] = 1
    slop_code: str
    totals: Totals
    samples: Samples | None
    """None for a single run, and for runs that are not said to be samples of the same agent."""
    runs: dict[str, Totals]
    agents: dict[str, AgentIdentity] = Field(default_factory=dict)
    """By run; runs whose files do not tell are left out."""
    problems: dict[str, ProblemSummary]
    infrastructure_failures: list[LabelledReason]
    not_looked_at_again: list[LabelledReason] = Field(default_factory=list)
    """Checkpoints that keep an earlier result, and why."""
    issues: list[LabelledReason]
    warnings: list[str] = Field(default_factory=list)
    """About the runs as a whole, such as problems of another release; those of checkpoints are in their lines."""

    def save(self, path: Path) -> None:
        write_atomic(path, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> RunSummary:
        return load_stored(cls, check_path("path", path, "the path of a summary.json"), "evaluate the run again")


STORED_POLICIES: tuple[Policy, ...] = tuple(PassPolicy)


def write_summary(
    folder: Path,
    lines: Sequence[CheckpointLine],
    issues: Iterable[RunIssue],
    *,
    samples: bool = False,
    agents: Mapping[str, AgentIdentity] | None = None,
    warnings: Sequence[str] = (),
) -> RunSummary:
    summary = summarise(lines, list(issues), samples=samples, agents=agents, warnings=warnings)
    try:
        write_lines(folder / LINES_FILE, lines)
        summary.save(folder / SUMMARY_FILE)
    except OSError as error:
        raise InfrastructureError(
            f"{folder}: the summary cannot be written: {error.strerror}; "
            "every result is whole: make room or make it writable, and start again"
        ) from error
    return summary


def summarise(
    lines: Sequence[CheckpointLine],
    issues: Sequence[RunIssue],
    policies: Sequence[Policy] = STORED_POLICIES,
    *,
    samples: bool = False,
    agents: Mapping[str, AgentIdentity] | None = None,
    warnings: Sequence[str] = (),
) -> RunSummary:
    """Each checkpoint of a run has a single line: two are a ValueError.

    `samples`: the runs are samples of the same agent. Only then there are estimates and intervals.
    `agents`: by run, what is known of its agent.
    """
    planned = [*lines, *skipped_lines(lines, issues)]
    runs: dict[str, list[CheckpointLine]] = {issue.run: [] for issue in issues}
    problems: dict[str, list[CheckpointLine]] = {}
    for line in planned:
        runs.setdefault(line.run, []).append(line)
        problems.setdefault(line.problem, []).append(line)
    submissions = {
        name: {(line.problem, line.checkpoint): line.submission_digest for line in own} for name, own in runs.items()
    }
    copies = copies_among(submissions) if samples else []
    tables = {name: pass_tables(problems[name], policies, copies) for name in sorted(problems)}
    failed = [line for line in lines if line.state == "infrastructure_failure"]
    totals = totals_of(planned, policies)
    kept = [(line.label, line.not_looked_at_again) for line in lines if line.not_looked_at_again is not None]
    return RunSummary(
        slop_code=__version__,
        totals=totals,
        samples=samples_of(list(tables.values()), copies) if samples else None,
        runs={name: totals if len(runs) == 1 else totals_of(runs[name], policies) for name in sorted(runs)},
        agents=dict(agents or {}),
        problems={name: _problem(problems[name], tables[name], copies, samples=samples) for name in tables},
        infrastructure_failures=[LabelledReason(label=line.label, reason=line.reason or "") for line in failed],
        not_looked_at_again=[LabelledReason(label=label, reason=reason) for label, reason in kept],
        issues=[LabelledReason(label=issue.label, reason=issue.reason) for issue in issues],
        warnings=list(warnings),
    )


def totals_of(lines: Sequence[CheckpointLine], policies: Sequence[Policy] = STORED_POLICIES) -> Totals:
    evaluated = [line for line in lines if line.state == "evaluated"]
    failed = sum(line.state == "infrastructure_failure" for line in lines)
    changes = [line.regressions for line in evaluated if line.regressions]
    return Totals(
        checkpoints=Checkpoints(
            planned=len(lines),
            evaluated=len(evaluated),
            infrastructure_failures=failed,
            not_evaluated=len(lines) - len(evaluated) - failed,
            not_looked_at_again=sum(line.not_looked_at_again is not None for line in lines),
        ),
        passed={policy: _passed(sum(line.passes(policy) for line in lines), len(lines)) for policy in policies},
        rates={policy: _rate_figures(lines, policy) for policy in RatePolicy},
        pass_rates={group: _group_rate(evaluated, group) for group in GroupType},
        regressions=Changes(
            compared=len(changes),
            introduced=sum(change.introduced for change in changes),
            repaired=sum(change.repaired for change in changes),
        ),
        retried=sum(line.attempts > 1 for line in lines),
        limits={kind: sum(line.limits.get(kind, 0) for line in lines) for kind in get_args(LimitKind)},
        timeouts=sum(line.timeouts for line in lines),
        repeated=sum(line.repeated for line in lines),
        durations=_durations([line.duration for line in evaluated]),
        agent=_agent_totals([line.agent for line in lines if line.agent is not None]),
    )


def skipped_lines(lines: Iterable[CheckpointLine], issues: Iterable[RunIssue]) -> list[CheckpointLine]:
    """Lines of checkpoints that only issues name: planned, and not evaluated."""
    counts = Counter((line.run, line.problem, line.checkpoint) for line in lines)
    if duplicates := [key for key, count in counts.items() if count > 1]:
        raise ValueError(f"two lines for {'/'.join(duplicates[0])}")
    skipped: dict[tuple[str, str, str], CheckpointLine] = {}
    for issue in issues:
        if issue.problem is None or issue.checkpoint is None:
            continue
        key = issue.run, issue.problem, issue.checkpoint
        if key not in counts and key not in skipped:
            skipped[key] = CheckpointLine.with_facts(
                CheckpointFacts.no_verdict(issue.reason),
                run=issue.run,
                problem=issue.problem,
                checkpoint=issue.checkpoint,
                order=issue.order or sys.maxsize,
            )
    return list(skipped.values())


def pass_tables(
    lines: Sequence[CheckpointLine], policies: Sequence[Policy], copies: Sequence[str]
) -> dict[Policy, PassTable]:
    """Tables of a problem, by policy, without the runs that are copies."""
    order: dict[str, int] = {}
    for line in lines:
        order[line.checkpoint] = min(line.order, order.get(line.checkpoint, line.order))
    runs = tuple(sorted({line.run for line in lines}.difference(copies)))
    checkpoints = tuple(sorted(order, key=lambda name: (order[name], name)))
    return {
        policy: PassTable(
            runs, checkpoints, frozenset((line.run, line.checkpoint) for line in lines if line.passes(policy))
        )
        for policy in policies
    }


def _problem(
    lines: Sequence[CheckpointLine], tables: Mapping[Policy, PassTable], copies: Sequence[str], *, samples: bool
) -> ProblemSummary:
    evaluated = Counter(line.checkpoint for line in lines if line.state == "evaluated" and line.run not in copies)
    runs, checkpoints = next((table.runs, table.checkpoints) for table in tables.values())
    return ProblemSummary(
        totals=totals_of(lines, list(tables)),
        samples=samples_of([tables], copies) if samples else None,
        checkpoints={
            name: CheckpointSummary(
                runs=len(runs),
                evaluated=evaluated[name],
                passed={policy: _share(table.passes(name), len(runs), samples) for policy, table in tables.items()},
            )
            for name in checkpoints
        },
    )


def _passed(count: int, planned: int) -> Passed:
    return Passed(count=count, rate=count / planned if planned else None)


def _rate_figures(lines: Sequence[CheckpointLine], policy: RatePolicy) -> RateFigures:
    evaluated = (line for line in lines if line.state == "evaluated")
    rates = [pass_rate(policy, line.pass_counts, line.total_counts) for line in evaluated]
    known = [rate for rate in rates if rate is not None]
    solved = _passed(sum(rate >= 1 for rate in known), len(lines))
    return RateFigures(solved=solved.count, share=solved.rate, mean=statistics.fmean(known) if known else None)


def _share(count: int, runs: int, samples: bool) -> Share:
    return Share(count=count, rate=count / runs, interval=share_interval(count, runs) if samples else None)


def _group_rate(evaluated: Iterable[CheckpointLine], group: GroupType) -> GroupRate:
    counts = [(line.pass_counts.get(group, 0), line.total_counts.get(group, 0)) for line in evaluated]
    passed, total = sum(count for count, _ in counts), sum(count for _, count in counts)
    return GroupRate(passed=passed, total=total, rate=passed / total if total else None)


def _agent_totals(facts: Sequence[AgentFacts]) -> AgentTotals | None:
    if not facts:
        return None
    names = [name for name in AgentTotals.model_fields if name != "recorded"]
    known = {name: [value for item in facts if (value := getattr(item, name)) is not None] for name in names}
    sums = {name: math.fsum(values) if values else None for name, values in known.items()}
    return AgentTotals(recorded=len(facts), **sums)


def _durations(seconds: Sequence[float]) -> Durations:
    return Durations(
        total=math.fsum(seconds),
        mean=math.fsum(seconds) / len(seconds) if seconds else None,
        median=statistics.median(seconds) if seconds else None,
        longest=max(seconds, default=None),
    )
