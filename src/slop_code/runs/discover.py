"""What a run folder holds: `<problem>/<checkpoint>/snapshot`, and what of it cannot be evaluated."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem_lookup import DEFAULT_ENVIRONMENT, ENVIRONMENT, PROBLEMS_VARIABLE, problems_folder
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.runs.job_records import RunIssue, Submission
from slop_code.runs.run_layout import (
    LAYOUT,
    SNAPSHOT,
    check_folder,
    listed,
    named_runs,
    names_in,
    names_or_none,
    natural_order,
    text_of,
    unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    _Spec = EnvironmentSpec | UsageError

MISNAMED = "environment.yml"
UNNAMED_RUN = ""
"""What a run is called that is none: submissions that lie anywhere."""


@dataclass(frozen=True, slots=True)
class DiscoveredRun:
    """A folder whose results are summarised together."""

    name: str
    folder: Path | None
    """None: they lie anywhere, and nothing is summarised."""

    submissions: tuple[Submission, ...] = ()
    issues: tuple[RunIssue, ...] = ()
    within: Path | None = None
    """The run's folder, where this one is a problem's of it."""

    @property
    def warnings(self) -> list[str]:
        """What is probably not meant as it is written, each once."""
        folders = [self.within, self.folder, *{one.output.parent: None for one in self.submissions if one.output}]
        paths = [folder / MISNAMED for folder in dict.fromkeys(folders) if folder is not None]
        found = [f"{path}: ignored; an environment is called {ENVIRONMENT}" for path in paths if os.path.lexists(path)]
        for one in self.submissions:
            found += [*one.problem.warnings, *one.environment.warnings]
        return list(dict.fromkeys(found))


def discover(
    folders: Sequence[Path],
    *,
    problems_dir: Path | None = None,
    environment: EnvironmentSpec | None = None,
    only: Collection[str] = (),
) -> list[DiscoveredRun]:
    """Every run, in the order given. `only`: these problems alone; one that no run has is a mistake."""
    named = named_runs(folders)
    wanted = frozenset(os.path.normpath(one) for one in only)
    there = {name for folder in folders for name in names_or_none(folder)} if wanted else set()
    if unknown := sorted(wanted - there):
        known = sorted(name for name in there if any(os.path.isdir(folder / name) for folder in folders))
        raise UsageError(
            f"no problem {unknown[0]!r} in {', '.join(str(folder) for folder in folders[:3])}; "
            f"there {listed(known) if known else 'are none'}"
        )
    given = problems_dir is not None or bool(os.environ.get(PROBLEMS_VARIABLE))
    found = _Finder(problems_folder(problems_dir), given, environment, wanted)
    runs = [found.run(name, folder) for name, folder in named]
    return runs if len(runs) == 1 else [_with_something(run) for run in runs]


def discover_problem(folder: Path, problem: ProblemConfig, environment: EnvironmentSpec | None = None) -> DiscoveredRun:
    """A folder of one problem's checkpoints, which belongs to the run it lies in."""
    check_folder(folder)
    within = folder.resolve().parent
    run = DiscoveredRun(text_of(within.name), folder, within=within)
    spec = environment or environment_in(folder, within, problem.path)
    return _collected(run, _checkpoints(run, folder, problem, spec))


def environment_in(*folders: Path) -> _Spec:
    """That of the first of these folders that has one, else the usual one."""
    found = (_own_environment(folder) for folder in folders)
    return next((spec for spec in found if spec is not None), None) or load_environment(DEFAULT_ENVIRONMENT)


def checkpoint_number(problem: ProblemConfig, checkpoint: str) -> int:
    """Among the problem's checkpoints, from 1."""
    return list(problem.checkpoints).index(checkpoint) + 1


def _with_something(run: DiscoveredRun) -> DiscoveredRun:
    """Among several runs, one without anything must not keep the others from being evaluated."""
    if run.submissions or run.issues:
        return run
    return replace(run, issues=(RunIssue(run.name, None, None, nothing_in(run)),))


def nothing_in(run: DiscoveredRun) -> str:
    return f"{run.folder}: nothing to evaluate; expected {LAYOUT}"


@dataclass(frozen=True, slots=True)
class _Finder:
    problems: Path
    given: bool
    """Whether someone said where problems are."""

    environment: EnvironmentSpec | None
    only: frozenset[str]
    loaded: dict[Path, ProblemConfig] = field(default_factory=dict)
    """Many runs have the same problems."""

    def run(self, name: str, folder: Path) -> DiscoveredRun:
        run = DiscoveredRun(name, folder)
        try:
            names = names_in(folder)
        except OSError as error:
            return replace(run, issues=(RunIssue(name, None, None, unreadable(folder, error)),))
        wanted = [one for one in names if not self.only or one in self.only]
        found = {one: list(self.problem(run, folder, folder / one)) for one in wanted}
        missing = [one for one in sorted(self.only) if not found.get(one)]
        issues = [RunIssue(name, one, None, "no such problem in this run") for one in missing]
        return _collected(run, [*(item for items in found.values() for item in items), *issues])

    def problem(self, run: DiscoveredRun, within: Path, folder: Path) -> Iterator[Submission | RunIssue]:
        """Nothing for what is no problem's: logs, for one."""
        where = self.problems / folder.name
        try:
            if not os.path.isdir(where):
                yield from _on_disk(run, folder, self.missing()) if os.path.isdir(folder) else ()
                return
            try:
                problem = self.load(where)
            except UsageError as error:
                found = list(_on_disk(run, folder, str(error)))
                yield from found or [RunIssue(run.name, folder.name, None, str(error))]
                return
            spec = self.environment or environment_in(folder, within, problem.path)
            yield from _checkpoints(run, folder, problem, spec)
        except OSError as error:
            yield RunIssue(run.name, folder.name, None, unreadable(folder, error))

    def load(self, where: Path) -> ProblemConfig:
        if where not in self.loaded:
            self.loaded[where] = ProblemConfig.from_yaml(where)
        return self.loaded[where]

    def missing(self) -> str:
        if (self.problems / "config.yaml").is_file():
            return f"{self.problems} is itself a problem; give the folder that holds it as --problems-dir"
        known = f"no such problem in {self.problems}"
        if not self.problems.is_dir():
            known = f"{self.problems}: there is no such folder of problems"
        return known if self.given else f"{known}; give --problems-dir"


def _on_disk(run: DiscoveredRun, folder: Path, reason: str) -> Iterator[RunIssue]:
    """Each checkpoint of a problem that cannot be known: planned, and not evaluated."""
    names = [name for name in names_in(folder) if os.path.lexists(folder / name / SNAPSHOT)]
    for order, name in enumerate(sorted(names, key=natural_order), start=1):
        yield RunIssue(run.name, folder.name, name, reason, order)


def _checkpoints(
    run: DiscoveredRun, folder: Path, problem: ProblemConfig, spec: _Spec
) -> Iterator[Submission | RunIssue]:
    try:
        strangers = [name for name in names_in(folder) if name not in problem.checkpoints]
    except OSError as error:
        yield RunIssue(run.name, problem.name, None, unreadable(folder, error))
        return
    for order, (name, checkpoint) in enumerate(problem.iterate_checkpoint_items(), start=1):
        place = folder / name
        snapshot = place / SNAPSHOT
        try:
            if not snapshot.is_dir():
                yield RunIssue(run.name, problem.name, name, f"{snapshot}: no snapshot", order)
                continue
            os.listdir(snapshot)
        except OSError as error:
            yield RunIssue(run.name, problem.name, name, unreadable(snapshot, error), order)
            continue
        if isinstance(spec, UsageError):
            yield RunIssue(run.name, problem.name, name, str(spec), order)
            continue
        yield Submission(
            problem=problem, checkpoint=checkpoint, environment=spec, path=snapshot, output=place, run=run.name
        )
    for name in strangers:
        if os.path.lexists(folder / name / SNAPSHOT):
            yield RunIssue(run.name, problem.name, None, f"{folder / name}: the problem has no such checkpoint")


def _collected(run: DiscoveredRun, found: Iterable[Submission | RunIssue]) -> DiscoveredRun:
    """The same problem under two folders would be counted as one; of two results in one place, one would be lost."""
    items = list(found)
    submissions = [item for item in items if isinstance(item, Submission)]
    issues = [item for item in items if isinstance(item, RunIssue)]
    names = Counter(_identity(one) for one in submissions)
    places = Counter(_place(one) for one in submissions)
    for one in {_identity(one): one for one in submissions if names[_identity(one)] > 1}.values():
        issues.append(issue_for(one, "two folders of this run hold this problem"))
    alone = [one for one in submissions if names[_identity(one)] == 1]
    for one in alone:
        if places[_place(one)] > 1:
            issues.append(issue_for(one, f"{one.output}: the folder of another checkpoint, too"))
    unique = tuple(one for one in alone if places[_place(one)] == 1)
    return replace(run, submissions=unique, issues=tuple(issues))


def issue_for(submission: Submission, reason: str) -> RunIssue:
    problem, checkpoint = submission.problem, submission.checkpoint.name
    return RunIssue(submission.run, problem.name, checkpoint, reason, checkpoint_number(problem, checkpoint))


def _identity(submission: Submission) -> tuple[str, str]:
    return submission.problem.name, submission.checkpoint.name


def _place(submission: Submission) -> str:
    return os.path.realpath(submission.path.parent)


def _own_environment(folder: Path) -> _Spec | None:
    """A wrong one is what is wrong with it: it costs those who would have been evaluated there."""
    path = folder / ENVIRONMENT
    try:
        return EnvironmentSpec.from_yaml(path) if os.path.lexists(path) else None
    except UsageError as error:
        return error


def snapshot_around(place: Path, runs: Iterable[DiscoveredRun]) -> Path | None:
    """The snapshot of these runs that the place is or lies in, be it there or not."""
    real = Path(os.path.realpath(place))
    for run in runs:
        root = run.folder.resolve() if run.folder else None
        if root and real.is_relative_to(root) and SNAPSHOT in real.relative_to(root).parts:
            return place
        for submission in run.submissions:
            if real.is_relative_to(submission.path.resolve()):
                return submission.path
    return None
