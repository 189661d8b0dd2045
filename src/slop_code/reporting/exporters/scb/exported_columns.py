"""Columns of checkpoint_results.jsonl in the format of SlopCodeBench."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy, pass_rate
from slop_code.reporting.exporters.scb.exported_evaluation import EXPORTED_BY
from slop_code.reporting.text import file_safe, has_verdict
from slop_code.runs.scb.agent_facts import TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slop_code.reporting.exporters import Skips
    from slop_code.reporting.exporters.scb.exported_evaluation import Counts
    from slop_code.runs.read_results import StoredCheckpoint
    from slop_code.runs.scb.agent_facts import AgentFacts

RAN = "ran"
RATES = {policy: f"{policy}_pass_rate" for policy in RatePolicy}
AGENT = ("started", "ended", "duration", "cost", "steps", *TOKENS)
QUALITY = (
    "loc", "sloc", "files", "functions", "classes", "statements", "cc_max", "cc_mean", "cc_high_count",
    "clone_lines", "cloned_pct", "lint_errors", "lint_per_loc", "verbosity_flagged_pct", "verbosity", "erosion",
    "lines_added", "lines_removed", "delta.loc", "delta.churn_ratio", "mass.cc",
)  # fmt: skip
"""Null where nothing was measured."""
COLUMNS = (
    "problem", "version", "checkpoint", "path", "idx", "state", "is_first", "is_last", *RATES.values(),
    "total_tests", "passed_tests", *(f"{group.lower()}_{kind}" for group in GroupType for kind in ("total", "passed")),
    *AGENT, *QUALITY,
)  # fmt: skip
"""In their order; the columns of a file of SlopCodeBench that are not among them follow."""

Columns = dict[str, Any]


def columns_of(
    entry: StoredCheckpoint, counts: Counts, skips: Skips, identity: Columns, known: Mapping[str, Any]
) -> Columns:
    """`identity`: version and position; `known`: columns of the checkpoint that were measured or taken over.

    Counts and rates follow from the results alone, whatever was taken over.
    """
    line = entry.line
    state = RAN if has_verdict(line) else known.get("state", RAN)
    return {
        **dict.fromkeys(COLUMNS),
        **identity,
        **agent_columns(line.agent),
        **known,
        "problem": file_safe(line.problem),
        "checkpoint": file_safe(line.checkpoint),
        "state": line.state if state == RAN and not has_verdict(line) else state,
        **rate_columns(counts),
        **count_columns(counts),
        "skips": skips,
        "exported_by": EXPORTED_BY,
    }


def rate_columns(counts: Counts) -> Columns:
    return {name: pass_rate(policy, counts.passed, counts.total) for policy, name in RATES.items()}


def count_columns(counts: Counts) -> Columns:
    columns: Columns = {"total_tests": sum(counts.total.values()), "passed_tests": sum(counts.passed.values())}
    for group in GroupType:
        columns[f"{group.lower()}_total"] = counts.total.get(group, 0)
        columns[f"{group.lower()}_passed"] = counts.passed.get(group, 0)
    return columns


def agent_columns(agent: AgentFacts | None) -> Columns:
    facts = dict(agent) if agent else {}
    return {name: facts.get("elapsed" if name == "duration" else name) for name in AGENT}
