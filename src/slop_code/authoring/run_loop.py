"""The inner loop of writing tests: a solution against one checkpoint, and again when a file has changed."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.stability.conditions import SPINNERS_PER_CPU, with_pairs
from slop_code.authoring.check.workbench import SOLUTIONS, environment_for
from slop_code.errors import UsageError
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.cancellation import wait_for
from slop_code.execution.concurrency import available_cpus
from slop_code.execution.process import cpu_load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.progress_events import ProgressCallback

    Seen = Mapping[str, tuple[int, int, int]]
    """What tells one state of a file from another, by its path."""

LOOK_S = 0.5
MAX_FILES = 50_000
IGNORED = ("__pycache__", "node_modules")
INTERRUPTED = 2
"""pytest's status when a person ends it, as by leaving the debugger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is run, each time."""

    checkpoint: str | None = None
    """None: the last one."""

    solution: Path | None = None
    """None: the reference."""

    environment: str | None = None
    pytest_args: Sequence[str] = ()
    seed: int | None = None
    busy: bool = False
    pairs: int = 1
    interactive: bool = False
    """Tests stop in a debugger that reads our standard input."""


def checkpoint_of(problem: ProblemConfig, turn: RunOptions) -> CheckpointConfig:
    return problem.checkpoint(turn.checkpoint or list(problem.checkpoints)[-1])


def solution_of(problem: ProblemConfig, turn: RunOptions) -> Path:
    return turn.solution or problem.path / SOLUTIONS / checkpoint_of(problem, turn).name


def run_turn(
    problem: ProblemConfig, turn: RunOptions, progress: ProgressCallback, follow: Callable[[bytes], None]
) -> CorrectnessResults:
    """`follow` is given what pytest prints, as it is printed."""
    environment = environment_for(problem, turn.environment)
    solution = solution_of(problem, turn)
    if not os.path.isdir(solution):
        raise UsageError(f"{solution}: no such folder; write the reference there, or give --solution")
    runner = PytestRunner(
        with_pairs(problem, turn.pairs),
        checkpoint_of(problem, turn),
        environment,
        solution,
        progress=progress,
        max_pairs=turn.pairs,
        follow=follow,
        seed=turn.seed,
        interactive=turn.interactive,
    )
    with cpu_load(SPINNERS_PER_CPU * available_cpus()) if turn.busy else contextlib.nullcontext():
        return runner.run([*turn.pytest_args, *(["--pdb"] if turn.interactive else [])])


def was_left(results: CorrectnessResults, turn: RunOptions) -> bool:
    """Whether the debugger was left before the end of the tests, which is nobody's failure."""
    return turn.interactive and results.pytest_exit_code == INTERRUPTED and bool(results.tests)


def look(folders: Sequence[Path]) -> Seen:
    """The files as they are now; what editors and Python put beside them is left out."""
    found = {}
    for path in _files(folders):
        with contextlib.suppress(OSError):  # it has just been renamed
            state = os.lstat(path)
            found[path] = (state.st_mtime_ns, state.st_size, state.st_ino)
        if len(found) >= MAX_FILES:
            break
    return found


def _files(folders: Sequence[Path]) -> Iterator[str]:
    for folder in folders:
        for place, names, files in os.walk(folder):
            names[:] = [name for name in names if name not in IGNORED and not name.startswith(".")]
            yield from (os.path.join(place, name) for name in files if is_watched(name))


def is_watched(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(("~", ".swp", ".swx", ".tmp", ".pyc"))


def changed_since(before: Seen, now: Seen) -> list[str]:
    """Files that are other ones, new or gone."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def wait_for_change(folders: Sequence[Path], before: Seen, every: float = LOOK_S) -> list[str]:
    """Until something is another than it was, and stays so from one look to the next: an editor may write twice."""
    last, now = before, look(folders)
    while not (changed := changed_since(before, now)) or now != last:
        wait_for(None, every)
        last, now = now, look(folders)
    return changed
