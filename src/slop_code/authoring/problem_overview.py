"""What there is to tell of a problem without evaluating anything."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from slop_code.authoring.check.layout.python_packages import distribution
from slop_code.authoring.check.workbench import SOLUTIONS, environment_for
from slop_code.authoring.reference_times import ReferenceTimes, recall
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.config import CheckpointState, ProblemConfig
from slop_code.evaluation.context import EvaluationContext
from slop_code.evaluation.groups import QUARANTINED, GroupType, group_for
from slop_code.evaluation.pytest_runner import prepare_tests
from slop_code.evaluation.quarantine import read_ledger
from slop_code.evaluation.selection import checkpoint_of
from slop_code.execution.assets import walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.roster import Roster
    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback

SLOWEST = 5


@dataclass(frozen=True, slots=True)
class CheckpointOverview:
    name: str
    order: int
    state: str | None
    timeout: float
    session_timeout: float | None
    specification: int | None
    """Bytes of what an agent is told; None where there is no such file."""

    solution: bool
    tests: Mapping[str, int] | None = None
    """By group; None where they could not be collected, or were not asked for."""

    trouble: str | None = None
    """Why they could not."""

    measured: ReferenceTimes | None = None


@dataclass(frozen=True, slots=True)
class AssetOverview:
    name: str
    path: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ProblemOverview:
    name: str
    path: Path
    version: str
    description: str
    author: str | None
    difficulty: str | None
    environment: str
    entry_file: str
    checkpoints: tuple[CheckpointOverview, ...]
    assets: tuple[AssetOverview, ...] = ()
    markers: Mapping[str, str] = field(default_factory=dict)
    """The group of each."""

    dependencies: Mapping[str, str | None] = field(default_factory=dict)
    """What the tests need further, as it is declared, and the version that they get."""

    quarantined: tuple[str, ...] = ()
    """Tests that decide nothing, by the ledger of flaky ones."""

    warnings: tuple[str, ...] = ()

    @property
    def state(self) -> str | None:
        """That of the checkpoint that is least far."""
        known = [one.state for one in self.checkpoints]
        return None if None in known else min(map(str, known), key=[str(state) for state in CheckpointState].index)

    @property
    def trouble(self) -> str | None:
        return next((one.trouble for one in self.checkpoints if one.trouble), None)


@dataclass(frozen=True, slots=True)
class UnloadableProblem:
    """A problem that does not even load."""

    path: Path
    reason: str

    @property
    def name(self) -> str:
        return self.path.absolute().name


def overviews(
    folders: Sequence[Path], cache: Cache, progress: ProgressCallback
) -> list[ProblemOverview | UnloadableProblem]:
    """Each with the tests of its last checkpoint; what is wrong with one is told in its place."""
    found: list[ProblemOverview | UnloadableProblem] = []
    for folder in folders:
        try:
            problem = ProblemConfig.from_yaml(folder)
            last = list(problem.checkpoints)[-1:]
            found.append(view(problem, environment_for(problem, None), cache, progress, counted=last))
        except UsageError as error:
            found.append(UnloadableProblem(folder, str(error)))
    return found


def view(
    problem: ProblemConfig,
    spec: EnvironmentSpec,
    cache: Cache,
    progress: ProgressCallback,
    *,
    counted: Sequence[str] | None = None,
) -> ProblemOverview:
    """`counted`: the checkpoints whose tests are collected, which takes a second the first time; None: all."""
    versions: dict[str, str] = {}
    views = []
    for name, checkpoint in problem.iterate_checkpoint_items():
        plain = checkpoint_view(problem, checkpoint)
        if counted is None or name in counted:
            plain = _with_tests(plain, problem, checkpoint, spec, cache, progress, versions)
        views.append(plain)
    return ProblemOverview(
        name=problem.name,
        path=problem.path,
        version=str(problem.version),
        description=problem.description,
        author=problem.author,
        difficulty=problem.difficulty and str(problem.difficulty),
        environment=spec.name,
        entry_file=spec.entry(problem.entry_file)[-1],
        checkpoints=tuple(views),
        assets=tuple(asset_of(name, problem.path, path) for name, path in problem.assets.items()),
        markers={name: str(group) for name, group in problem.custom_groups.items()},
        dependencies={one: versions.get(distribution(one) or "") for one in problem.test_dependencies},
        quarantined=tuple(one.test for one in read_ledger(problem).tests),
        warnings=tuple(problem.warnings),
    )


def checkpoint_view(problem: ProblemConfig, checkpoint: CheckpointConfig) -> CheckpointOverview:
    """As far as the files tell."""
    text = problem.path / f"{checkpoint.name}.md"
    return CheckpointOverview(
        name=checkpoint.name,
        order=checkpoint.order,
        state=checkpoint.state and str(checkpoint.state),
        timeout=checkpoint.timeout,
        session_timeout=checkpoint.session_timeout,
        specification=os.path.getsize(text) if os.path.isfile(text) else None,
        solution=os.path.isdir(problem.path / SOLUTIONS / checkpoint.name),
    )


def _with_tests(
    plain: CheckpointOverview,
    problem: ProblemConfig,
    checkpoint: CheckpointConfig,
    spec: EnvironmentSpec,
    cache: Cache,
    progress: ProgressCallback,
    versions: dict[str, str],
) -> CheckpointOverview:
    solution = problem.path / SOLUTIONS / checkpoint.name
    try:
        roster, resolved = prepare_tests(EvaluationContext(problem, checkpoint, spec, cache, progress))
        measured = recall(cache, problem, checkpoint, spec, solution) if plain.solution else None
    except (InfrastructureError, UsageError, OSError) as error:
        return replace(plain, trouble=str(error))
    versions |= resolved
    return replace(plain, tests=by_group(roster, problem, checkpoint.name), measured=measured)


def by_group(roster: Roster, problem: ProblemConfig, current: str) -> dict[str, int]:
    """Without those that decide nothing."""
    names = list(problem.checkpoints)
    found = Counter(
        group_for(
            checkpoint_of(PurePosixPath(entry.nodeid.partition("::")[0]).name, names) or current,
            entry.markers,
            current,
            problem.custom_groups,
        )
        for entry in roster.entries
        if QUARANTINED not in entry.markers
    )
    return {group.value: found[group] for group in GroupType}


def asset_of(name: str, folder: Path, path: Path) -> AssetOverview:
    """A folder counts with all that is in it."""
    files = [path] if path.is_file() else [real for _, real in walk(path, fence=path) if real.is_file()]
    return AssetOverview(name, os.path.relpath(path, folder), len(files), sum(os.path.getsize(file) for file in files))
