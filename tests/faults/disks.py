"""A disk that is full from some moment on, until there is room again."""

from __future__ import annotations

import contextlib
import os
import random
from typing import TYPE_CHECKING

from tests.faults.ending import NO_VERDICT, ending, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.campaign_folder import CampaignFolder
    from tests.faults.ending import Ending
    from tests.faults.plan import Fault

PLACES = {
    "disk-run": "runs",
    "disk-cache": "cache/results",
    "disk-sessions": "cache/sessions",
    "disk-tmp": "tmp",
}
BLOCK = 4096
ROOM = 16
"""Blocks that are left, at most."""


def filled(campaign: CampaignFolder, fault: Fault) -> Ending:
    evaluator = campaign.start(whole=fault.whole)
    until(campaign, fault, evaluator)
    with full(campaign.folder / PLACES[fault.kind], random.Random(fault.chance).randrange(ROOM)):
        return ending(campaign, fault, evaluator, NO_VERDICT)


@contextlib.contextmanager
def full(folder: Path, room: int) -> Iterator[None]:
    """The filler lies in a file without a name, as every name there may mean something to the evaluator."""
    descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR)
    try:
        size = 0
        with contextlib.suppress(OSError):
            while size < 1 << 30:
                size += os.write(descriptor, b"\0" * BLOCK)
        os.ftruncate(descriptor, max(0, size - room * BLOCK))
        yield
    finally:
        os.close(descriptor)
