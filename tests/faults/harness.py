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

from tests.faults import checks, clocks, daemon, damage, disks, plan, repeats, signals, sources
from tests.faults.ground import Ground
from tests.faults.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.faults.ending import Ending
    from tests.faults.plan import Campaign, Fault

PERFORM: Mapping[str, Callable[[Site, Fault], Ending]] = {
    **dict.fromkeys(plan.SIGNALS, signals.signalled),
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
    "daemon-hidden": daemon.hidden,
    "daemon-killed": daemon.killed,
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


def run_campaign(ground: Ground, campaign: Campaign, *, disks: bool) -> Iterator[Record]:
    folder = Path(tempfile.mkdtemp(prefix="c", dir=ground.folder))
    site = Site(ground, folder / "site", disks=disks)
    try:
        for fault in campaign.faults:
            began = time.monotonic()
            status, breaks = attempt(site, fault, last=fault is campaign.faults[-1])
            yield Record(campaign.number, fault, status, tuple(breaks), time.monotonic() - began)
            if breaks:
                return  # what comes after would be about this one
    finally:
        site.close()
        shutil.rmtree(folder, ignore_errors=True)


def attempt(site: Site, fault: Fault, *, last: bool) -> tuple[int, list[str]]:
    """The evaluator's exit status, and what is broken; a harness that stumbles has shown nothing."""
    try:
        found, breaks = perform(site, fault)
        if last or not checks.unfinished(site):
            breaks += finish(site)
            site.round += 1
            site.begin_round()
    except Exception:  # noqa: BLE001
        return -1, [f"the harness itself: {traceback.format_exc()}"]
    return found.status, breaks


def perform(site: Site, fault: Fault) -> tuple[Ending, list[str]]:
    """What is broken when it is over."""
    repeats.note(site)
    found = PERFORM[fault.kind](site, fault)
    breaks = list(found.breaks)
    tail = f"\n{found.said[-TAIL:]}"
    if found.status not in found.allowed:
        breaks.append(f"exit status {found.status} is none of {sorted(found.allowed)}:{tail}")
    if checks.broke(found.said):
        breaks.append(f"a traceback:{tail}")
    breaks += [f"{text}{tail}" for text in look(site, found.said, fault.kind)]
    return found, breaks


def look(site: Site, said: str, kind: str = "") -> Iterator[str]:
    yield from checks.wrong_results(site)
    yield from repeats.repeats(site, said, kind)
    yield from checks.left_running(site)


def finish(site: Site) -> list[str]:
    """Started again without any fault: all is right, a further start has nothing to do, and nothing is left over."""
    repeats.note(site)
    said, breaks = "", []
    for whole in [*([True] if checks.unfinished(site) else []), *([False] if site.alone else [])]:
        evaluator = site.start(whole=whole)
        wanted = 1 if whole else int(site.made(site.single.snapshot).kind != "good")
        if (status := evaluator.end()) != wanted:
            breaks.append(f"started again without a fault, it ends with {status}:\n{evaluator.said[-TAIL:]}")
        said += evaluator.said if whole else ""
    site.damaged.clear()
    if left := checks.unfinished(site):
        breaks.append(f"started again without a fault, no verdict for {[str(path) for path in left]}")
    breaks += look(site, said)
    for excuses in (site.touched, site.spoilt, site.others):
        excuses.clear()
    if breaks:
        return breaks
    repeats.note(site)
    again = site.start(whole=True)
    if again.end() != 1 or site.hear():
        breaks.append(f"there was nothing left to do, and it did something:\n{again.said[-TAIL:]}")
    status, said = site.calm("verify", *map(str, [*site.runs, *([site.single.output] if site.alone else [])]))
    if status != 0:
        breaks.append(f"verify objects:\n{said[-TAIL:]}")
    return [*breaks, *look(site, again.said), *checks.wrong_lines(site), *checks.left_over(site), *_in_daemon(site)]


def _in_daemon(site: Site) -> list[str]:
    return list(daemon.left_in_daemon(site)) if site.ground.sandbox == "docker" else []


@contextlib.contextmanager
def grounded(sandbox: str) -> Iterator[Ground]:
    """On a disk, beside the user's own cache, so that its parts can be linked."""
    folder = Path(tempfile.mkdtemp(prefix="slop-code-faults-", dir=os.environ.get("FAULTS_DIR", "/var/tmp")))
    try:
        ground = Ground(folder, sandbox)
        if sandbox == "docker":
            daemon.connect(ground)
        ground.prepare()
        yield ground
    finally:
        shutil.rmtree(folder, ignore_errors=True)
