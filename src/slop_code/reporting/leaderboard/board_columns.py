"""Columns of the leaderboard: names in files, headings in tables, values and their texts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Literal

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.policy import RatePolicy
from slop_code.reporting.text import (
    GROUP_HEADINGS,
    NO_VALUE,
    format_clock,
    format_cost,
    format_percent,
    format_tokens,
    one_line,
)
from slop_code.runs.scb.agent_facts import AgentIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slop_code.comparison.leaderboard import AgentRow, Leaderboard

    Value = str | int | float | None

Kind = Literal["text", "count", "share", "cost", "tokens", "seconds", "slope", "number"]
SOLVED, TESTS, PER_CHECKPOINT, SLOPES, SAMPLES = (
    "checkpoints solved", "tests passed", "per checkpoint", "change per checkpoint", "strict over samples"
)  # fmt: skip
"""Headings over several columns of the page."""


@dataclass(frozen=True, slots=True)
class BoardColumn:
    name: str
    """In files, and for --sort."""
    kind: Kind
    value: Callable[[AgentRow], Value]
    _: KW_ONLY
    head: str = ""
    """In tables, or empty if it is in files only."""
    over: str = ""
    """Heading over this column and its neighbours, on the page."""
    count: Callable[[AgentRow], int] | None = None
    """In tables, this number is in front of the share."""
    note: Callable[[AgentRow], str] | None = None
    """In tables, this text is behind the value."""
    drop: int | None = None
    """As in `TableColumn`."""
    lowest_first: bool = False
    user_text: bool = False
    """The heading is a text that a user gave."""

    def text(self, row: AgentRow) -> str:
        value = self.value(row)
        if value is None:
            return NO_VALUE
        text = one_line(value) if isinstance(value, str) else _TEXTS[self.kind](value)
        text += self.note(row) if self.note else ""
        if self.count is None:
            return text
        return f"{count} {text}" if (count := self.count(row)) else "0"


_TEXTS: dict[Kind, Callable[[float], str]] = {
    "count": lambda value: f"{value:.0f}",
    "share": format_percent,
    "cost": format_cost,
    "tokens": format_tokens,
    "seconds": format_clock,
    "slope": lambda value: f"{value:+.3f}",
    "number": lambda value: f"{value:.3g}",
}


def columns_of(board: Leaderboard) -> list[BoardColumn]:
    """All columns, in the order of a file."""
    return [
        BoardColumn("name", "text", lambda row: row.name),
        *(_identity_column(part) for part in AgentIdentity.model_fields),
        *(column for policy in RatePolicy for column in _solved_columns(policy)),
        *(policy_column(policy) for policy in board.policies if policy not in list(RatePolicy)),
        BoardColumn("missing", "count", lambda row: row.missing, lowest_first=True),
        BoardColumn(
            "missing_share",
            "share",
            _missing_share,
            head="missing",
            count=lambda row: row.missing,
            lowest_first=True,
        ),
        _figure_column("cost", "cost", "cost"),
        _figure_column("elapsed", "seconds", "time", drop=13),
        _figure_column("steps", "number"),
        _figure_column("input", "tokens", "tokens in", drop=2),
        _figure_column("output", "tokens", "out", drop=3),
        *(_figure_column(name, "tokens") for name in ("cache_read", "cache_write", "reasoning")),
        BoardColumn("cost_recorded", "count", lambda row: row.per_checkpoint["cost"].recorded),
        *(_group_column(group, drop) for group, drop in zip(GroupType, (10, 8, 7, 9), strict=True)),
        BoardColumn(
            "broke", "count", lambda row: _changes(row)[0], head="broke", over="tests", drop=12, lowest_first=True
        ),
        BoardColumn("repaired", "count", lambda row: _changes(row)[1], head="recovered", over="tests", drop=11),
        _slope_column("erosion", drop=4),
        _slope_column("verbosity", drop=3),
        BoardColumn("incomplete_quality", "count", lambda row: row.incomplete_quality, lowest_first=True),
        *_sample_columns(board),
        BoardColumn("runs", "count", lambda row: len(row.runs), head="runs", note=_copies_note, drop=16),
        BoardColumn("copies", "count", lambda row: len(row.copies), lowest_first=True),
        BoardColumn("problems", "count", lambda row: row.problems, head="problems", drop=6),
        BoardColumn("missing_problems", "count", lambda row: len(board.problems) - row.problems, lowest_first=True),
        BoardColumn("checkpoints", "count", lambda row: row.totals.checkpoints.planned, head="planned", drop=5),
    ]


def table_columns(board: Leaderboard) -> list[BoardColumn]:
    """Columns of a table, without those that are empty in every row and may be dropped."""
    shown = [column for column in columns_of(board) if column.head]
    return [
        column for column in shown if column.drop is None or any(column.value(row) is not None for row in board.rows)
    ]


def sorted_rows(rows: Sequence[AgentRow], column: BoardColumn) -> list[AgentRow]:
    """Best first, rows without a value last; rows with the same value stay in their order."""
    known = [row for row in rows if column.value(row) is not None]
    ascending = column.lowest_first or column.kind == "text"
    known.sort(
        key=lambda row: column.value(row) or 0 if column.kind != "text" else str(column.value(row)),
        reverse=not ascending,
    )
    return [*known, *(row for row in rows if column.value(row) is None)]


def _copies_note(row: AgentRow) -> str:
    """ "1 of 5 distinct": runs with the same submissions are counted once."""
    return f" of {len(row.runs) + len(row.copies)} distinct" if row.copies else ""


def _missing_share(row: AgentRow) -> float | None:
    return row.missing / row.totals.checkpoints.planned if row.totals.checkpoints.planned else None


def _identity_column(part: str) -> BoardColumn:
    return BoardColumn(part, "text", lambda row: getattr(row.identity, part))


def _solved_columns(policy: RatePolicy) -> list[BoardColumn]:
    def solved(row: AgentRow) -> int:
        return row.totals.rates[policy].solved

    return [
        BoardColumn(f"{policy}_solved", "count", solved),
        BoardColumn(
            f"{policy}_share",
            "share",
            lambda row: row.totals.rates[policy].share,
            head=policy,
            over=SOLVED,
            count=solved,
        ),
        BoardColumn(f"{policy}_mean", "share", lambda row: row.totals.rates[policy].mean),
    ]


def policy_column(policy: str) -> BoardColumn:
    return BoardColumn(
        f"passed {policy}",
        "share",
        lambda row: row.totals.passed[policy].rate,
        head=one_line(policy),
        over=SOLVED,
        count=lambda row: row.totals.passed[policy].count,
        user_text=True,
    )


def _group_column(group: GroupType, drop: int) -> BoardColumn:
    head = f"{GROUP_HEADINGS[group]} tests" if group is GroupType.CORE else GROUP_HEADINGS[group]
    return BoardColumn(
        f"{group.lower()}_rate",
        "share",
        lambda row: row.totals.pass_rates[group].rate,
        head=head,
        over=TESTS,
        drop=drop,
    )


def _changes(row: AgentRow) -> tuple[int | None, int | None]:
    """None where nothing was compared."""
    regressions = row.totals.regressions
    return (regressions.introduced, regressions.repaired) if regressions.compared else (None, None)


def _figure_column(figure: str, kind: Kind, head: str = "", drop: int | None = None) -> BoardColumn:
    return BoardColumn(
        figure,
        kind,
        lambda row: row.per_checkpoint[figure].mean,
        head=head,
        over=PER_CHECKPOINT,
        drop=drop,
        lowest_first=True,
    )


def _slope_column(measure: str, drop: int) -> BoardColumn:
    name = f"{measure}_slope"
    return BoardColumn(
        name, "slope", lambda row: row.slopes[measure].mean, head=measure, over=SLOPES, drop=drop, lowest_first=True
    )


def _sample_columns(board: Leaderboard) -> list[BoardColumn]:
    """Estimates of strict; pass@k and pass^k have the same k in every row."""

    def estimated(row: AgentRow, value: Callable[..., float | None]) -> float | None:
        return value(row.samples.policies[RatePolicy.STRICT].checkpoints) if row.samples else None

    k = str(board.k or "k")
    return [
        BoardColumn("strict_low", "share", lambda row: estimated(row, lambda it: it.interval and it.interval.low)),
        BoardColumn("strict_high", "share", lambda row: estimated(row, lambda it: it.interval and it.interval.high)),
        BoardColumn("strict_variance", "number", lambda row: estimated(row, lambda it: it.variance), lowest_first=True),
        BoardColumn("k", "count", lambda row: board.k if row.samples else None),
        BoardColumn(
            "pass_at_k",
            "share",
            lambda row: estimated(row, lambda it: it.pass_at_k[k]),
            head=f"pass@{k}",
            over=SAMPLES,
            drop=15,
        ),
        BoardColumn(
            "pass_hat_k",
            "share",
            lambda row: estimated(row, lambda it: it.pass_hat_k[k]),
            head=f"pass^{k}",
            over=SAMPLES,
            drop=14,
        ),
    ]
