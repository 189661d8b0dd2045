"""The example of a training loop, where it has nothing to do; that it scores is tried with the whole runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/score_many.py"


@pytest.mark.parametrize("option", ["--count", "--workers"])
@pytest.mark.parametrize("value", ["0", "-1", "two", "²"])
def test_what_is_no_number_of_anything(option: str, value: str) -> None:
    done = subprocess.run([sys.executable, EXAMPLE, f"{option}={value}"], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"{option}: {value}: expected a number from 1" in done.stderr
