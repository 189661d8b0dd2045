"""A snapshot, or the problem itself, that goes or changes while it is evaluated, and then is as before."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

from tests.faults.ending import NO_VERDICT, USAGE, ending, until
from tests.faults.ground import CHECKPOINTS, KINDS, RESULT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.ending import Ending
    from tests.faults.plan import Fault
    from tests.faults.site import Site


def removed(site: Site, fault: Fault) -> Ending:
    place = site.problem if fault.kind == "problem-gone" else _snapshot(site, fault)
    away = site.folder / "away"
    evaluator = site.start(whole=fault.whole)
    until(site, fault, evaluator)
    shutil.move(place, away)
    try:
        return ending(site, fault, evaluator, NO_VERDICT, USAGE)
    finally:
        shutil.move(away, place)


def changed_snapshot(site: Site, fault: Fault) -> Ending:
    """To one with another verdict: none may be given for what was not judged from its first test to its last."""
    chance, snapshot = random.Random(fault.chance), _snapshot(site, fault)
    kind = chance.choice([kind for kind in KINDS if kind != site.made(snapshot).kind])
    _touch(site, snapshot)
    evaluator = site.start(whole=fault.whole)
    until(site, fault, evaluator)
    _replace(site, snapshot, kind)
    try:
        return ending(site, fault, evaluator, NO_VERDICT, 0, 1)
    finally:
        _replace(site, snapshot, None)


def changed_problem(site: Site, fault: Fault) -> Ending:
    chance = random.Random(fault.chance)
    path = site.problem / "tests" / f"test_{chance.choice(CHECKPOINTS)}.py"
    site.touched.update(snapshot.parent / RESULT for snapshot in site.snapshots())
    evaluator = site.start(whole=fault.whole)
    until(site, fault, evaluator)
    before = path.read_text()
    _put(path, f"{before}# {fault.chance}\n")
    try:
        return ending(site, fault, evaluator, NO_VERDICT)
    finally:
        _put(path, before)


def _snapshot(site: Site, fault: Fault) -> Path:
    return random.Random(fault.chance).choice(site.snapshots()) if fault.whole else site.single.snapshot


def _touch(site: Site, snapshot: Path) -> None:
    if snapshot != site.single.snapshot:
        site.touched.add(snapshot.parent / RESULT)


def _replace(site: Site, snapshot: Path, kind: str | None) -> None:
    """In one step: it is the one or the other, never half of each."""
    new = site.folder / "runs/new"
    site.others.add(site.write(new, kind, of=snapshot))
    (new / "main.py").replace(snapshot / "main.py")


def _put(path: Path, text: str) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.replace(path)
