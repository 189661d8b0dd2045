"""Log of every step of an evaluation, for `verbose`."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def verbose_log(verbose: bool) -> Iterator[None]:
    logger = logging.getLogger("slop_code")
    if not verbose:
        yield
        return
    level, handler = logger.level, None if logger.hasHandlers() else logging.StreamHandler()
    logger.setLevel(logging.DEBUG)
    if handler:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        if handler:
            logger.removeHandler(handler)
