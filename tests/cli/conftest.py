"""Fixtures of run folders."""

from tests.run_world import world

__all__ = ["world"]
