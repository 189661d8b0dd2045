"""Signals, to the evaluator alone or to its whole group as a terminal sends them."""

from __future__ import annotations

import random
import signal
from typing import TYPE_CHECKING

from tests.faults.ending import INTERRUPTED, ending, until

if TYPE_CHECKING:
    from tests.faults.campaign_folder import CampaignFolder
    from tests.faults.ending import Ending
    from tests.faults.plan import Fault

AGAIN_S = 0.5


def signalled(campaign: CampaignFolder, fault: Fault) -> Ending:
    name, _, how = fault.kind.partition("-")
    number = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT}[name]
    evaluator = campaign.start(whole=fault.whole)
    until(campaign, fault, evaluator)
    evaluator.send(number, group=how == "group")
    if how == "twice":
        evaluator.wait(random.Random(fault.chance).uniform(0, AGAIN_S))
        evaluator.send(number)
    # Before it can listen to any, a signal ends it as it ends every program.
    return ending(campaign, fault, evaluator, -number, *([INTERRUPTED] if name != "kill" else []))
