"""result.json in the format of SlopCodeBench: figures of a run over its checkpoints and problems."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy
from slop_code.reporting.exporters.scb.exported_columns import RAN, RATES
from slop_code.reporting.exporters.scb.exported_evaluation import EXPORTED_BY
from slop_code.runs.scb.agent_facts import TOKENS, mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slop_code.reporting.exporters import Skips
    from slop_code.reporting.exporters.scb.exported_columns import Columns
    from slop_code.runs.scb.agent_facts import AgentIdentity

SOLVED = {
    RatePolicy.STRICT: "checkpoints_solved",
    RatePolicy.ISOLATED: "checkpoints_iso_solved",
    RatePolicy.CORE: "checkpoints_core_solved",
}
QUALITY_STATS = {
    "cc": {"high_count": "cc_high_count", "high_mean": "cc_high_mean", "max": "cc_max"},
    "ratios": {"rubric": "rubric", "lint": "lint_per_loc", "violation_pct": "violation_pct"},
}
"""Statistics with the columns that they are over."""


def result_document(
    rows: Sequence[Columns], skips: Skips, agent: AgentIdentity, carried: Mapping[str, Any]
) -> dict[str, Any]:
    """`carried` has blocks of code quality of an earlier result.json, which stand where none was measured here."""
    problems: dict[str, list[Columns]] = {}
    for row in rows:
        problems.setdefault(row["problem"], []).append(row)
    return {
        "model": agent.model,
        "thinking": agent.thinking,
        "prompt": agent.prompt,
        "agent_type": agent.agent,
        "agent_version": agent.version,
        "num_problems": len(problems),
        "num_checkpoints": sum(row["state"] == RAN for row in rows),
        "expected_checkpoints": len(rows),
        "costs": {**_spread("cost", rows, problems), "total": total(rows, "cost")},
        "time": _spread("duration", rows, problems),
        "steps": _spread("steps", rows, problems),
        "tokens": _tokens(rows, problems),
        **_solved(rows, problems),
        "pass_rates": _pass_rates(rows, problems),
        **_quality(rows, carried),
        "skips": skips,
        "exported_by": EXPORTED_BY,
    }


def stats(values: Iterable[Any]) -> dict[str, float | None]:
    """The block STATS of what is a number among the values; the standard deviation is that of a sample."""
    known = numbers(values)
    if not known:
        return {**dict.fromkeys(("mean", "stddev", "min", "max", "median")), "count": 0}
    return {
        "mean": statistics.fmean(known),
        "stddev": statistics.stdev(known) if len(known) > 1 else 0.0,
        "min": min(known),
        "max": max(known),
        "median": statistics.median(known),
        "count": len(known),
    }


def numbers(values: Iterable[Any]) -> list[float]:
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def total(rows: Iterable[Columns], name: str) -> float | None:
    known = numbers(row.get(name) for row in rows)
    return math.fsum(known) if known else None


def mean(values: Iterable[Any]) -> float | None:
    known = numbers(values)
    return statistics.fmean(known) if known else None


def _spread(name: str, rows: Sequence[Columns], problems: Mapping[str, Sequence[Columns]]) -> dict[str, Any]:
    return {
        "checkpoint": stats(row.get(name) for row in rows),
        "problem": stats(total(own, name) for own in problems.values()),
    }


def _tokens(rows: Sequence[Columns], problems: Mapping[str, Sequence[Columns]]) -> dict[str, Any]:
    return {
        **{name: total(rows, name) for name in TOKENS},
        "problem": {name: mean(total(own, name) for own in problems.values()) for name in TOKENS},
        "checkpoint": {name: mean(row.get(name) for row in rows) for name in TOKENS},
    }


def _solved(rows: Sequence[Columns], problems: Mapping[str, Sequence[Columns]]) -> dict[str, Any]:
    """Shares are of all expected checkpoints: one without a result is not solved."""
    counts = {SOLVED[policy]: sum(row[column] == 1 for row in rows) for policy, column in RATES.items()}
    strict = RATES[RatePolicy.STRICT]
    solved = [[row for row in own if row[strict] == 1] for own in problems.values()]
    counts["problem_solved"] = sum(any(row["is_last"] is True for row in own) for own in solved)
    counts["problem_partial"] = sum(map(bool, solved))
    shares = {f"pct_{name}": _percent(counts[name], len(rows)) for name in SOLVED.values()}
    for name in ("solved", "partial"):
        shares[f"pct_problems_{name}"] = _percent(counts[f"problem_{name}"], len(problems))
    return {**counts, **shares}


def _percent(count: int, of: int) -> float | None:
    return 100 * count / of if of else None


def _pass_rates(rows: Sequence[Columns], problems: Mapping[str, Sequence[Columns]]) -> dict[str, Any]:
    """Means of rates; a problem's own rate is the mean over its checkpoints."""
    columns = {"total": ("passed_tests", "total_tests")}
    columns |= {group.lower(): (f"{group.lower()}_passed", f"{group.lower()}_total") for group in GroupType}

    def rate(of: Sequence[Columns], passed: str, whole: str) -> float | None:
        return mean(row[passed] / row[whole] for row in of if row[whole])

    return {
        "problem": {name: mean(rate(own, *pair) for own in problems.values()) for name, pair in columns.items()},
        "checkpoint": {name: rate(rows, *pair) for name, pair in columns.items()},
    }


def _quality(rows: Sequence[Columns], carried: Mapping[str, Any]) -> dict[str, Any]:
    def block(column: str, earlier: Any) -> Any:
        figures = stats(row.get(column) for row in rows)
        return figures if figures["count"] or earlier is None else earlier

    blocks: dict[str, Any] = {
        name: {key: block(column, mapping(carried.get(name)).get(key)) for key, column in columns.items()}
        for name, columns in QUALITY_STATS.items()
    }
    return blocks | {name: block(name, carried.get(name)) for name in ("verbosity", "erosion")}
