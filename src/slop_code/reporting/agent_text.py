"""Text about the agent: model, version, cost, tokens and time, as its harness recorded them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.reporting.text import format_cost, format_duration, format_tokens, one_line, plural

if TYPE_CHECKING:
    from slop_code.runs.scb.agent_facts import AgentFacts, AgentIdentity
    from slop_code.runs.summary import AgentTotals, RunSummary


def agent_text(identity: AgentIdentity | None, work: AgentFacts | AgentTotals | None) -> str | None:
    """None where nothing is recorded."""
    parts = [identity_text(identity) if identity else "", work_text(work) if work else ""]
    return "; ".join(filter(None, parts)) or None


def identity_text(identity: AgentIdentity) -> str:
    return one_line(identity.text())


def work_text(work: AgentFacts | AgentTotals) -> str:
    """Cost, output tokens and time; what is not recorded is left out."""
    parts = [] if work.cost is None else [f"cost {format_cost(work.cost)}"]
    parts += [] if work.output is None else [f"{format_tokens(work.output)} output tokens"]
    parts += [] if work.elapsed is None else [format_duration(work.elapsed)]
    return ", ".join(parts)


def agents_of(summary: RunSummary) -> str | None:
    """The agent of a run, or of several runs with the same one, and its work on all checkpoints together."""
    identities = list(dict.fromkeys(map(identity_text, summary.agents.values())))
    named = [identities[0]] if len(identities) == 1 else [f"{len(identities)} agents"] if identities else []
    totals, planned = summary.totals.agent, summary.totals.checkpoints.planned
    if totals is not None:
        named += [text] if (text := work_text(totals)) else []
        if totals.recorded < planned:
            named.append(f"recorded for {totals.recorded} of {plural(planned, 'checkpoint')}")
    return "; ".join(filter(None, named)) or None
