"""Reader of stored runs for the leaderboard: the agent of a run, and its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.comparison.leaderboard import MEASURES, AgentRun, QualityPoint
from slop_code.errors import ResultError
from slop_code.quality.quality_record import Quality
from slop_code.runs.run_layout import SUMMARY_FILE
from slop_code.runs.samples import submission_digest
from slop_code.runs.scb.agent_facts import AgentIdentity, read_agent_identity
from slop_code.runs.summary import RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.runs.read_results import RunResults, StoredCheckpoint


def read_agent_runs(runs: Iterable[RunResults]) -> list[AgentRun]:
    agent_runs = []
    for run in runs:
        agent_runs.append(open_agent_run(run))
        for _ in entries_of(run, agent_runs[-1]):
            pass  # one result is in memory at a time
    return agent_runs


def open_agent_run(run: RunResults) -> AgentRun:
    """Without checkpoints; `entries_of` adds them."""
    return AgentRun(run.name, _identity(run))


def entries_of(run: RunResults, agent_run: AgentRun) -> Iterator[StoredCheckpoint]:
    """The entries of the run; each is added to `agent_run`. A quality record that cannot be read is not used."""
    for entry in run.entries():
        agent_run.lines.append(entry.line)
        try:
            agent_run.quality += _quality_points(entry)
        except ResultError as error:
            run.unreadable.append(str(error))
        yield entry
        del entry  # frees the memory before the next result is read


def _quality_points(entry: StoredCheckpoint) -> list[QualityPoint]:
    """None where nothing is measured, or another submission than the evaluated one."""
    line, quality = entry.line, Quality.load(entry.folder) if entry.folder else None
    if quality is None or quality.implementation is None:
        return []
    if submission_digest(line) not in (None, quality.submission):
        return []
    return [QualityPoint(line.problem, line.order, *(getattr(quality.implementation, name) for name in MEASURES))]


def _identity(run: RunResults) -> AgentIdentity:
    """From the run's own files; from its summary where results lie apart from the run."""
    identity = read_agent_identity(run.folder)
    if identity.is_known:
        return identity
    try:
        agents = RunSummary.load(run.folder / SUMMARY_FILE).agents
    except ResultError:
        return identity
    only = next(iter(agents.values())) if len(agents) == 1 else identity
    return agents.get(run.name, only)
