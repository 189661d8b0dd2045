"""Folders of runs: their results, mirrored trees, locks, and files of other programs in them."""
