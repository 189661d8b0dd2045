"""The end of an evaluator that a fault was injected into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.campaign_folder import CampaignFolder, Evaluator
    from tests.faults.plan import Fault

USAGE, NO_VERDICT, INTERRUPTED = 2, 3, 130


@dataclass(frozen=True, slots=True)
class Ending:
    status: int
    said: str
    allowed: frozenset[int]
    breaks: tuple[str, ...] = ()
    """What the fault's own look found wrong."""


def complete(campaign: CampaignFolder, fault: Fault) -> int:
    """The exit status of an evaluation that nothing disturbed: of a run, some have not passed."""
    return 1 if fault.whole else int(campaign.submission_kind(campaign.single.snapshot).kind != "good")


def ending(campaign: CampaignFolder, fault: Fault, evaluator: Evaluator, *allowed: int) -> Ending:
    """It may also have ended before the fault, or in spite of it."""
    return Ending(evaluator.end(), evaluator.said, frozenset({complete(campaign, fault), *allowed}))


def until(campaign: CampaignFolder, fault: Fault, evaluator: Evaluator) -> None:
    """The moment of the fault, or the evaluator's end."""
    evaluator.wait(fault.moment * (campaign.baseline.run_s if fault.whole else campaign.baseline.single_s))
