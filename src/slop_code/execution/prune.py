"""Making room: what killed evaluators left, and on request everything that can be built anew."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache, remove_tree
from slop_code.execution.docker.engine import Engine, LabelledObject, is_left_over, remove_dead_owners, sweep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RESULTS = "results"
KINDS = ("arrivals", "support", "layers", "probes", RESULTS, "subjects", "tests", "tools", "users", "uv")
"""Named, as a cache's folder may be one with other things in it."""


@dataclass(frozen=True, slots=True)
class Size:
    entries: int = 0
    bytes: int = 0


def size_of(folder: Path) -> Size:
    """What is kept in a folder, while others may add to it and take from it; links are not followed."""
    entries, total = 0, 0
    with contextlib.suppress(OSError):
        entries = sum(not name.startswith(".") for name in os.listdir(folder))
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return Size(entries, total)


def prune(cache: Cache, binary: str, *, everything: bool) -> Iterator[str]:
    """One line for each thing that was done; an InfrastructureError when everything is wanted and is in use."""
    with cache.exclusive_lock() if everything else contextlib.nullcontext():
        for folder in cache.remove_abandoned_sessions():
            yield f"{folder}: removed"
        if everything:
            for kind in KINDS:
                if (cache.root / kind).is_dir():
                    remove_tree(cache.root / kind)
                    yield f"{cache.root / kind}: removed"
        yield from prune_outside(cache, binary)


def prune_outside(cache: Cache, binary: str) -> Iterator[str]:
    """Locks and what the engine has."""
    remove_dead_owners(cache)
    engine = Engine(binary)
    if engine.unavailable_reason():
        return
    try:
        yield from prune_engine(engine)
    except InfrastructureError as error:
        yield f"{binary}: left alone, {error}"


def prune_engine(engine: Engine) -> Iterator[str]:
    gone = sweep(engine, engine.containers(), engine.volumes())
    left = [
        image for image in sorted(engine.images()) if is_left_over(LabelledObject(image, engine.image_labels(image)))
    ]
    engine.remove(images=left)
    there = {*[item.name for item in [*engine.containers(), *engine.volumes()]], *engine.images()}
    for name in [*gone, *left]:
        yield f"{engine.binary}: {name} {'cannot be removed: is it in use?' if name in there else 'removed'}"
