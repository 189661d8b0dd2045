"""Estimates over several runs of the same problems: pass rates, intervals, pass@k, pass^k."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import Field

from slop_code.evaluation.result_files.stored_record import FrozenRecord
from slop_code.runs.statistics import Bounds, mean_bounds, pass_at_k, pass_hat_k, usual_k, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slop_code.evaluation.policy import Policy

Run = TypeVar("Run", int, str)
"""The index or the name of a run."""

MIN_INTERVAL_RUNS = 3
"""Two runs say next to nothing about how far runs differ."""


class Interval(FrozenRecord):
    """Confidence interval, 95 %."""

    low: float
    high: float
    method: Literal["wilson", "t"]


class Estimate(FrozenRecord):
    rate: float
    """The mean over runs."""
    interval: Interval | None
    """None from fewer than three runs, and where all have the same share."""
    pass_at_k: dict[str, float]
    """By k: the chance that at least one of k runs passes, mean over tasks."""
    pass_hat_k: dict[str, float] = Field(default_factory=dict)
    """By k: the chance that all of k runs pass, mean over tasks."""
    variance: float | None = None
    """Of the shares of the runs; None from fewer than three runs."""


class PolicySamples(FrozenRecord):
    checkpoints: Estimate
    """A task is a checkpoint."""
    solved: Estimate
    """A task is a whole problem: every checkpoint of it passed in the same run."""


class Samples(FrozenRecord):
    runs: int
    """Runs with different submissions."""
    copies: list[str]
    """Names of runs with the same submissions as another, which are not counted."""
    problems: int
    checkpoints: int
    policies: dict[str, PolicySamples]


@dataclass(frozen=True, slots=True)
class PassTable:
    """Passed checkpoints of a problem by run, under a policy. A checkpoint that a run lacks is not passed."""

    runs: tuple[str, ...]
    checkpoints: tuple[str, ...]
    passed: frozenset[tuple[str, str]]
    """Pairs of run and checkpoint."""

    def passes(self, checkpoint: str) -> int:
        return sum((run, checkpoint) in self.passed for run in self.runs)

    def passed_by(self, run: str) -> int:
        return sum((run, checkpoint) in self.passed for checkpoint in self.checkpoints)

    def solved_by(self, run: str) -> bool:
        return self.passed_by(run) == len(self.checkpoints)


def copies_among(runs: Mapping[Run, Mapping[tuple[str, str], str | None]]) -> list[Run]:
    """Runs in which every submission is known to be the same as in an earlier run: such a run is no other sample.

    `runs` has the digest of each submission by problem and checkpoint, or None where it is not known.
    """
    known: set[frozenset[tuple[tuple[str, str], str | None]]] = set()
    copies: list[Run] = []
    for run in sorted(runs):
        submissions = frozenset(runs[run].items())
        if submissions in known:
            copies.append(run)
        elif submissions and all(runs[run].values()):
            known.add(submissions)
    return copies


def samples_of(problems: Sequence[Mapping[Policy, PassTable]], copies: Sequence[str] = ()) -> Samples | None:
    """None for a single run."""
    some = [next(iter(tables.values())) for tables in problems]
    runs = sorted({run for table in some for run in table.runs})
    if len(runs) < 2:
        return None
    return Samples(
        runs=len(runs),
        copies=list(copies),
        problems=len(some),
        checkpoints=sum(len(table.checkpoints) for table in some),
        policies={policy: _estimates([tables[policy] for tables in problems], runs) for policy in problems[0]},
    )


def share_interval(passed: int, runs: int) -> Interval | None:
    return _interval(wilson(passed, runs), "wilson") if runs >= MIN_INTERVAL_RUNS else None


def _mean_interval(shares: Sequence[float]) -> Interval | None:
    return _interval(mean_bounds(shares), "t") if len(shares) >= MIN_INTERVAL_RUNS else None


def _estimates(tables: Sequence[PassTable], runs: Sequence[str]) -> PolicySamples:
    own = {run: [table for table in tables if run in table.runs] for run in runs}
    shares = [
        sum(table.passed_by(run) for table in own[run]) / sum(len(table.checkpoints) for table in own[run])
        for run in runs
    ]
    solved = [statistics.fmean(table.solved_by(run) for table in own[run]) for run in runs]
    alone = share_interval(round(sum(solved)), len(runs)) if len(tables) == 1 else None
    tasks = [(len(table.runs), table.passes(checkpoint)) for table in tables for checkpoint in table.checkpoints]
    problems = [(len(table.runs), sum(map(table.solved_by, table.runs))) for table in tables]
    return PolicySamples(
        checkpoints=_estimate(shares, tasks, _mean_interval(shares)),
        solved=_estimate(solved, problems, alone or _mean_interval(solved)),
    )


def _estimate(shares: Sequence[float], tasks: Sequence[tuple[int, int]], interval: Interval | None) -> Estimate:
    return Estimate(
        rate=statistics.fmean(shares),
        interval=interval,
        pass_at_k=_by_k(tasks, pass_at_k),
        pass_hat_k=_by_k(tasks, pass_hat_k),
        variance=statistics.variance(shares) if len(shares) >= MIN_INTERVAL_RUNS else None,
    )


def _by_k(tasks: Sequence[tuple[int, int]], chance: Callable[[int, int, int], float]) -> dict[str, float]:
    """Tasks are given as runs and passes. `k` goes up to the runs of the task with the fewest."""
    min_runs = min(runs for runs, _ in tasks)
    return {str(k): statistics.fmean(chance(runs, passed, k) for runs, passed in tasks) for k in usual_k(min_runs)}


def _interval(bounds: Bounds | None, method: Literal["wilson", "t"]) -> Interval | None:
    return Interval(low=bounds[0], high=bounds[1], method=method) if bounds else None
