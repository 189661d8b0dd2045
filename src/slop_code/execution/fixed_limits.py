"""Bounds that hold in every sandbox, whatever an environment says."""

from __future__ import annotations

FILE_SIZE = 2 << 30
"""For any one file of the judge or of set-up."""

HANDED = 1 << 30
"""For copies of what tests hand over, which the subject cannot fill."""

SETUP_MEMORY = 8 << 30
SETUP_PROCESSES = 1000
FEWEST_INODES = 10_000
