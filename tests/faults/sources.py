"""A snapshot, or the problem itself, that goes or changes while it is evaluated, and then is as before."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

from tests.faults.baseline import CHECKPOINTS, KINDS, RESULT
from tests.faults.ending import NO_VERDICT, USAGE, ending, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.campaign_folder import CampaignFolder
    from tests.faults.ending import Ending
    from tests.faults.plan import Fault


def removed(campaign: CampaignFolder, fault: Fault) -> Ending:
    folder = campaign.problem if fault.kind == "problem-gone" else _snapshot(campaign, fault)
    away = campaign.folder / "away"
    evaluator = campaign.start(whole=fault.whole)
    until(campaign, fault, evaluator)
    shutil.move(folder, away)
    try:
        return ending(campaign, fault, evaluator, NO_VERDICT, USAGE)
    finally:
        shutil.move(away, folder)


def changed_snapshot(campaign: CampaignFolder, fault: Fault) -> Ending:
    """To one with another verdict: none may be given for what was not judged from its first test to its last."""
    chance, snapshot = random.Random(fault.chance), _snapshot(campaign, fault)
    kind = chance.choice([kind for kind in KINDS if kind != campaign.submission_kind(snapshot).kind])
    _touch(campaign, snapshot)
    evaluator = campaign.start(whole=fault.whole)
    until(campaign, fault, evaluator)
    _replace(campaign, snapshot, kind)
    try:
        return ending(campaign, fault, evaluator, NO_VERDICT, 0, 1)
    finally:
        _replace(campaign, snapshot, None)


def changed_problem(campaign: CampaignFolder, fault: Fault) -> Ending:
    chance = random.Random(fault.chance)
    path = campaign.problem / "tests" / f"test_{chance.choice(CHECKPOINTS)}.py"
    campaign.touched.update(snapshot.parent / RESULT for snapshot in campaign.snapshots())
    evaluator = campaign.start(whole=fault.whole)
    until(campaign, fault, evaluator)
    before = path.read_text()
    _put(path, f"{before}# {fault.chance}\n")
    try:
        return ending(campaign, fault, evaluator, NO_VERDICT)
    finally:
        _put(path, before)


def _snapshot(campaign: CampaignFolder, fault: Fault) -> Path:
    return random.Random(fault.chance).choice(campaign.snapshots()) if fault.whole else campaign.single.snapshot


def _touch(campaign: CampaignFolder, snapshot: Path) -> None:
    if snapshot != campaign.single.snapshot:
        campaign.touched.add(snapshot.parent / RESULT)


def _replace(campaign: CampaignFolder, snapshot: Path, kind: str | None) -> None:
    """In one step: it is the one or the other, never half of each."""
    new = campaign.folder / "runs/new"
    campaign.others.add(campaign.write(new, kind, of=snapshot))
    (new / "main.py").replace(snapshot / "main.py")


def _put(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)
