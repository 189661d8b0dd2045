"""The property: what is on disk is whole and right, the rest is redone, nothing is left over."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation import CorrectnessResults
from slop_code.execution.installation.tool_environment import remove_abandoned_unpacks
from slop_code.runs.checkpoint_lines import read_lines
from slop_code.runs.result_archive import read_archived_results
from slop_code.runs.result_cache import ResultCache
from tests.faults.baseline import CHECKPOINTS, PROBLEM, RESULT, comparable, digest_of
from tests.process_checks import ends, groups_of, processes_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.campaign_folder import CampaignFolder

GONE_S = 60
TOP = {PROBLEM, ".slop-code", "checkpoint_results.jsonl", "summary.json"}
OWN = {"lock", "origin.json", "index", "inputs"}


def wrong_results(campaign: CampaignFolder) -> Iterator[str]:
    """Every result that lies there or is stored: whole, and without a verdict or with the right one."""
    for path in campaign.results():
        if path in campaign.damaged:
            continue
        try:
            result = CorrectnessResults.load(path)
        except ResultError as error:
            yield f"not whole: {error}"
            continue
        yield from wrong(campaign, str(path.relative_to(campaign.folder)), result)
    store = ResultCache(campaign.cache)
    for path in sorted(store.root.glob("??/[!.]*")):
        if (archive := store.get(path.name)) is not None:
            yield from wrong(campaign, f"stored {path.name[:12]}", read_archived_results(archive), stored=True)


def wrong(campaign: CampaignFolder, where: str, result: CorrectnessResults, *, stored: bool = False) -> Iterator[str]:
    if result.infrastructure_failure:
        if stored:
            yield f"{where}: a failure of the machine's was stored"
        return
    digests = result.provenance.digests
    submission = campaign.known.get(digests.submission or "")
    if submission is None:
        yield f"{where}: a verdict of a submission that was never there"
        return
    expected, found = campaign.baseline.expected[submission], comparable(result)
    if found != expected:
        keys = [name for name in expected if found.get(name) != expected[name]]
        yield f"{where}: a {submission.kind} submission has another verdict than it earned: {', '.join(keys)}"


def unfinished(campaign: CampaignFolder) -> list[Path]:
    """Snapshots of the runs without a verdict of what they and their tests are now."""
    left = []
    for snapshot in campaign.snapshots():
        try:
            result = CorrectnessResults.load(snapshot.parent / RESULT)
        except ResultError:
            left.append(snapshot)
            continue
        digests = result.provenance.digests
        same = digests.submission == digest_of(snapshot)
        if result.infrastructure_failure or not same or digests.tests != campaign.baseline.tests[snapshot.parent.name]:
            left.append(snapshot)
    return left


def left_running(campaign: CampaignFolder) -> Iterator[str]:
    """Processes that name the campaign's folder or have a part of it mounted, and do not end by themselves."""
    for pid in processes_in(campaign.folder):
        if not ends(pid, GONE_S) and pid in processes_in(campaign.folder):
            yield f"process {pid} is left: {_words(pid)}"


def _words(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    return "gone by now"


def left_over(campaign: CampaignFolder) -> Iterator[str]:
    """Once an undisturbed evaluation has ended after the last fault."""
    cache = campaign.cache.root
    yield from (f"a session: {path.name}" for path in (cache / "sessions").iterdir())
    builds = set(cache.glob("*/.*/")) - set((cache / "uv").glob(".tmp*"))
    yield from (f"an unfinished build: {path}" for path in sorted(builds))
    yield from _temporary(campaign)
    yield from (f"in the temporary folder: {path.name}" for path in (campaign.folder / "tmp").iterdir())
    yield from (f"a control group: {group}" for pid in campaign.pids for group in groups_of(pid))
    for run in campaign.runs:
        yield from _strays(run, TOP)
        yield from _strays(run / ".slop-code", OWN)
        yield from _strays(run / PROBLEM / ".slop-code", OWN)
        for checkpoint in (run / PROBLEM).glob("[!.]*"):
            yield from _strays(checkpoint, {"snapshot", RESULT, ".scbench"})


def _temporary(campaign: CampaignFolder) -> Iterator[str]:
    """What a SIGKILL left in uv's cache or in the store may stay for an hour, and then goes."""
    store, uv = ResultCache(campaign.cache), campaign.cache.root / "uv"

    def left() -> list[Path]:
        return [*uv.glob(".tmp*"), *store.root.glob("??/.*")]

    for path in left():
        if path.lstat().st_mtime < campaign.began:
            yield f"an old temporary file: {path}"
        os.utime(path, (0, 0), follow_symlinks=False)
    remove_abandoned_unpacks(uv)
    store.trim()
    yield from (f"a temporary file stays: {path}" for path in left())


def _strays(folder: Path, expected: set[str]) -> Iterator[str]:
    yield from (f"in {folder.name}: {path.name}" for path in folder.iterdir() if path.name not in expected)


def wrong_lines(campaign: CampaignFolder) -> Iterator[str]:
    """What a finished run says of itself."""
    for run in campaign.runs:
        states = [(line.checkpoint, line.state) for line in read_lines(run / "checkpoint_results.jsonl")]
        if states != [(checkpoint, "evaluated") for checkpoint in CHECKPOINTS]:
            yield f"{run.name}/checkpoint_results.jsonl has {states}"


def broke(said: str) -> bool:
    """Interrupted before our own `main` has begun, Python says so in its own way."""
    starting = said.rstrip().endswith("KeyboardInterrupt") and ", in main\n" not in said
    return re.search(r"(?m)^Traceback", said) is not None and not starting
