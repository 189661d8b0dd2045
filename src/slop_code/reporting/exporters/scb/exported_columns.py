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

    from slop_code.quality.quality_record import QualityRecord
    from slop_code.quality.snapshot_diff import SnapshotChanges
    from slop_code.reporting.exporters import Skips
    from slop_code.reporting.exporters.scb.exported_evaluation import Counts
    from slop_code.runs.checkpoint_lines import CheckpointLine
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


def exported_columns(
    entry: StoredCheckpoint, counts: Counts, skips: Skips, identity: Columns, known: Mapping[str, Any]
) -> Columns:
    """`identity` has version and position. `known` has columns of the checkpoint that were measured or taken over.

    Counts and rates follow from the results alone, whatever was taken over.
    """
    line = entry.line
    return {
        **dict.fromkeys(COLUMNS),
        **identity,
        **agent_columns(line.agent),
        **known,
        "problem": file_safe(line.problem),
        "checkpoint": file_safe(line.checkpoint),
        "state": state_of(line, known.get("state")),
        **rate_columns(counts),
        **count_columns(counts),
        "skips": skips,
        "exported_by": EXPORTED_BY,
    }


def state_of(line: CheckpointLine, known: Any) -> Any:
    """RAN with a verdict, and never without one."""
    if has_verdict(line):
        return RAN
    return line.state if known in (None, RAN) else known


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


def quality_columns(quality: QualityRecord | None) -> Columns:
    """Figures of the implementation, without the submission's own tests; empty where not all of it was measured."""
    figures = quality.whole_implementation if quality else None
    if figures is None:
        return {}
    lines = figures.source_lines
    return {
        "sloc": lines,
        "files": figures.files,
        "functions": figures.functions,
        "cc_max": figures.max_complexity,
        "cc_high_count": figures.high_cc_functions,
        "clone_lines": figures.clone_lines,
        "cloned_pct": 100 * figures.clone_lines / lines if lines else None,
        "verbosity_flagged_pct": 100 * figures.flagged_lines / lines if lines else None,
        "verbosity": figures.verbosity,
        "erosion": figures.erosion,
    }


def change_columns(changes: SnapshotChanges | None) -> Columns:
    """Lines that a checkpoint added and removed; empty where a snapshot is missing or cannot be counted."""
    if changes is None or changes.unread:
        return {}
    return {
        "lines_added": changes.lines_added,
        "lines_removed": changes.lines_removed,
        "delta.churn_ratio": changes.churn,
    }
