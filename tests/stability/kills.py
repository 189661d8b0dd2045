"""Evaluations in a running evaluator while its judges, templates and boxes are killed at random.

`make kills SECONDS=3600` does it. Every request has an outcome; each is the verdict that the submission earned, or an
infrastructure failure with a reason. The exit status is 1 where one is not, or where something is left over.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.throughput.growth import UNITS, leftovers, sample
from benchmarks.throughput.processor_time import descendants
from slop_code import Evaluator, EvaluatorRequest
from slop_code.evaluation import ProblemConfig
from slop_code.execution.processors import available_cpus
from tests.e2e.conftest import GOOD, KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.throughput.growth import GrowthSample
    from slop_code import EvaluatorOutcome

PROBLEM = Path(__file__).parents[1] / "problems/sums"
EXPECTED = {kind: set() if kind == "good" else {"test_adds"} for kind in KINDS}
"""Tests of checkpoint_1 that each kind of submission fails."""

SUBMISSION = b"main.py"
"""A process with this word is the submission, or stands for it in the judge: killing it is a failed test."""

MEAN_PAUSE_S = 5.0
SLICES = 10


@dataclass(slots=True)
class Account:
    outcomes: Counter[str] = field(default_factory=Counter)
    """`verdict`, `infrastructure failure`, `wrong`."""

    killed: Counter[str] = field(default_factory=Counter)
    """By the name of the program."""

    reasons: Counter[str] = field(default_factory=Counter)
    """First lines of infrastructure failures."""

    faults: list[str] = field(default_factory=list)
    samples: list[GrowthSample] = field(default_factory=list)

    def add(self, kind: str, outcome: EvaluatorOutcome) -> None:
        results = outcome.results
        if results is None:
            self.outcomes["wrong"] += 1
            self.faults.append(f"no result: {outcome.error!r}")
        elif results.infrastructure_failure:
            self.outcomes["infrastructure failure"] += 1
            reason = results.infrastructure_failure_reason or ""
            self.reasons[reason.split("\n")[0][:100]] += 1
            if not reason:
                self.faults.append("an infrastructure failure without a reason")
        elif {test.id for test in results.tests if test.status != "passed"} == EXPECTED[kind]:
            self.outcomes["verdict"] += 1
        else:
            self.outcomes["wrong"] += 1
            self.faults.append(f"{kind}: {[(test.id, test.status, test.failure_message) for test in results.tests]}")


def campaign(seconds: float, seed: int, say: Callable[[str], None], pause_s: float = MEAN_PAUSE_S) -> Account:
    """`pause_s`: mean time between two kills."""
    account, draw, before = Account(), random.Random(seed), leftovers()
    problem, numbers = ProblemConfig.from_yaml(PROBLEM), itertools.count()
    with Evaluator(available_cpus(), "local") as evaluator:
        for part in range(SLICES):
            kinds = _until(time.monotonic() + seconds / SLICES, draw)
            with _killing(account, random.Random(f"{seed} {part}"), pause_s):
                asked: list[str] = []
                requests = (_request(kind, problem, next(numbers), asked) for kind in kinds)
                for outcome in evaluator.map(requests):
                    account.add(asked[outcome.index], outcome)
            account.samples.append(sample())
            say(f"{part + 1} of {SLICES}: {dict(account.outcomes)}, killed {account.killed.total()}")
    account.faults += [f"left over: {name}" for name in sorted(leftovers() - before)]
    lost, explained = account.outcomes["infrastructure failure"], account.killed.total() * evaluator.workers
    if lost > explained:
        account.faults.append(f"{lost} infrastructure failures, at most {explained} of them after a kill")
    for name in ("descriptors", "threads", "processes"):
        first, last = getattr(account.samples[1], name), getattr(account.samples[-1], name)
        if last > 1.5 * first + 8:
            account.faults.append(f"{name} grew from {first:.0f} to {last:.0f}")
    return account


def _until(end: float, draw: random.Random) -> Iterator[str]:
    """At least one of each kind."""
    yield from EXPECTED
    while time.monotonic() < end:
        yield draw.choice(list(EXPECTED))


def _request(kind: str, problem: ProblemConfig, number: int, asked: list[str]) -> EvaluatorRequest:
    asked.append(kind)
    main = GOOD.format(name=f"{os.getpid()} {number}", plus=KINDS[kind], first="")
    return EvaluatorRequest({"main.py": main.encode()}, problem, 1)


@contextlib.contextmanager
def _killing(account: Account, draw: random.Random, pause_s: float) -> Iterator[None]:
    """Kills one process after another, with pauses of random length, until the end of the block.

    A process may serve as many evaluations as run at a time; at least half of all are spared, however slow they are.
    """
    ended, spared = threading.Event(), 2 * available_cpus()

    def kill() -> None:
        while not ended.wait(draw.expovariate(1 / pause_s)):
            targets = victims() if account.killed.total() * spared <= account.outcomes.total() else []
            if targets:
                pid, name = draw.choice(targets)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    account.killed[name] += 1

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def victims() -> list[tuple[int, str]]:
    """Processes below this one, with their names."""
    victims = []
    for process in descendants():
        with contextlib.suppress(OSError):  # it has ended
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
            if not process.is_zombie and words[0] and SUBMISSION not in words:
                victims.append((process.pid, Path(f"/proc/{process.pid}/comm").read_text().strip()))
    return victims


def report(account: Account) -> str:
    lines = [f"outcomes: {dict(account.outcomes)}", f"killed: {dict(account.killed)}"]
    lines += [f"  {count} times: {reason}" for reason, count in account.reasons.most_common()]
    lines += [f"{what}: {_series(account.samples, name)} {unit}" for name, (what, unit) in UNITS.items()]
    lines += [f"WRONG: {fault}" for fault in account.faults]
    return "\n".join(lines)


def _series(samples: Sequence[GrowthSample], name: str) -> str:
    return ", ".join(f"{getattr(each, name):.0f}" for each in samples)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    account = campaign(arguments.seconds, arguments.seed, lambda line: print(line, flush=True))
    print(report(account))
    return 1 if account.faults else 0


if __name__ == "__main__":
    sys.exit(main())
