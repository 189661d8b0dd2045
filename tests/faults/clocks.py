"""A wall clock that jumps, and files from the future or from 1970."""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.c_compiler import compile_c
from tests.faults import repeated_work
from tests.faults.campaign_folder import own
from tests.faults.ending import ending, until

if TYPE_CHECKING:
    from tests.faults.campaign_folder import CampaignFolder
    from tests.faults.ending import Ending
    from tests.faults.plan import Fault

SOURCE = Path(__file__).with_name("clock.c")
JUMPS = (-3600, 3600, -86400 * 400, 86400 * 400, -1_700_000_000, 2_000_000_000)
TIMES = (0, 1, 4_000_000_000)
MAX_FILES = 40


@functools.cache
def shim() -> str:
    """Built once."""
    target = Path(tempfile.mkdtemp(prefix="faults-clock-")) / "clock.so"
    atexit.register(shutil.rmtree, target.parent, ignore_errors=True)
    compile_c(SOURCE, target, "-shared", "-fPIC", "-ldl")
    return str(target)


def jumped(campaign: CampaignFolder, fault: Fault) -> Ending:
    """Of the evaluator's clock: it jumps at the moment, and once more a little later. No verdict hangs on it."""
    chance, file = random.Random(fault.chance), campaign.folder / "clock"
    file.write_bytes(struct.pack("l", chance.choice([0, *JUMPS])))
    evaluator = campaign.start(whole=fault.whole, LD_PRELOAD=shim(), FAULTS_CLOCK=str(file))
    for _ in range(2):
        until(campaign, fault, evaluator)
        with file.open("r+b") as stream:
            stream.write(struct.pack("l", chance.choice(JUMPS)))
    return ending(campaign, fault, evaluator)


def dated(campaign: CampaignFolder, fault: Fault) -> Ending:
    """No result is done again for the date of a file, and none is believed for it."""
    chance = random.Random(fault.chance)
    folders = [campaign.cache.root / part for part in ("tests", "tools", "results")]
    files = sorted(
        path for folder in [*folders, campaign.problem, campaign.top] for path in folder.rglob("*") if path.is_file()
    )
    for path in chance.sample(files, min(MAX_FILES, len(files))):
        own(path)
        when = chance.choice(TIMES)
        os.utime(path, (when, when))
    repeated_work.note(campaign)
    return ending(campaign, fault, campaign.start(whole=fault.whole))
