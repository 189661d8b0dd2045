"""Score many completions of a model, as a training loop does: a reward for each, a bounded number at a time.

    python examples/score_many.py --count 1000 --workers 8

The completions here are made up; in a training loop they come from the model, and `score` is all that is needed.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code import CheckpointFacts, Submission, evaluate_run_async, load_environment, load_problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

PROBLEM = {
    "config.yaml": """
name: total
version: 1
description: Add up the numbers that are given as arguments.
tags: [example]
entry_file: main.py
timeout: 10
checkpoints:
  checkpoint_1: {order: 1}
""",
    "tests/conftest.py": """
import shlex
import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--entrypoint", required=True)
    parser.addoption("--checkpoint", required=True)


@pytest.fixture(scope="session")
def total(request):
    entrypoint = shlex.split(request.config.getoption("--entrypoint"))
    return lambda *numbers: subprocess.run([*entrypoint, *numbers], capture_output=True, text=True)
""",
    "tests/test_checkpoint_1.py": """
import pytest


@pytest.mark.parametrize(("numbers", "expected"), [(["1", "2"], "3"), (["-4", "1"], "-3"), ([], "0")])
def test_total(total, numbers, expected):
    assert total(*numbers).stdout.strip() == expected


@pytest.mark.error
def test_no_number(total):
    assert total("one").returncode == 2
""",
}

RIGHT = """
import sys

try:
    print(sum(map(int, sys.argv[1:])))
except ValueError:
    sys.exit(2)
"""
COMPLETIONS = {
    "right": {"main.py": RIGHT},
    "no negatives": {
        "main.py": RIGHT.replace("map(int, sys.argv[1:])", "abs(int(word)) for word in sys.argv[1:]"),
    },
    "no errors": {"main.py": "import sys\nprint(sum(map(int, sys.argv[1:])))\n"},
    "nothing": {"main.py": "pass\n"},
    "no Python": {"main.py": "I would add up the numbers.\n"},
    "no package": {"main.py": RIGHT, "requirements.txt": "a-package-that-nobody-has-published\n"},
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def make_submissions(folder: Path, count: int) -> list[Submission]:
    """Each another one: what was scored before would come from the result cache, without running."""
    problem = load_problem(write(folder / "problem", PROBLEM))
    checkpoint, environment = problem.checkpoint(1), load_environment("local")
    kinds, stamp = list(COMPLETIONS.values()), time.time_ns()
    return [
        Submission(
            problem=problem,
            checkpoint=checkpoint,
            environment=environment,
            path=write(folder / str(number), {**kinds[number % len(kinds)], "unique": f"{stamp} {number}\n"}),
        )
        for number in range(count)
    ]


def reward(facts: CheckpointFacts) -> float | None:
    """The share of tests that pass; None where there is no verdict: that says nothing about the completion.

    A completion that cannot be set up by its own fault has a verdict, in which every test failed, and so its reward
    is 0. Otherwise a model could learn to cancel a bad reward with a package that does not exist.
    """
    total = sum(facts.total_counts.values())
    if facts.state != "evaluated" or not total:
        return None
    return sum(facts.pass_counts.values()) / total


async def score(submissions: Sequence[Submission], workers: int | None) -> AsyncIterator[tuple[Path, float | None]]:
    """Rewards as they come, in any order. Cancelling it ends whatever still runs."""
    async for outcome in evaluate_run_async(submissions, workers=workers):
        yield outcome.submission.path, reward(outcome.facts)


async def main(count: int, workers: int | None) -> None:
    with tempfile.TemporaryDirectory(prefix="score-many-") as folder:
        submissions = make_submissions(Path(folder), count)
        rewards: dict[Path, float | None] = {}
        began = time.monotonic()
        async for path, value in score(submissions, workers):
            rewards[path] = value
            each = (time.monotonic() - began) / len(rewards)
            print(f"{len(rewards)} of {count}: {value}, {each:.3f} s each", file=sys.stderr, flush=True)
        seconds = time.monotonic() - began
    for first, kind in enumerate(COMPLETIONS):
        counts = Counter(rewards[submission.path] for submission in submissions[first :: len(COMPLETIONS)])
        print(f"{kind:14}", ", ".join(f"{times} with {value}" for value, times in counts.items()))
    known = [value for value in rewards.values() if value is not None]
    print(f"{len(known)} rewards, {count - len(known)} without a verdict, mean {statistics.fmean(known or [0]):.3f}")
    print(f"{seconds:.1f} s, {seconds / count:.3f} s each")


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 1")
    return int(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=positive, default=1000, help="completions to score (default: 1000)")
    parser.add_argument("--workers", type=positive, help="at a time (default: one per processor)")
    given = parser.parse_args()
    asyncio.run(main(given.count, given.workers))
