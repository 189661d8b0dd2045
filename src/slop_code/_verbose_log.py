"""Log of every step, for `verbose` and `-v`."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def verbose_log(verbose: bool, formatter: logging.Formatter | None = None) -> Iterator[None]:
    """The log goes to standard error; without `formatter`, only if the calling program has no handler for it."""
    logger = logging.getLogger("slop_code")
    if not verbose:
        yield
        return
    level = logger.level
    handler = logging.StreamHandler() if formatter or not logger.hasHandlers() else None
    logger.setLevel(logging.DEBUG)
    if handler:
        handler.setFormatter(formatter)
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler:
            logger.removeHandler(handler)
