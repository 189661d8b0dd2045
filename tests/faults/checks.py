"""The property: what is on disk is whole and right, the rest is redone, nothing is left over."""

from __future__ import annotations

import contextlib
import os
import re
import select
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation import CorrectnessResults
from slop_code.execution.backends.cgroups import PREFIX, ROOT
from slop_code.execution.tools import forget_abandoned
from slop_code.runs.lines import read_lines
from slop_code.runs.parcel import results_in
from slop_code.runs.store import Store
from tests.faults.ground import PROBLEM, RESULT, comparable, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.site import Site

GONE_S = 10
TOP = {PROBLEM, ".slop-code", "checkpoint_results.jsonl", "summary.json"}
OWN = {"lock", "origin.json", "index"}


def wrong_results(site: Site) -> Iterator[str]:
    """Every result that lies there or is stored: whole, and without a verdict or with the right one."""
    for path in site.results():
        if path in site.damaged:
            continue
        try:
            result = CorrectnessResults.load(path)
        except ResultError as error:
            yield f"not whole: {error}"
            continue
        yield from wrong(site, str(path.relative_to(site.folder)), result)
    store = Store(site.cache)
    for path in sorted(store.root.glob("??/[!.]*")):
        if (parcel := store.get(path.name)) is not None:
            yield from wrong(site, f"stored {path.name[:12]}", results_in(parcel), stored=True)


def wrong(site: Site, where: str, result: CorrectnessResults, *, stored: bool = False) -> Iterator[str]:
    if result.infrastructure_failure:
        if stored:
            yield f"{where}: a failure of the machine's was stored"
        return
    digests = result.provenance.digests
    made = site.known.get(digests.submission or "")
    if made is None:
        yield f"{where}: a verdict of a submission that was never there"
        return
    expected, found = site.ground.expected[made], comparable(result)
    if found != expected:
        keys = [name for name in expected if found.get(name) != expected[name]]
        counts = f"{result.passed_count}/{result.total}" if hasattr(result, "passed_count") else ""
        yield f"{where}: a {made.kind} submission has another verdict than it earned: {', '.join(keys)} {counts}"


def unfinished(site: Site) -> list[Path]:
    """Snapshots of the runs without a verdict of what they and their tests are now."""
    left = []
    for snapshot in site.snapshots():
        try:
            result = CorrectnessResults.load(snapshot.parent / RESULT)
        except ResultError:
            left.append(snapshot)
            continue
        digests = result.provenance.digests
        same = digests.submission == digest_of(snapshot)
        if result.infrastructure_failure or not same or digests.tests != site.ground.tests[snapshot.parent.name]:
            left.append(snapshot)
    return left


def stamps(site: Site) -> dict[Path, tuple[int, int]]:
    """Which files the results of runs with a verdict are: another writing of the same content is another file."""
    found = {}
    for path in site.of_runs():
        with contextlib.suppress(ResultError):
            if not CorrectnessResults.load(path).infrastructure_failure:
                status = path.stat()
                found[path] = (status.st_ino, status.st_mtime_ns)
    return found


def done_twice(
    before: dict[Path, tuple[int, int]], after: dict[Path, tuple[int, int]], touched: set[Path]
) -> Iterator[str]:
    for path, stamp in before.items():
        if path not in touched and after.get(path) != stamp:
            what = "done again" if path in after else "lost"
            yield f"{path.parent.name}: it was finished, and was {what}"


def begun_twice(site: Site) -> Iterator[str]:
    """Nothing that was finished is begun again, and nothing twice in one start."""
    begun = site.begun()
    finished = {digest_of(path.parent / "snapshot"): path for path in site.before if path not in site.touched}
    for digest in dict.fromkeys(begun):
        if digest in finished:
            yield f"{finished[digest].parent.relative_to(site.top)} was finished, and was begun again"


def left_running(site: Site) -> Iterator[str]:
    """Processes that name the site or have a part of it mounted, and do not end by themselves."""
    for pid in concerned(site.folder):
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(pid)
            try:  # a kill takes a moment
                if not select.select([descriptor], [], [], GONE_S)[0] and pid in concerned(site.folder):
                    yield f"process {pid} is left: {_words(pid)}"
            finally:
                os.close(descriptor)


def concerned(folder: Path) -> list[int]:
    needle, found = f"{folder}/".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            apart = os.readlink(entry / "ns/mnt") != os.readlink("/proc/self/ns/mnt")
            boxed = apart and needle in (entry / "mountinfo").read_bytes()
            if int(entry.name) != os.getpid() and (needle in words or boxed):
                found.append(int(entry.name))
    return found


def _words(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    return "gone by now"


def left_over(site: Site) -> Iterator[str]:
    """Once an undisturbed evaluation has ended after the last fault."""
    cache = site.cache.root
    yield from (f"a session: {path.name}" for path in (cache / "sessions").iterdir() if path.name != "filler")
    forget_abandoned(cache / "uv", 0.0)  # those of a killed uv go when they are old
    yield from (f"an unfinished build: {path}" for path in cache.glob("*/.*/"))
    yield from (f"in the temporary folder: {path.name}" for path in (site.folder / "tmp").iterdir())
    ours = tuple(f"{PREFIX}{pid}-" for pid in site.pids)
    for parent in (ROOT, ROOT / "memory", ROOT / "pids"):
        with contextlib.suppress(OSError):
            yield from (f"a control group: {name}" for name in os.listdir(parent) if name.startswith(ours))
    for run in site.runs:
        yield from _strays(run, TOP)
        yield from _strays(run / ".slop-code", OWN)
        for checkpoint in (run / PROBLEM).iterdir():
            yield from _strays(checkpoint, {"snapshot", RESULT, ".scbench"})
    store = Store(site.cache)
    for path in store.root.glob("??/.*"):  # those of killed writers go when they are old
        os.utime(path, (0, 0))
    store.trim()
    yield from (f"in the store: {path.name}" for path in store.root.glob("??/.*"))


def _strays(folder: Path, expected: set[str]) -> Iterator[str]:
    yield from (f"in {folder.name}: {path.name}" for path in folder.iterdir() if path.name not in expected)


def wrong_lines(site: Site) -> Iterator[str]:
    """What a finished run says of itself."""
    for run in site.runs:
        states = [line.state for line in read_lines(run / "checkpoint_results.jsonl")]
        if states != ["evaluated"] * 3:
            yield f"{run.name}/checkpoint_results.jsonl has {states}"


def broke(said: str) -> bool:
    return re.search(r"(?m)^Traceback", said) is not None
