"""Marks of parameters: those that take long and show what another one shows are left to `make long`."""

from __future__ import annotations

import pytest


def in_long(*values: object) -> list[object]:
    """A tuple has the values of several parameters."""
    params = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*values, marks=pytest.mark.long) for values in params]
