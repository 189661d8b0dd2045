"""Example of rewards: what it prints."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_both_ways_give_the_same_rewards(cache):
    argv = [sys.executable, "examples/rl_reward.py"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = map(ast.literal_eval, done.stdout.splitlines())
    assert first == second
    assert first[0] == 1
    assert 0.8 < first[1] < 1
