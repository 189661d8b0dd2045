"""Limits that hold in every sandbox, independent of the environment."""

from __future__ import annotations

FILE_SIZE = 2 << 30
"""Bytes of any one file of the judge or of set-up."""

HANDED_SIZE = 1 << 30
"""Bytes of all files that tests hand over; the copies are not the subject's to fill."""

SETUP_MEMORY = 8 << 30
SETUP_PROCESSES = 1000
MIN_INODES = 10_000
