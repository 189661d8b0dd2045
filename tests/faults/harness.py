"""Campaigns: each fault is performed, looked at, and the evaluation started again, until all is done."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults import checks, clocks, cold, daemon, damage, disks, plan, repeated_work, signals, sources
from tests.faults.baseline import Baseline
from tests.faults.campaign_folder import CampaignFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.faults.ending import Ending
    from tests.faults.plan import Campaign, Fault

PERFORM: Mapping[str, Callable[[CampaignFolder, Fault], Ending]] = {
    **dict.fromkeys(plan.SIGNALS, signals.signalled),
    **dict.fromkeys(plan.COLD, cold.killed),
    **dict.fromkeys(plan.DISKS, disks.filled),
    "cache-before": damage.of_cache,
    "cache-during": damage.of_cache,
    "result": damage.of_results,
    "raw": damage.of_raw,
    "index": damage.of_summary,
    "summary": damage.of_summary,
    "clock": clocks.jumped,
    "mtimes": clocks.dated,
    "snapshot-gone": sources.removed,
    "problem-gone": sources.removed,
    "snapshot-changed": sources.changed_snapshot,
    "problem-changed": sources.changed_problem,
    "daemon-hidden": daemon.hide_daemon,
    "daemon-killed": daemon.kill_daemon,
}
OUTCOMES = {0: "finished", 1: "finished", 2: "refused", 3: "no verdict"}
TAIL = 1500


@dataclass(frozen=True, slots=True)
class Record:
    """One fault, and what became of it."""

    campaign: int
    fault: Fault
    status: int
    breaks: tuple[str, ...]
    seconds: float

    @property
    def outcome(self) -> str:
        return "broken" if self.breaks else OUTCOMES.get(self.status, "stopped")


def run_campaign(baseline: Baseline, planned: Campaign, *, disks: bool) -> Iterator[Record]:
    folder = Path(tempfile.mkdtemp(prefix="c", dir=baseline.folder))
    campaign = CampaignFolder(baseline, folder / "site", disks=disks)
    try:
        for fault in planned.faults:
            began = time.monotonic()
            status, breaks = attempt(campaign, fault, last=fault is planned.faults[-1])
            yield Record(planned.number, fault, status, tuple(breaks), time.monotonic() - began)
            if breaks:
                return  # what comes after would be about this one
    finally:
        campaign.close()
        shutil.rmtree(folder, ignore_errors=True)


def attempt(campaign: CampaignFolder, fault: Fault, *, last: bool) -> tuple[int, list[str]]:
    """The evaluator's exit status, and what is broken; a harness that stumbles has shown nothing."""
    try:
        found, breaks = perform(campaign, fault)
        if last or not checks.unfinished(campaign):
            breaks += finish(campaign)
            campaign.round += 1
            campaign.begin_round()
    except Exception:  # noqa: BLE001
        return -1, [f"the harness itself: {traceback.format_exc()}"]
    return found.status, breaks


def perform(campaign: CampaignFolder, fault: Fault) -> tuple[Ending, list[str]]:
    """What is broken when it is over."""
    repeated_work.note(campaign)
    found = PERFORM[fault.kind](campaign, fault)
    breaks = list(found.breaks)
    tail = f"\n{found.said[-TAIL:]}"
    if found.status not in found.allowed:
        breaks.append(f"exit status {found.status} is none of {sorted(found.allowed)}:{tail}")
    if checks.broke(found.said):
        breaks.append(f"a traceback:{tail}")
    breaks += [f"{text}{tail}" for text in look(campaign, found.said, fault.kind)]
    return found, breaks


def look(campaign: CampaignFolder, said: str, kind: str = "") -> Iterator[str]:
    yield from checks.wrong_results(campaign)
    yield from repeated_work.repeated_work(campaign, said, kind)
    yield from checks.left_running(campaign)


def finish(campaign: CampaignFolder) -> list[str]:
    """Started again without any fault: all is right, a further start has nothing to do, and nothing is left over."""
    repeated_work.note(campaign)
    said, breaks = "", []
    for whole in [*([True] if checks.unfinished(campaign) else []), *([False] if campaign.alone else [])]:
        evaluator = campaign.start(whole=whole)
        wanted = 1 if whole else int(campaign.submission_kind(campaign.single.snapshot).kind != "good")
        if (status := evaluator.end()) != wanted:
            breaks.append(f"started again without a fault, it ends with {status}:\n{evaluator.said[-TAIL:]}")
        said += evaluator.said if whole else ""
    campaign.damaged.clear()
    if left := checks.unfinished(campaign):
        breaks.append(f"started again without a fault, no verdict for {[str(path) for path in left]}")
    breaks += look(campaign, said)
    for excuses in (campaign.touched, campaign.spoilt, campaign.others):
        excuses.clear()
    if breaks:
        return breaks
    repeated_work.note(campaign)
    again = campaign.start(whole=True)
    if again.end() != 1 or campaign.new_events():
        breaks.append(f"there was nothing left to do, and it did something:\n{again.said[-TAIL:]}")
    status, said = campaign.calm(
        "verify", *map(str, [*campaign.runs, *([campaign.single.output] if campaign.alone else [])])
    )
    if status != 0:
        breaks.append(f"verify objects:\n{said[-TAIL:]}")
    return [
        *breaks,
        *look(campaign, again.said),
        *checks.wrong_lines(campaign),
        *checks.left_over(campaign),
        *_in_daemon(campaign),
    ]


def _in_daemon(campaign: CampaignFolder) -> list[str]:
    return list(daemon.left_in_daemon(campaign)) if campaign.baseline.sandbox == "docker" else []


@contextlib.contextmanager
def prepared_baseline(sandbox: str) -> Iterator[Baseline]:
    """On a disk, beside the user's own cache, so that its parts can be linked."""
    folder = Path(tempfile.mkdtemp(prefix="slop-code-faults-", dir=os.environ.get("FAULTS_DIR", "/var/tmp")))
    try:
        baseline = Baseline(folder, sandbox)
        if sandbox == "docker":
            daemon.connect(baseline)
        baseline.prepare()
        yield baseline
    finally:
        shutil.rmtree(folder, ignore_errors=True)
