"""(g) Start-up of the command in processor time, against an interpreter that does nothing.

`eval-snapshot --print-command` does all that an evaluation with a warm cache does before it opens the boxes.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import clean_environment, in_turns, processor_seconds, run
from benchmarks.table import Part, rows
from benchmarks.tiny import TINY, write_problem, write_submission

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.setting import Bench

TITLE = "start-up of the command"
OTHERS = "import argparse, json, hashlib, subprocess, yaml; from pydantic import BaseModel, Field, field_validator"
"""The third-party imports of every command that evaluates."""


def measure(bench: Bench) -> Part:
    program = str(Path(sys.executable).with_name("slop-code"))
    problem = write_problem(bench.folder("start") / "tiny", {"test_checkpoint_1.py": TINY})
    snapshot = write_submission(bench.folder("start") / "snapshot")
    ready = [program, "eval-snapshot", str(snapshot), "-p", str(problem.path), "-c", "1", "--print-command"]
    run(ready)  # fills the cache
    actions: dict[str, Callable[[], object]] = {
        "python -c pass": functools.partial(run, [sys.executable, "-c", "pass"]),
        "python -c 'import pydantic, yaml, ...'": functools.partial(run, [sys.executable, "-c", OTHERS]),
        "import slop_code.evaluation": functools.partial(run, [sys.executable, "-c", "import slop_code.evaluation"]),
        "slop-code --version": functools.partial(run, [program, "--version"]),
        "slop-code --help": functools.partial(run, [program, "--help"]),
        "slop-code eval-snapshot --help": functools.partial(run, [program, "eval-snapshot", "--help"]),
        "slop-code eval-snapshot, up to the boxes": functools.partial(run, ready),
        "slop-code doctor": functools.partial(tried, [program, "doctor"]),
    }
    seconds = in_turns(actions, bench.size(11, 3, 1), warm=bench.size(2, 1, 0), clock=processor_seconds)
    times = {name: [1000 * value for value in values] for name, values in seconds.items()}
    return Part("g", TITLE, tuple(rows(times, unit="ms of processor time", against="python -c pass")))


def tried(argv: list[str]) -> None:
    """Any exit status is accepted: `doctor` may report missing features of this machine."""
    subprocess.run(argv, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
