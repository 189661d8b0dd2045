"""Kills, one after the other, while the cache is cold: what is half fetched, built or copied is never used."""

from __future__ import annotations

import random
import shutil
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.execution.trees.manifest import ARCHIVES, INSTALLED
from tests.faults.ending import ending

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.faults.campaign_folder import CampaignFolder, Evaluator
    from tests.faults.ending import Ending
    from tests.faults.plan import Fault

MAX_KILLS = 4
AFTER_S = 1.0
"""Longest time from the begin of the phase to the kill."""

POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class Phase:
    removed: tuple[str, ...]
    """Parts of the cache without which it has to be done again."""

    signs: tuple[str, ...]
    """Paths of the cache, one of which is there once the phase has begun."""


BUILT = ("tools", "tests", f"uv/{INSTALLED}", "uv/environments-*")
PHASES: Mapping[str, Phase] = {
    "cold-fetch": Phase(("uv", "tools", "tests"), ("uv/.tmp*",)),
    "cold-build": Phase(BUILT, ("uv/builds-*/.tmp*", "uv/environments-*/*/*")),
    "cold-copy": Phase(("tests",), ("tests/.*/",)),
    "cold-roster": Phase(("tests",), ("sessions/*/reports",)),
}


def killed(campaign: CampaignFolder, fault: Fault) -> Ending:
    """The last of them may have ended by itself before it was killed."""
    phase, chance = PHASES[fault.kind], random.Random(fault.chance)
    cool_down(campaign.cache.root, phase)
    for _ in range(chance.randint(1, MAX_KILLS)):
        evaluator = campaign.start(whole=fault.whole)
        until_begun(campaign.cache.root, phase, evaluator)
        evaluator.wait(chance.uniform(0, AFTER_S))
        evaluator.send(signal.SIGKILL)
        evaluator.end()
    return ending(campaign, fault, evaluator, -signal.SIGKILL)


def cool_down(cache: Path, phase: Phase) -> None:
    for pattern in phase.removed:
        for path in list(cache.glob(pattern)):
            shutil.rmtree(path)
    if f"uv/{INSTALLED}" in phase.removed:
        for folder in list((cache / "uv" / ARCHIVES).glob("*/pyvenv.cfg")):
            shutil.rmtree(folder.parent)


def until_begun(cache: Path, phase: Phase, evaluator: Evaluator) -> None:
    while not any(next(cache.glob(sign), None) for sign in phase.signs):
        if evaluator.wait(POLL_S):
            return
