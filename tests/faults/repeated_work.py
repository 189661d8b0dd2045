"""Check that finished or stored work is not repeated."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation import CorrectnessResults
from slop_code.runs.result_archive import read_archived_results
from slop_code.runs.result_cache import ResultCache
from tests.faults.baseline import RETRIES, WORKERS, digest_of
from tests.faults.plan import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.faults.campaign_folder import CampaignFolder

Stamps = dict["Path", tuple[int, int]]
EVALUATED = re.compile(r"(?m)^\[.*\] (?:NOT )?PASSED (\S+) (?!.*\(cached\))")


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """A line of the recording executor."""

    what: str
    """`begun`, or `failed`: ended without a verdict."""

    start: str
    """The evaluator that it is of."""

    attempt: int
    digest: str


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry of the store."""

    digest: str
    tests: str | None
    inode: int


def note(campaign: CampaignFolder) -> None:
    """What is there before a fault."""
    campaign.before, campaign.kept = stamps(campaign), stored(campaign)
    campaign.new_events()


def stamps(campaign: CampaignFolder) -> Stamps:
    """Which files the results of runs with a verdict are: another writing of the same content is another file."""
    found = {}
    for path in campaign.of_runs():
        with contextlib.suppress(ResultError):
            if not CorrectnessResults.load(path).infrastructure_failure:
                status = path.stat()
                found[path] = (status.st_ino, status.st_mtime_ns)
    return found


def stored(campaign: CampaignFolder) -> dict[Path, StoredEntry]:
    store, found = ResultCache(campaign.cache), {}
    for path in sorted(store.root.glob("??/[!.]*")):
        if (archive := store.get(path.name)) is not None:
            digests = read_archived_results(archive).provenance.digests
            found[path] = StoredEntry(digests.submission or "", digests.tests, path.stat().st_ino)
    return found


def repeated_work(campaign: CampaignFolder, said: str, kind: str) -> Iterator[str]:
    """`kind` is that of the fault. `said` is what the evaluator that it came over has said."""
    events, excused = campaign.new_events(), campaign.excused()
    finished = {digest_of(path.parent / "snapshot"): path for path in campaign.before if path not in campaign.touched}
    kept = {
        path: one for path, one in campaign.kept.items() if path not in campaign.spoilt and one.digest not in excused
    }
    current = {
        one.digest for one in kept.values() if one.tests == campaign.baseline.tests.get(campaign.checkpoint(one.digest))
    }
    names = {digest: str(path.parent.relative_to(campaign.top)) for digest, path in finished.items()}
    now, entries = stamps(campaign), stored(campaign)
    yield from done_again(campaign.before, now, campaign.touched)
    yield from stored_again(kept, entries)
    yield from begun_twice(events)
    yield from begun_again(events, {**dict.fromkeys(current, "one that was stored"), **names})
    yield from printed_again(said, names.values())
    if kind in SIGNALS:
        done = {digest_of(path.parent / "snapshot") for path in now} | {one.digest for one in entries.values()}
        yield from lost_to_a_signal(events, done)


def done_again(before: Stamps, after: Stamps, touched: Collection[Path]) -> Iterator[str]:
    for path, stamp in before.items():
        if path not in touched and after.get(path) != stamp:
            what = "done again" if path in after else "lost"
            yield f"{path.parent.name}: it was finished, and was {what}"


def stored_again(before: Mapping[Path, StoredEntry], after: Mapping[Path, StoredEntry]) -> Iterator[str]:
    for path, kept in before.items():
        if path not in after:
            yield f"stored {path.name[:12]} was lost"
        elif after[path].inode != kept.inode:
            yield f"stored {path.name[:12]} was written again"


def begun_twice(events: Sequence[RecordedEvent]) -> Iterator[str]:
    """In one start: another attempt only follows one that came to no verdict, and there is an end to them."""
    failed = {(one.start, one.attempt, one.digest) for one in events if one.what == "failed"}
    for one, times in Counter(one for one in events if one.what == "begun").items():
        if times > 1:
            yield f"{one.digest[:12]} was begun {times} times in one start"
        if one.attempt and (one.start, one.attempt - 1, one.digest) not in failed:
            yield f"{one.digest[:12]} was begun again in one start, and had not failed"
        if one.attempt > RETRIES:
            yield f"{one.digest[:12]} was begun again after {one.attempt} attempts"


def begun_again(events: Sequence[RecordedEvent], done: Mapping[str, str]) -> Iterator[str]:
    """`done`: by the digest, what was finished or stored before."""
    for digest in dict.fromkeys(one.digest for one in events if one.what == "begun"):
        if digest in done:
            yield f"{done[digest]} was finished, and was begun again: {digest[:12]}"


def printed_again(said: str, finished: Collection[str]) -> Iterator[str]:
    """Each evaluation is printed once, and a finished one never again."""
    for name, times in Counter(EVALUATED.findall(said)).items():
        if times > 1:
            yield f"{name} was printed {times} times"
        if name in finished:
            yield f"{name} was finished, and was printed again"


def lost_to_a_signal(events: Sequence[RecordedEvent], done: Collection[str]) -> Iterator[str]:
    """A signal costs what was running, at most; an attempt that failed by itself is no cost of its."""
    failed = Counter(one.digest for one in events if one.what == "failed")
    begun = Counter(one.digest for one in events if one.what == "begun")
    lost = [digest for digest, times in begun.items() if times > failed[digest] and digest not in done]
    if len(lost) > WORKERS:
        yield f"{len(lost)} evaluations were begun and are lost, and {WORKERS} can run at a time"
