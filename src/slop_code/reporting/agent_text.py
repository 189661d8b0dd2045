"""Text about the agent: model, version, cost, tokens and time, as its harness recorded them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.reporting.text import format_duration, one_line, plural

if TYPE_CHECKING:
    from slop_code.runs.scb.agent_facts import AgentFacts, AgentIdentity
    from slop_code.runs.summary import AgentTotals, RunSummary


def agent_text(identity: AgentIdentity | None, work: AgentFacts | AgentTotals | None) -> str | None:
    """None where nothing is recorded."""
    parts = [identity_text(identity) if identity else "", work_text(work) if work else ""]
    return "; ".join(filter(None, parts)) or None


def identity_text(identity: AgentIdentity) -> str:
    agent = " ".join(filter(None, (identity.agent, identity.version)))
    named = [f"{name} {value}" for name in ("prompt", "thinking") if (value := getattr(identity, name))]
    return one_line(", ".join(filter(None, (identity.model, agent, *named))))


def work_text(work: AgentFacts | AgentTotals) -> str:
    """Cost, output tokens and time; what is not recorded is left out."""
    parts = [] if work.cost is None else [f"cost ${work.cost:,.2f}"]
    parts += [] if work.output is None else [f"{work.output:,.0f} output tokens"]
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
