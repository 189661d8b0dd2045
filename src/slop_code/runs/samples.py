"""What several runs of the same problems say together."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from slop_code.evaluation.report import Stored
from slop_code.runs.statistics import Bounds, mean_bounds, pass_at_k, usual_k, wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slop_code.evaluation.policy import Policy


class Figures(BaseModel):
    """Numbers alone, by names of our own: made by the thousand, and nothing in them has to be made storable."""

    model_config = Stored.model_config


class Interval(Figures):
    """95 % confidence."""

    low: float
    high: float
    method: Literal["wilson", "t"]


class Estimate(Figures):
    rate: float
    """The mean over runs."""
    interval: Interval | None
    """None from a single run."""
    pass_at_k: dict[str, float]
    """By k: the chance that at least one of k runs passes, mean over tasks."""


class PolicySamples(Figures):
    checkpoints: Estimate
    """A task is a checkpoint."""
    solved: Estimate
    """A task is a whole problem: every checkpoint of it passed in the same run."""


class Samples(Figures):
    runs: int
    problems: int
    checkpoints: int
    policies: dict[str, PolicySamples]


@dataclass(frozen=True, slots=True)
class PassTable:
    """Who passed what of one problem, by one policy. A checkpoint that a run does not have is not passed by it."""

    runs: tuple[str, ...]
    checkpoints: tuple[str, ...]
    passed: frozenset[tuple[str, str]]
    """Of run and checkpoint."""

    def passes(self, checkpoint: str) -> int:
        return sum((run, checkpoint) in self.passed for run in self.runs)

    def passed_by(self, run: str) -> int:
        return sum((run, checkpoint) in self.passed for checkpoint in self.checkpoints)

    def solved_by(self, run: str) -> bool:
        return self.passed_by(run) == len(self.checkpoints)


def samples_of(problems: Sequence[Mapping[Policy, PassTable]]) -> Samples | None:
    """None where there is one run alone."""
    some = [next(iter(sheets.values())) for sheets in problems]
    runs = sorted({run for sheet in some for run in sheet.runs})
    if len(runs) < 2:
        return None
    return Samples(
        runs=len(runs),
        problems=len(some),
        checkpoints=sum(len(sheet.checkpoints) for sheet in some),
        policies={policy: _estimates([sheets[policy] for sheets in problems], runs) for policy in problems[0]},
    )


def share_interval(passed: int, runs: int) -> Interval | None:
    return _interval(wilson(passed, runs), "wilson") if runs > 1 else None


def _estimates(sheets: Sequence[PassTable], runs: Sequence[str]) -> PolicySamples:
    own = {run: [sheet for sheet in sheets if run in sheet.runs] for run in runs}
    shares = [
        sum(sheet.passed_by(run) for sheet in own[run]) / sum(len(sheet.checkpoints) for sheet in own[run])
        for run in runs
    ]
    solved = [statistics.fmean(sheet.solved_by(run) for sheet in own[run]) for run in runs]
    alone = share_interval(round(sum(solved)), len(runs)) if len(sheets) == 1 else None
    tasks = [(len(sheet.runs), sheet.passes(checkpoint)) for sheet in sheets for checkpoint in sheet.checkpoints]
    problems = [(len(sheet.runs), sum(map(sheet.solved_by, sheet.runs))) for sheet in sheets]
    return PolicySamples(
        checkpoints=Estimate(
            rate=statistics.fmean(shares), interval=_interval(mean_bounds(shares), "t"), pass_at_k=_by_k(tasks)
        ),
        solved=Estimate(
            rate=statistics.fmean(solved),
            interval=alone or _interval(mean_bounds(solved), "t"),
            pass_at_k=_by_k(problems),
        ),
    )


def _by_k(tasks: Iterable[tuple[int, int]]) -> dict[str, float]:
    """Of tasks as runs and passes; `k` goes as far as the task with the fewest runs."""
    counted = list(tasks)
    fewest = min(runs for runs, _ in counted)
    return {str(k): statistics.fmean(pass_at_k(runs, passed, k) for runs, passed in counted) for k in usual_k(fewest)}


def _interval(bounds: Bounds | None, method: Literal["wilson", "t"]) -> Interval | None:
    return Interval(low=bounds[0], high=bounds[1], method=method) if bounds else None
