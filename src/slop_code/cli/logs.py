"""Log records of the package on standard error, for `-v`."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from slop_code.cli.messages import MAX_TEXT_BYTES
from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class VisibleFormatter(logging.Formatter):
    """Messages may quote a submission, so control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record), MAX_TEXT_BYTES)


@contextlib.contextmanager
def logs_on_stderr() -> Iterator[None]:
    logger, handler = logging.getLogger("slop_code"), logging.StreamHandler()
    handler.setFormatter(VisibleFormatter(FORMAT))
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
