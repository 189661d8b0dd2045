"""Marks of parameters: what says the same as another one, and takes long, is left to `make proof`."""

from __future__ import annotations

import pytest


def in_proof(*values: object) -> list[object]:
    return [pytest.param(value, marks=pytest.mark.proof) for value in values]
