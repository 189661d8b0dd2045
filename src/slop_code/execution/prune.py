"""Making room: what killed evaluators left, and on request everything that can be built anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.backends.engine import Engine, Item, forget_owners, is_left_over, sweep
from slop_code.execution.cache import Cache, remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT = ("layers", "subjects", "tests", "tools", "users", "kits", "uv", "probes")


def prune(cache: Cache, binary: str, *, everything: bool) -> Iterator[str]:
    """One line for each thing that was done."""
    with cache.session():
        yield "sessions of killed evaluators: removed"
    if everything:
        for kind in KEPT:
            if (cache.root / kind).is_dir():
                remove_tree(cache.root / kind)
                yield f"{cache.root / kind}: removed"
    forget_owners(cache)
    engine = Engine(binary)
    if engine.missing():
        return
    try:
        yield from prune_engine(engine)
    except InfrastructureError as error:
        yield f"{binary}: left alone, {error}"


def prune_engine(engine: Engine) -> Iterator[str]:
    for name in sweep(engine, engine.containers(), engine.volumes()):
        yield f"{engine.binary}: {name} removed"
    for image in engine.images():
        if is_left_over(Item(image, engine.image_labels(image))):
            engine.remove(images=[image])
            yield f"{engine.binary}: image {image[:19]} removed"
