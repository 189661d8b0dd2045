"""Reader of stored runs for the leaderboard: the agent of a run, and its checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.comparison.leaderboard import MEASURES, AgentRun, QualityPoint
from slop_code.quality.quality_record import quality_of
from slop_code.runs.scb.agent_facts import read_agent_identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.quality.quality_record import MeasuredQuality
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
    return AgentRun(run.name, read_agent_identity(run.folder))


def entries_of(run: RunResults, agent_run: AgentRun) -> Iterator[tuple[StoredCheckpoint, MeasuredQuality]]:
    """The entries of the run with their quality; each is added to `agent_run`."""
    for entry in run.entries():
        quality = quality_of(entry, run.unreadable)
        agent_run.lines.append(entry.line)
        record = quality.record
        if record is not None and (record.is_incomplete or record.implementation is not None):
            measures = (getattr(record.whole_implementation, name, None) for name in MEASURES)
            agent_run.quality.append(QualityPoint(entry.line.problem, entry.line.order, *measures))
        yield entry, quality
        del entry  # frees the memory before the next result is read
