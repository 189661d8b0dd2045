"""`problems run`: the tests of a checkpoint against a solution, repeated when a file changes."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.stability.conditions import SPINNERS_PER_CPU, with_pairs
from slop_code.authoring.problem_folders import SOLUTIONS, environment_for
from slop_code.errors import UsageError
from slop_code.evaluation.pytest_arguments import refuse_empty_selection
from slop_code.evaluation.pytest_runner import PytestRunner
from slop_code.execution.cancellation import wait_for
from slop_code.execution.process import cpu_load
from slop_code.execution.processors import available_cpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.execution.progress_events import ProgressCallback

    FileStates = Mapping[str, tuple[int, int, int]]
    """Modification time, size and inode by path."""

POLL_SECONDS = 0.5
MAX_FILES = 50_000
IGNORED = ("__pycache__", "node_modules")
INTERRUPTED = 2
"""pytest's exit code when a user ends it, for example by leaving the debugger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    checkpoint: str | None = None
    """None stands for the last checkpoint."""

    solution: Path | None = None
    """None stands for the reference."""

    environment: str | None = None
    pytest_args: Sequence[str] = ()
    seed: int | None = None
    busy: bool = False
    pairs: int = 1
    interactive: bool = False
    """Failed tests open a debugger on our standard input."""


def chosen_checkpoint(problem: ProblemConfig, options: RunOptions) -> CheckpointConfig:
    return problem.checkpoint(options.checkpoint or list(problem.checkpoints)[-1])


def solution_of(problem: ProblemConfig, options: RunOptions) -> Path:
    return options.solution or problem.path / SOLUTIONS / chosen_checkpoint(problem, options).name


def run_solution(
    problem: ProblemConfig,
    options: RunOptions,
    progress: ProgressCallback,
    follow: Callable[[bytes], None] | None = None,
) -> CorrectnessResults:
    """`follow` gets the output of pytest as it is printed."""
    environment = environment_for(problem, options.environment)
    solution = solution_of(problem, options)
    if not os.path.isdir(solution):
        raise UsageError(f"{solution}: no such folder; write the reference there, or give --solution")
    runner = PytestRunner(
        with_pairs(problem, options.pairs),
        chosen_checkpoint(problem, options),
        environment,
        solution,
        progress=progress,
        max_pairs=options.pairs,
        follow=follow,
        seed=options.seed,
        interactive=options.interactive,
        repeat_starved=not options.busy,
    )
    with cpu_load(SPINNERS_PER_CPU * available_cpus() if options.busy else 0):
        results = runner.run([*options.pytest_args, *(["--pdb"] if options.interactive else [])])
    refuse_empty_selection(results)
    return results


def debugger_was_left(results: CorrectnessResults, options: RunOptions) -> bool:
    """True where the user left the debugger before the end of the tests, which is no failure."""
    return options.interactive and results.pytest_exit_code == INTERRUPTED and bool(results.tests)


def file_states(folders: Sequence[Path]) -> FileStates:
    """The current states, without temporary files of editors and Python."""
    states = {}
    for path in _files(folders):
        with contextlib.suppress(OSError):  # it was renamed or removed meanwhile
            state = os.lstat(path)
            states[path] = (state.st_mtime_ns, state.st_size, state.st_ino)
        if len(states) >= MAX_FILES:
            break
    return states


def _files(folders: Sequence[Path]) -> Iterator[str]:
    for folder in folders:
        for parent, names, files in os.walk(folder):
            names[:] = [name for name in names if name not in IGNORED and not name.startswith(".")]
            yield from (os.path.join(parent, name) for name in files if is_watched(name))


def is_watched(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(("~", ".swp", ".swx", ".tmp", ".pyc"))


def changed_since(before: FileStates, now: FileStates) -> list[str]:
    """Paths of changed, new and removed files."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def wait_for_change(folders: Sequence[Path], before: FileStates, interval: float = POLL_SECONDS) -> list[str]:
    """Waits until files changed and stayed the same for a poll, as an editor may write twice."""
    last, now = before, file_states(folders)
    while not (changed := changed_since(before, now)) or now != last:
        wait_for(None, interval)
        last, now = now, file_states(folders)
    return changed
