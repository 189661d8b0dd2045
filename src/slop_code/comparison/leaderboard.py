"""Leaderboard: a row for each agent over all its runs, in which a missing checkpoint is never solved."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from slop_code._version import __version__
from slop_code.evaluation.policy import RatePolicy
from slop_code.evaluation.result_files.stored_record import FrozenRecord, Stored
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine
from slop_code.runs.run_layout import natural_order
from slop_code.runs.samples import Samples, copies_among, samples_of
from slop_code.runs.scb.agent_facts import NAME_PARTS, TOKENS, AgentIdentity
from slop_code.runs.statistics import slope
from slop_code.runs.summary import Totals, pass_tables, totals_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from slop_code.evaluation.policy import Policy

FIGURES = ("cost", "steps", *TOKENS, "elapsed")
"""Figures of the agent's work, by the names of `AgentFacts`."""
MEASURES = ("erosion", "verbosity")

_CheckpointName = tuple[str, str]
"""Problem and checkpoint."""


class QualityPoint(NamedTuple):
    """Quality of the implementation at a checkpoint; None where not all of its files are measured."""

    problem: str
    order: int
    erosion: float | None
    verbosity: float | None


@dataclass(slots=True)
class AgentRun:
    """A run as the leaderboard needs it, filled checkpoint by checkpoint."""

    name: str
    identity: AgentIdentity = field(default_factory=AgentIdentity)
    lines: list[CheckpointLine] = field(default_factory=list)
    quality: list[QualityPoint] = field(default_factory=list)

    @property
    def problems(self) -> set[str]:
        return {line.problem for line in self.lines}


class RecordedMean(FrozenRecord):
    mean: float | None
    """The mean, or None if no value is recorded."""
    recorded: int
    """Number of values: checkpoints, or for a slope problems of a run."""


class AgentRow(Stored):
    name: str
    """The parts of the identity that differ between the rows; the name of the run where no identity is known."""
    identity: AgentIdentity
    runs: list[str]
    copies: list[str]
    """Runs with the same submissions as another of this row, which are not counted."""
    problems: int
    """Problems that a run of this row has."""
    missing_problems: dict[str, list[str]]
    """By run, the problems of the table that it does not have. Runs that have all are left out."""
    totals: Totals
    """Every run is planned to have all checkpoints of the table: one that it does not have has no verdict."""
    per_checkpoint: dict[str, RecordedMean]
    """Cost, steps, tokens and seconds of the agent; mean over the checkpoints that have the figure."""
    slopes: dict[str, RecordedMean]
    """Change of a quality figure of the implementation per checkpoint; mean over the problems of all runs."""
    incomplete_quality: int = 0
    """Checkpoints at which not all files of the implementation are measured; no slope counts them."""
    samples: Samples | None
    """None for a single run."""

    @property
    def missing(self) -> int:
        """Checkpoints without a verdict."""
        return self.totals.checkpoints.planned - self.totals.checkpoints.evaluated


class Leaderboard(Stored):
    schema_version: Literal[1] = 1
    slop_code: str
    problems: list[str]
    """Problems of all runs together."""
    checkpoints: int
    """Checkpoints of these problems, which every run should have."""
    policies: list[str]
    """Policies besides strict, isolated and core; the first decides the order."""
    common: AgentIdentity
    """The parts of the identity that all rows share."""
    k: int | None
    """Largest k for which every row with several runs has pass@k; None without such a row."""
    rows: list[AgentRow]


def build_leaderboard(runs: Sequence[AgentRun], policies: Sequence[Policy] = ()) -> Leaderboard:
    """Best first: by the share of all planned checkpoints that the first policy passes, then strict, isolated, core.

    Of rows that solve the same, the one that misses fewer checkpoints is first.
    """
    planned = _planned_checkpoints(runs)
    groups = _by_agent(runs)
    common = _common_identity([group[0].identity for group in groups])
    names = _agent_names(groups, common)
    rows = [_row(group, name, planned, policies) for group, name in zip(groups, names, strict=True)]
    ks = [set(row.samples.policies[RatePolicy.STRICT].checkpoints.pass_at_k) for row in rows if row.samples]
    return Leaderboard(
        slop_code=__version__,
        problems=sorted({problem for problem, _ in planned}),
        checkpoints=len(planned),
        policies=[str(policy) for policy in policies],
        common=common,
        k=max(map(int, set.intersection(*ks))) if ks else None,
        rows=sorted(rows, key=lambda row: _order(row, policies)),
    )


def _planned_checkpoints(runs: Iterable[AgentRun]) -> dict[_CheckpointName, int]:
    """Each checkpoint that any run has, with its number."""
    planned: dict[_CheckpointName, int] = {}
    for line in (line for run in runs for line in run.lines):
        name = line.problem, line.checkpoint
        planned[name] = min(line.order, planned.get(name, line.order))
    return planned


def _by_agent(runs: Iterable[AgentRun]) -> list[list[AgentRun]]:
    """Runs with the same identity are samples of an agent; a run without one is an agent by itself."""
    groups: dict[str, list[AgentRun]] = {}
    for run in runs:
        key = run.identity.model_dump_json() if run.identity.is_known else f"run {run.name}"
        groups.setdefault(key, []).append(run)
    return list(groups.values())


def _common_identity(identities: Sequence[AgentIdentity]) -> AgentIdentity:
    """Parts with the same value everywhere; none where a row has no identity, whose name says nothing about it."""
    values = {part: {getattr(identity, part) for identity in identities} for part in NAME_PARTS}
    return AgentIdentity(**{part: same.pop() for part, same in values.items() if len(same) == 1})


def _agent_names(groups: Sequence[Sequence[AgentRun]], common: AgentIdentity) -> list[str]:
    """The provider is named where nothing else tells two agents apart."""
    brief = [_agent_name(group[0], common, NAME_PARTS.keys() - {"provider"}) for group in groups]
    return [
        _agent_name(group[0], common, NAME_PARTS) if brief.count(name) > 1 else name
        for group, name in zip(groups, brief, strict=True)
    ]


def _agent_name(run: AgentRun, common: AgentIdentity, parts: Collection[str]) -> str:
    own = {part for part in parts if part == "model" or getattr(common, part) is None}
    return run.identity.text(own) or run.identity.text(parts) or run.name


def _row(
    group: Sequence[AgentRun], name: str, planned: Mapping[_CheckpointName, int], policies: Sequence[Policy]
) -> AgentRow:
    copies = copies_among({run.name: _digests(run) for run in group if run.lines})
    counted = sorted((run for run in group if run.name not in copies), key=lambda run: natural_order(run.name))
    lines = [line for run in counted for line in _padded(run, planned)]
    by_problem: dict[str, list[CheckpointLine]] = {}
    for line in lines:
        by_problem.setdefault(line.problem, []).append(line)
    tables = [pass_tables(own, [*RatePolicy, *policies], ()) for own in by_problem.values()]
    problems = {problem for problem, _ in planned}
    return AgentRow(
        name=name,
        identity=group[0].identity,
        runs=[run.name for run in counted],
        copies=copies,
        problems=len(set().union(*(run.problems for run in counted))),
        missing_problems={run.name: sorted(missing) for run in counted if (missing := problems - run.problems)},
        totals=totals_of(lines, policies),
        per_checkpoint={figure: _mean(_agent_figures(lines, figure)) for figure in FIGURES},
        slopes={measure: _mean(_slopes(counted, measure)) for measure in MEASURES},
        incomplete_quality=sum(point[2:] == (None, None) for run in counted for point in run.quality),
        samples=samples_of(tables) if tables else None,
    )


def _digests(run: AgentRun) -> dict[_CheckpointName, str | None]:
    return {(line.problem, line.checkpoint): line.submission_digest for line in run.lines}


def _padded(run: AgentRun, planned: Mapping[_CheckpointName, int]) -> list[CheckpointLine]:
    """The lines of a run, and a line without a verdict for each checkpoint that it does not have."""
    known = {(line.problem, line.checkpoint) for line in run.lines}
    no_verdict = CheckpointFacts.no_verdict("this run does not have the checkpoint, another run has it")
    missing = [
        CheckpointLine(**dict(no_verdict), run=run.name, problem=problem, checkpoint=checkpoint, order=order)
        for (problem, checkpoint), order in planned.items()
        if (problem, checkpoint) not in known
    ]
    return [*run.lines, *missing]


def _agent_figures(lines: Iterable[CheckpointLine], figure: str) -> list[float]:
    values = [getattr(line.agent, figure) for line in lines if line.agent is not None]
    return [value for value in values if value is not None]


def _slopes(runs: Iterable[AgentRun], measure: str) -> list[float]:
    """One for each problem of a run that is measured at two checkpoints or more."""
    points: dict[_CheckpointName, list[tuple[float, float]]] = {}
    for run in runs:
        for point in run.quality:
            if (value := getattr(point, measure)) is not None:
                points.setdefault((run.name, point.problem), []).append((point.order, value))
    slopes = map(slope, points.values())
    return [value for value in slopes if value is not None]


def _mean(values: Sequence[float]) -> RecordedMean:
    return RecordedMean(mean=statistics.fmean(values) if values else None, recorded=len(values))


def _order(row: AgentRow, policies: Sequence[Policy]) -> tuple[object, ...]:
    shares = [row.totals.passed[policy].rate for policy in policies[:1]]
    shares += [row.totals.rates[policy].share for policy in RatePolicy]
    return (*(-(share or 0.0) for share in shares), row.missing, natural_order(row.name))
