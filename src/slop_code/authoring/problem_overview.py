"""Overviews of problems, made without an evaluation."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code.authoring.check.layout.python_packages import distribution
from slop_code.authoring.problem_folders import SOLUTIONS, environment_for
from slop_code.authoring.reference_times import ReferenceTimes, load_reference_times
from slop_code.errors import InfrastructureError, UsageError
from slop_code.evaluation.config import CheckpointState, ProblemConfig
from slop_code.evaluation.context import EvaluationContext
from slop_code.evaluation.grading import GradingRules
from slop_code.evaluation.groups import QUARANTINED, GroupType
from slop_code.evaluation.problem.quarantine import read_quarantine
from slop_code.evaluation.pytest_runner import prepare_tests
from slop_code.execution.assets import regular_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.roster import Roster
    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback

MAX_SLOWEST = 5


@dataclass(frozen=True, slots=True)
class CheckpointOverview:
    config: CheckpointConfig
    specification: int | None
    """Bytes of the specification; None where there is none."""

    solution: bool
    tests: Mapping[str, int] | None = None
    """Number of tests by group; None where they were not collected."""

    error: str | None = None
    """The reason why the tests could not be collected."""

    measured: ReferenceTimes | None = None


@dataclass(frozen=True, slots=True)
class AssetOverview:
    name: str
    path: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ProblemOverview:
    config: ProblemConfig
    environment: EnvironmentSpec
    checkpoints: tuple[CheckpointOverview, ...]
    assets: tuple[AssetOverview, ...] = ()
    dependencies: Mapping[str, str | None] = field(default_factory=dict)
    """Installed versions by declared test dependency."""

    quarantined: tuple[str, ...] = ()
    """Tests in the quarantine."""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def entry_file(self) -> str:
        return self.environment.entry(self.config.entry_file)[-1]

    @property
    def state(self) -> CheckpointState | None:
        """The least advanced state of the checkpoints; None where a checkpoint has none."""
        states = [checkpoint.config.state for checkpoint in self.checkpoints]
        return None if None in states else next(state for state in CheckpointState if state in states)

    @property
    def error(self) -> str | None:
        return next((checkpoint.error for checkpoint in self.checkpoints if checkpoint.error), None)


@dataclass(frozen=True, slots=True)
class UnloadableProblem:
    """A problem whose configuration does not load."""

    path: Path
    reason: str

    @property
    def name(self) -> str:
        return self.path.absolute().name


def overviews(
    folders: Sequence[Path], cache: Cache, progress: ProgressCallback
) -> list[ProblemOverview | UnloadableProblem]:
    """Each overview has the tests of the last checkpoint; an invalid problem does not affect the others."""
    results: list[ProblemOverview | UnloadableProblem] = []
    for folder in folders:
        try:
            problem = ProblemConfig.from_yaml(folder)
            last = list(problem.checkpoints)[-1:]
            results.append(overview(problem, environment_for(problem, None), cache, progress, counted=last))
        except UsageError as error:
            results.append(UnloadableProblem(folder, str(error)))
    return results


def overview(
    problem: ProblemConfig,
    spec: EnvironmentSpec,
    cache: Cache,
    progress: ProgressCallback,
    *,
    counted: Sequence[str] | None = None,
) -> ProblemOverview:
    """`counted` names the checkpoints whose tests are collected, which takes a second; None stands for all."""
    versions: dict[str, str] = {}
    checkpoints = []
    for name, checkpoint in problem.iterate_checkpoint_items():
        item = checkpoint_overview(problem, checkpoint)
        if counted is None or name in counted:
            item = _with_tests(item, EvaluationContext(problem, checkpoint, spec, cache, progress), versions)
        checkpoints.append(item)
    return ProblemOverview(
        problem,
        spec,
        tuple(checkpoints),
        tuple(asset_of(name, problem.path, path) for name, path in problem.assets.items()),
        {item: versions.get(distribution(item) or "") for item in problem.test_dependencies},
        tuple(entry.test for entry in read_quarantine(problem).tests),
    )


def checkpoint_overview(problem: ProblemConfig, checkpoint: CheckpointConfig) -> CheckpointOverview:
    """Only facts from files, without tests."""
    text = problem.path / f"{checkpoint.name}.md"
    return CheckpointOverview(
        checkpoint,
        specification=os.path.getsize(text) if os.path.isfile(text) else None,
        solution=os.path.isdir(problem.path / SOLUTIONS / checkpoint.name),
    )


def _with_tests(plain: CheckpointOverview, context: EvaluationContext, versions: dict[str, str]) -> CheckpointOverview:
    """Adds versions of test dependencies to `versions`."""
    try:
        roster, resolved = prepare_tests(context)
        measured = load_reference_times(context) if plain.solution else None
    except (InfrastructureError, UsageError, OSError) as error:
        return replace(plain, error=str(error))
    versions |= resolved
    return replace(plain, tests=by_group(roster, context.problem, context.checkpoint.name), measured=measured)


def by_group(roster: Roster, problem: ProblemConfig, current: str) -> dict[str, int]:
    """Quarantined tests do not count."""
    rules = GradingRules.with_markers(list(problem.checkpoints), current, problem.custom_groups)
    counts = Counter(rules.group_of_entry(entry) for entry in roster.entries if QUARANTINED not in entry.markers)
    return {group.value: counts[group] for group in GroupType}


def asset_of(name: str, folder: Path, path: Path) -> AssetOverview:
    """A folder counts with its whole content."""
    files = [file for _, file in regular_files(path)]
    return AssetOverview(name, os.path.relpath(path, folder), len(files), sum(os.path.getsize(file) for file in files))
