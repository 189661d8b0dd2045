"""What a run folder holds: `<problem>/<checkpoint>/snapshot`, and what of it cannot be evaluated."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.find import problems_folder
from slop_code.execution.spec import EnvironmentSpec, load_environment
from slop_code.runs.records import Submission, Trouble

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

SNAPSHOT = "snapshot"
ENVIRONMENT = "environment.yaml"
RESULT = "evaluation.json"
DEFAULT = "local"
LOOSE = ""
"""What a run is called that is none: submissions that lie anywhere."""


@dataclass(frozen=True, slots=True)
class Run:
    """A folder whose results are summarised together."""

    name: str
    folder: Path | None
    """None: they lie anywhere, and nothing is summarised."""

    submissions: tuple[Submission, ...] = ()
    troubles: tuple[Trouble, ...] = ()


def discover(
    folders: Sequence[Path],
    *,
    problems_dir: Path | None = None,
    environment: EnvironmentSpec | None = None,
    only: Collection[str] = (),
) -> list[Run]:
    """Every run, in the order given. `only`: these problems alone; one that no run has is a mistake."""
    found = _Finder(problems_folder(problems_dir), environment, frozenset(only))
    named = _named(folders)
    for one in sorted(found.only):
        if not any(os.path.lexists(folder / one) for folder in folders):
            raise UsageError(f"no problem {one!r} in {', '.join(str(folder) for folder in folders[:3])}")
    return [found.run(name, folder) for name, folder in named]


def discover_problem(folder: Path, problem: ProblemConfig, environment: EnvironmentSpec | None = None) -> Run:
    """A folder of one problem's checkpoints, which belongs to the run it lies in."""
    check_folder(folder)
    run = Run(_text(folder.resolve().parent.name), folder)
    try:
        spec = environment or _own_environment(folder) or _own_environment(folder.resolve().parent)
    except UsageError as error:
        return replace(run, troubles=(Trouble(run.name, None, None, str(error)),))
    return _collected(run, _checkpoints(run, folder, problem, spec or load_environment(DEFAULT)))


@dataclass(frozen=True, slots=True)
class _Finder:
    problems: Path
    environment: EnvironmentSpec | None
    only: frozenset[str]
    loaded: dict[Path, ProblemConfig] = field(default_factory=dict)
    """Many runs have the same problems."""

    def run(self, name: str, folder: Path) -> Run:
        run = Run(name, folder)
        try:
            spec = self.environment or _own_environment(folder) or load_environment(DEFAULT)
            names = _names(folder)
        except UsageError as error:
            return replace(run, troubles=(Trouble(name, None, None, str(error)),))
        except OSError as error:
            return replace(run, troubles=(Trouble(name, None, None, _unreadable(folder, error)),))
        wanted = [one for one in names if not self.only or one in self.only]
        found = {one: list(self.problem(run, folder / one, spec)) for one in wanted}
        missing = [one for one in sorted(self.only) if not found.get(one)]
        troubles = [Trouble(name, one, None, "no such problem in this run") for one in missing]
        return _collected(run, [*(item for items in found.values() for item in items), *troubles])

    def problem(self, run: Run, folder: Path, spec: EnvironmentSpec) -> Iterator[Submission | Trouble]:
        """Nothing for what is no problem's: logs, for one."""
        where = self.problems / folder.name
        try:
            if os.path.isdir(where):
                yield from _checkpoints(run, folder, self.load(where), spec)
            elif os.path.isdir(folder) and any(os.path.lexists(folder / name / SNAPSHOT) for name in _names(folder)):
                yield Trouble(run.name, folder.name, None, f"no such problem in {self.problems}; give --problems-dir")
        except UsageError as error:
            yield Trouble(run.name, folder.name, None, str(error))
        except OSError as error:
            yield Trouble(run.name, folder.name, None, _unreadable(folder, error))

    def load(self, where: Path) -> ProblemConfig:
        if where not in self.loaded:
            self.loaded[where] = ProblemConfig.from_yaml(where)
        return self.loaded[where]


def _checkpoints(
    run: Run, folder: Path, problem: ProblemConfig, spec: EnvironmentSpec
) -> Iterator[Submission | Trouble]:
    try:
        strangers = [name for name in _names(folder) if name not in problem.checkpoints]
    except OSError as error:
        yield Trouble(run.name, problem.name, None, _unreadable(folder, error))
        return
    for name, checkpoint in problem.iterate_checkpoint_items():
        place = folder / name
        snapshot = place / SNAPSHOT
        try:
            if not snapshot.is_dir():
                yield Trouble(run.name, problem.name, name, f"{snapshot}: no snapshot")
                continue
            os.listdir(snapshot)
        except OSError as error:
            yield Trouble(run.name, problem.name, name, _unreadable(snapshot, error))
            continue
        yield Submission(
            problem=problem, checkpoint=checkpoint, environment=spec, path=snapshot, output=place, run=run.name
        )
    for name in strangers:
        if os.path.lexists(folder / name / SNAPSHOT):
            yield Trouble(run.name, problem.name, None, f"{folder / name}: the problem has no such checkpoint")


def _collected(run: Run, found: Iterable[Submission | Trouble]) -> Run:
    """The same problem under two folders would be counted as one; of two results in one place, one would be lost."""
    items = list(found)
    submissions = [item for item in items if isinstance(item, Submission)]
    troubles = [item for item in items if isinstance(item, Trouble)]
    names = Counter(_identity(one) for one in submissions)
    places = Counter(_place(one) for one in submissions)
    for problem, checkpoint in sorted(name for name, count in names.items() if count > 1):
        troubles.append(Trouble(run.name, problem, checkpoint, "two folders of this run hold this problem"))
    alone = [one for one in submissions if names[_identity(one)] == 1]
    for one in alone:
        if places[_place(one)] > 1:
            reason = f"{one.output}: the folder of another checkpoint, too"
            troubles.append(Trouble(run.name, *_identity(one), reason))
    unique = tuple(one for one in alone if places[_place(one)] == 1)
    return replace(run, submissions=unique, troubles=tuple(troubles))


def _identity(submission: Submission) -> tuple[str, str]:
    return submission.problem.name, submission.checkpoint.name


def _place(submission: Submission) -> str:
    return os.path.realpath(submission.path.parent)


def _own_environment(folder: Path) -> EnvironmentSpec | None:
    path = folder / ENVIRONMENT
    return EnvironmentSpec.from_yaml(path) if os.path.lexists(path) else None


def _names(folder: Path) -> list[str]:
    """Of whatever lies there: what a name stands for is found out when it is wanted."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def _named(folders: Sequence[Path]) -> list[tuple[str, Path]]:
    """By the last part of its path; by the path where two runs share that."""
    for folder in folders:
        check_folder(folder)
    real = [folder.resolve() for folder in folders]
    if twice := [str(path) for path, count in Counter(real).items() if count > 1]:
        raise UsageError(f"{twice[0]}: given twice")
    shared = {name for name, count in Counter(path.name for path in real).items() if count > 1}
    names = [str(folder) if path.name in shared else path.name for path, folder in zip(real, folders, strict=True)]
    if len(set(names)) < len(names):  # a link is called as another run's folder is
        names = [str(path) for path in real]
    return [(_text(name), folder) for name, folder in zip(names, folders, strict=True)]


def _text(name: str) -> str:
    """A file may be called by any bytes, a run in a file of ours may not."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def check_folder(folder: Path) -> None:
    if not os.path.lexists(folder):
        raise UsageError(f"{folder}: there is no such folder")
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a folder; give the folder that holds <problem>/<checkpoint>/{SNAPSHOT}")


def _unreadable(path: Path, error: OSError) -> str:
    return f"{error.filename or path}: cannot be read: {error.strerror}"
