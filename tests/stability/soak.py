"""Evaluate the examples many times, idle and under load, in every sandbox: every verdict has to be equal.

`make soak` does it; `python -m tests.stability.soak --help` says what can be chosen. The exit status is 1 where two
verdicts on one submission differ or one was not earned, and 3 where an evaluation came to none, or a sandbox that was
asked for cannot be had.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import platform
import shlex
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._safe_text import escape_control
from slop_code.evaluation import PytestRunner
from slop_code.execution.cache import Cache
from slop_code.execution.processors import available_cpus
from tests.conftest import SANDBOXES
from tests.stability.cases import MISSING, all_cases, chosen, environment_for
from tests.stability.pressure import pressure
from tests.stability.verdicts import differences, in_any_sandbox, messages_of, unearned, verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from slop_code.evaluation import CorrectnessResults
    from tests.stability.cases import Case

CONDITIONS = {"idle": contextlib.nullcontext, "load": pressure}
SHOWN = 10
WIDTH = 400


@dataclass(slots=True)
class Row:
    """One case in one sandbox under one condition."""

    case: str
    sandbox: str
    condition: str
    times: int = 0
    seconds: float = 0.0
    differing: list[str] = field(default_factory=list)
    """What was another verdict than before, one that was not earned, or none, in words."""

    unjudged: int = 0
    """How many of these are evaluations without a verdict."""

    repeated: int = 0
    """Tests that ran again alone, because some were starved."""

    notes: set[str] = field(default_factory=set)
    """Tests whose messages, not results, differed."""

    def again(self) -> str:
        words = ["--cases", self.case, "--sandbox", self.sandbox, "--condition", self.condition]
        return shlex.join(["python", "-m", "tests.stability.soak", *words, "--times", str(max(self.times, 2))])


class Account:
    """What came out so far; the first verdict on a case is what all others are held against."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], Row] = {}
        self._first: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def add(self, case: str, sandbox: str, condition: str, results: CorrectnessResults, kind: str = "") -> Row:
        verdict, messages = verdict_of(results), messages_of(results)
        with self._lock:
            row = self.rows.setdefault((case, sandbox, condition), Row(case, sandbox, condition))
            row.times += 1
            row.seconds += results.duration
            row.repeated += sum(bool(test.attempts) for test in results.tests)
            if results.infrastructure_failure:
                row.unjudged += 1
                why = escape_control(results.infrastructure_failure_reason or "no reason", WIDTH)
                row.differing.append(f"evaluation {row.times}: no verdict: {why}")
                return row
            anywhere = self._first.setdefault(case, in_any_sandbox(verdict))
            here = self._first.setdefault(f"{case} in {sandbox}", verdict)
            said = self._first.setdefault(f"messages of {case} in {sandbox}", messages)
            found = differences(anywhere, in_any_sandbox(verdict)) or differences(here, verdict)
            found += unearned(kind, results)
            row.differing += [f"evaluation {row.times}: {escape_control(text, WIDTH)}" for text in found]
            row.notes |= {name for name in {*said, *messages} if said.get(name) != messages.get(name)}
            return row


def soak(
    cases: Sequence[Case],
    sandboxes: Sequence[str],
    times: dict[str, int],
    *,
    cache: Cache | None = None,
    workers: int = 1,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """`times`: how often under each condition. Round by round, so that neighbours differ each time."""
    account, kept = Account(), cache or Cache.default()
    ports = threading.Lock()

    def evaluate(case: Case, sandbox: str, condition: str) -> None:
        checkpoint = case.problem.checkpoint(case.checkpoint)
        environment = environment_for(case.problem, sandbox)
        runner = PytestRunner(case.problem, checkpoint, environment, case.submission, cache=kept)
        with ports if sandbox == "none" else contextlib.nullcontext():  # without boxes all have one network
            results = runner.run()
        row = account.add(case.name, sandbox, condition, results, case.kind)
        for text in row.differing[-1:]:
            tell(f"{case.name}, {sandbox}, {condition}: {text}")

    for condition, rounds in times.items():
        with CONDITIONS[condition](), ThreadPoolExecutor(workers) as pool:
            for number in range(1, rounds + 1):
                jobs = itertools.product(cases, sandboxes)
                waiting = [pool.submit(evaluate, case, sandbox, condition) for case, sandbox in jobs]
                for one in waiting:
                    one.result()
                tell(f"{condition}: round {number} of {rounds}, {sum(row.times for row in account.rows.values())} done")
    return [account.rows[key] for key in sorted(account.rows)]


def table(rows: Sequence[Row]) -> str:
    counted = f"{'times':>6}{'differing':>11}{'repeated':>10}{'mean s':>8}"
    lines = [f"{'case':28}{'sandbox':12}{'condition':11}{counted}  messages"]
    for row in rows:
        notes = f"{len(row.notes)} differ in words" if row.notes else "equal"
        mean = row.seconds / row.times
        counts = f"{row.times:6}{len(row.differing):11}{row.repeated:10}{mean:8.2f}"
        lines.append(f"{row.case:28}{row.sandbox:12}{row.condition:11}{counts}  {notes}")
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    done, wrong = sum(row.times for row in rows), [row for row in rows if row.differing]
    if not wrong:
        repeated = sum(row.repeated for row in rows)
        return f"STABLE: {done} evaluations, every verdict equal, {repeated} tests repeated"
    lines = [f"NOT STABLE: {len(wrong)} of {len(rows)} rows of {done} evaluations"]
    for row in wrong:
        more = [f"and {len(row.differing) - SHOWN} more"] if len(row.differing) > SHOWN else []
        lines += [
            f"{row.case}, {row.sandbox}, {row.condition}:",
            *[f"  {text}" for text in row.differing[:SHOWN] + more],
        ]
        lines += [f"  again: {row.again()}"]
    return "\n".join(lines)


def as_json(rows: Sequence[Row], seconds: float) -> str:
    machine = {
        "processor": platform.machine(),
        "cores": available_cpus(),
        "system": platform.release(),
        "python": platform.python_version(),
    }
    entries = [
        {
            "case": row.case,
            "sandbox": row.sandbox,
            "condition": row.condition,
            "times": row.times,
            "mean_seconds": round(row.seconds / row.times, 3),
            "differing": row.differing,
            "without_a_verdict": row.unjudged,
            "repeated_tests": row.repeated,
            "messages_that_differ": sorted(row.notes),
        }
        for row in rows
    ]
    stable = not any(row.differing for row in rows)
    return (
        json.dumps({"machine": machine, "seconds": round(seconds), "stable": stable, "rows": entries}, indent=2) + "\n"
    )


def exit_status(rows: Sequence[Row]) -> int:
    """A verdict that differs says more than one that is missing."""
    if any(len(row.differing) > row.unjudged for row in rows):
        return 1
    return 3 if any(row.unjudged for row in rows) else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50, help="rounds under each condition (default: 50)")
    parser.add_argument("--cases", default="small", help="small, all, or names with commas (default: small)")
    parser.add_argument("--sandbox", action="append", choices=SANDBOXES, help="repeatable (default: every one)")
    parser.add_argument("--condition", action="append", choices=CONDITIONS, help="repeatable (default: both)")
    parser.add_argument("--workers", type=int, default=available_cpus(), help="at a time (default: one per processor)")
    parser.add_argument("--json", type=Path, default=Path("out/soak.json"), help="(default: out/soak.json)")
    arguments = parser.parse_args(argv)
    if arguments.times < 1:
        parser.error(f"--times: expected at least 1, found {arguments.times}")
    sandboxes = list(dict.fromkeys(arguments.sandbox or SANDBOXES))
    if reasons := [f"{name}: {why}" for name in sandboxes if (why := MISSING[name]())]:
        print("\n".join(reasons), file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix="slop-code-empty-") as empty:
        known = all_cases(Path(empty))
        try:
            cases = chosen(known, arguments.cases)
        except KeyError as unknown:
            parser.error(f"no case {unknown}; there are {', '.join(case.name for case in known)}")
        times = dict.fromkeys(arguments.condition or CONDITIONS, arguments.times)
        began = time.monotonic()
        rows = soak(
            cases, sandboxes, times, workers=arguments.workers, tell=lambda text: print(f"· {text}", flush=True)
        )
        seconds = time.monotonic() - began
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(as_json(rows, seconds), encoding="utf-8")
    print(f"\n{table(rows)}\n\n{summary(rows)}\n{seconds / 60:.1f} minutes; written: {arguments.json}")
    return exit_status(rows)


if __name__ == "__main__":
    sys.exit(main())
