"""Pruning of the cache: remains of killed evaluators, and on request everything that can be built again."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import DURATIONS, PLACES, Cache, remove_tree, remove_whole
from slop_code.execution.docker.engine import Engine, LabelledObject
from slop_code.execution.docker.owners import is_abandoned, remove_abandoned_locks, remove_abandoned_objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAST = "last"
"""Folder of the last result that has no folder of its own."""

RESULTS = "results"
KINDS = (
    "arrivals", DURATIONS, LAST, "layers", PLACES, "probes", "pythons", "quality", RESULTS, "runtimes", "subjects",
    "support", "tests", "tools", "users", "uv",
)  # fmt: skip
"""Folders of the cache. They are listed because the cache folder may contain other things."""


@dataclass(frozen=True, slots=True)
class FolderSize:
    entries: int = 0
    bytes: int = 0


def folder_size(folder: Path) -> FolderSize:
    """Links are not followed. Other processes may add files and remove files meanwhile."""
    entries, total = 0, 0
    with contextlib.suppress(OSError):
        entries = sum(not name.startswith(".") for name in os.listdir(folder))
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return FolderSize(entries, total)


@dataclass(frozen=True, slots=True)
class PruneAction:
    item: str
    """Path of a folder, or the name of an object of the engine."""

    engine: str | None = None
    """Command of the container engine whose object it is."""

    kept: str | None = None
    """Why it was not removed."""

    def __str__(self) -> str:
        if self.engine is None:
            return f"{self.item}: {self.kept or 'removed'}"
        return f"{self.engine}: {self.item} {self.kept or 'removed'}"


def prune_cache(cache: Cache, binary: str, *, everything: bool) -> Iterator[PruneAction]:
    """One record for each action; an InfrastructureError when everything is to be removed while evaluations run."""
    with cache.exclusive_lock() if everything else contextlib.nullcontext():
        for folder in cache.remove_abandoned_sessions():
            yield PruneAction(str(folder))
        if everything:
            for rest in cache.root.glob(".tmp*/"):  # of a prune that was killed
                remove_tree(rest)
            for kind in KINDS:
                if (cache.root / kind).is_dir():
                    remove_whole(cache.root / kind, cache.root)
                    yield PruneAction(str(cache.root / kind))
        yield from _prune_engine(cache, binary)


def _prune_engine(cache: Cache, binary: str) -> Iterator[PruneAction]:
    """Remove abandoned locks, containers, volumes and images."""
    remove_abandoned_locks(cache)
    engine = Engine(binary)
    if engine.unavailable_reason():
        return
    try:
        yield from _remove_unowned(engine)
    except InfrastructureError as error:
        yield PruneAction(binary, kept=f"left alone, {error}")


def _remove_unowned(engine: Engine) -> Iterator[PruneAction]:
    removed = remove_abandoned_objects(engine, engine.containers(), engine.volumes())
    images = [
        image for image in sorted(engine.images()) if is_abandoned(LabelledObject(image, engine.image_labels(image)))
    ]
    engine.remove(images=images)
    remaining = {*[item.name for item in [*engine.containers(), *engine.volumes()]], *engine.images()}
    for name in [*removed, *images]:
        yield PruneAction(name, engine.binary, "cannot be removed: is it in use?" if name in remaining else None)
