"""Notes below the leaderboard: missing checkpoints, different problems, copies, estimates over samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code._suggestions import first_names
from slop_code.comparison.leaderboard import MEASURES
from slop_code.evaluation.policy import RatePolicy
from slop_code.reporting.agent_text import identity_text
from slop_code.reporting.run_table import interval_text
from slop_code.reporting.text import format_percent, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.comparison.leaderboard import AgentRow, Leaderboard
    from slop_code.reporting.terminal import StyledLine
    from slop_code.runs.samples import Estimate

SHOWN_NAMES = 3


def notes(board: Leaderboard) -> Iterator[StyledLine]:
    if board.common.is_known and len(board.rows) > 1:
        yield f"all agents: {identity_text(board.common)}", ""
    for row in board.rows:
        name = one_line(row.name)
        yield from ((f"{name}: {text}", "yellow") for text in (*_missing(row, board), *_copies(row), *_recorded(row)))
        if row.samples:
            yield f"{name}: {_estimate(row.samples.policies[RatePolicy.STRICT].checkpoints, row.samples.runs)}", ""
    unmeasured = [measure for measure in MEASURES if all(row.slopes[measure].mean is None for row in board.rows)]
    if unmeasured:
        yield f"not recorded: {', '.join(unmeasured)}", "dim"


def _missing(row: AgentRow, board: Leaderboard) -> Iterator[str]:
    if row.missing:
        planned = row.totals.checkpoints.planned
        yield f"{row.missing} of {plural(planned, 'checkpoint')} missing: no verdict, so they count as not solved"
    by_run = [row.missing_problems.get(run, []) for run in row.runs]
    missing = set(board.problems).intersection(*by_run)
    if missing:
        yield f"{plural(len(missing), 'problem')} missing: {_names(sorted(missing))}"
    if len(set(map(tuple, by_run))) > 1:
        runs = [f"{one_line(run)} has no {_names(problems)}" for run, problems in row.missing_problems.items()]
        yield f"its runs have different problems: {first_names(runs, SHOWN_NAMES)}"


def _copies(row: AgentRow) -> Iterator[str]:
    if row.copies:
        yield f"the same submissions as in another run, so no further sample: {_names(row.copies)}"


def _recorded(row: AgentRow) -> Iterator[str]:
    recorded, evaluated = row.per_checkpoint["cost"].recorded, row.totals.checkpoints.evaluated
    if 0 < recorded < evaluated:
        yield f"cost is recorded for {recorded} of {plural(evaluated, 'evaluated checkpoint')}"
    if row.incomplete_quality:
        where = plural(row.incomplete_quality, "checkpoint")
        yield f"quality is incomplete at {where}, which no slope counts: source files could not be measured"


def _estimate(estimate: Estimate, runs: int) -> str:
    """Strict over the samples: interval and variance from three runs on, then pass@k and pass^k by k."""
    variance = "" if estimate.variance is None else f", variance {estimate.variance:.3g}"
    chances = [f"pass@{k} {format_percent(value)}" for k, value in estimate.pass_at_k.items() if k != "1"]
    chances += [f"pass^{k} {format_percent(value)}" for k, value in estimate.pass_hat_k.items() if k != "1"]
    rate = f"{format_percent(estimate.rate)}{interval_text(estimate)}"
    return f"strict over {runs} runs {rate}{variance}, {', '.join(chances)}"


def _names(names: list[str]) -> str:
    return first_names([one_line(name) for name in names], SHOWN_NAMES)
