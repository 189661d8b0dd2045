"""What a run folder holds: `<problem>/<checkpoint>/snapshot`, and what of it cannot be evaluated."""

from __future__ import annotations

import os
import re
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

    _Spec = EnvironmentSpec | UsageError

SNAPSHOT = "snapshot"
ENVIRONMENT = "environment.yaml"
MISNAMED = "environment.yml"
RESULT = "evaluation.json"
DEFAULT = "local"
LAYOUT = f"<problem>/<checkpoint>/{SNAPSHOT}"
SHOWN_NAMES = 10
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
    within: Path | None = None
    """The run's folder, where this one is a problem's of it."""

    @property
    def warnings(self) -> list[str]:
        """What is probably not meant as it is written, each once."""
        folders = [self.folder, *{one.output.parent: None for one in self.submissions if one.output}]
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
) -> list[Run]:
    """Every run, in the order given. `only`: these problems alone; one that no run has is a mistake."""
    named = _named(folders)
    wanted = frozenset(os.path.normpath(one) for one in only)
    there = {name for folder in folders for name in _names_or_none(folder)} if wanted else set()
    if unknown := sorted(wanted - there):
        known = sorted(name for name in there if any(os.path.isdir(folder / name) for folder in folders))
        raise UsageError(
            f"no problem {unknown[0]!r} in {', '.join(str(folder) for folder in folders[:3])}; "
            f"there {_listed(known) if known else 'are none'}"
        )
    found = _Finder(problems_folder(problems_dir), problems_dir is not None, environment, wanted)
    runs = [found.run(name, folder) for name, folder in named]
    return runs if len(runs) == 1 else [_with_something(run) for run in runs]


def discover_problem(folder: Path, problem: ProblemConfig, environment: EnvironmentSpec | None = None) -> Run:
    """A folder of one problem's checkpoints, which belongs to the run it lies in."""
    check_folder(folder)
    within = folder.resolve().parent
    run = Run(_text(within.name), folder, within=within)
    spec = environment or _own_environment(folder) or _own_environment(within) or load_environment(DEFAULT)
    return _collected(run, _checkpoints(run, folder, problem, spec))


def place_of(problem: ProblemConfig, checkpoint: str) -> int:
    """Among the problem's checkpoints, from 1."""
    return list(problem.checkpoints).index(checkpoint) + 1


def _with_something(run: Run) -> Run:
    """Among several runs, one without anything must not keep the others from being evaluated."""
    if run.submissions or run.troubles:
        return run
    return replace(run, troubles=(Trouble(run.name, None, None, nothing_in(run)),))


def nothing_in(run: Run) -> str:
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

    def run(self, name: str, folder: Path) -> Run:
        run = Run(name, folder)
        try:
            names = _names(folder)
        except OSError as error:
            return replace(run, troubles=(Trouble(name, None, None, _unreadable(folder, error)),))
        spec = self.environment or _own_environment(folder) or load_environment(DEFAULT)
        wanted = [one for one in names if not self.only or one in self.only]
        found = {one: list(self.problem(run, folder / one, spec)) for one in wanted}
        missing = [one for one in sorted(self.only) if not found.get(one)]
        troubles = [Trouble(name, one, None, "no such problem in this run") for one in missing]
        return _collected(run, [*(item for items in found.values() for item in items), *troubles])

    def problem(self, run: Run, folder: Path, spec: _Spec) -> Iterator[Submission | Trouble]:
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
                yield from found or [Trouble(run.name, folder.name, None, str(error))]
                return
            own = None if self.environment else _own_environment(folder)
            yield from _checkpoints(run, folder, problem, own or spec)
        except OSError as error:
            yield Trouble(run.name, folder.name, None, _unreadable(folder, error))

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


def _on_disk(run: Run, folder: Path, reason: str) -> Iterator[Trouble]:
    """Each checkpoint of a problem that cannot be known: planned, and not evaluated."""
    names = [name for name in _names(folder) if os.path.lexists(folder / name / SNAPSHOT)]
    for order, name in enumerate(sorted(names, key=_natural), start=1):
        yield Trouble(run.name, folder.name, name, reason, order)


def _natural(name: str) -> list[tuple[int, str]]:
    """checkpoint_10 after checkpoint_9."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(int(part), "") if number % 2 else (0, part) for number, part in enumerate(parts)]


def _checkpoints(run: Run, folder: Path, problem: ProblemConfig, spec: _Spec) -> Iterator[Submission | Trouble]:
    try:
        strangers = [name for name in _names(folder) if name not in problem.checkpoints]
    except OSError as error:
        yield Trouble(run.name, problem.name, None, _unreadable(folder, error))
        return
    for order, (name, checkpoint) in enumerate(problem.iterate_checkpoint_items(), start=1):
        place = folder / name
        snapshot = place / SNAPSHOT
        try:
            if not snapshot.is_dir():
                yield Trouble(run.name, problem.name, name, f"{snapshot}: no snapshot", order)
                continue
            os.listdir(snapshot)
        except OSError as error:
            yield Trouble(run.name, problem.name, name, _unreadable(snapshot, error), order)
            continue
        if isinstance(spec, UsageError):
            yield Trouble(run.name, problem.name, name, str(spec), order)
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
    for one in {_identity(one): one for one in submissions if names[_identity(one)] > 1}.values():
        troubles.append(trouble_of(one, "two folders of this run hold this problem"))
    alone = [one for one in submissions if names[_identity(one)] == 1]
    for one in alone:
        if places[_place(one)] > 1:
            troubles.append(trouble_of(one, f"{one.output}: the folder of another checkpoint, too"))
    unique = tuple(one for one in alone if places[_place(one)] == 1)
    return replace(run, submissions=unique, troubles=tuple(troubles))


def trouble_of(submission: Submission, reason: str) -> Trouble:
    problem, checkpoint = submission.problem, submission.checkpoint.name
    return Trouble(submission.run, problem.name, checkpoint, reason, place_of(problem, checkpoint))


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


def _names(folder: Path) -> list[str]:
    """Of whatever lies there: what a name stands for is found out when it is wanted."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def _names_or_none(folder: Path) -> list[str]:
    try:
        return _names(folder)
    except OSError:
        return []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"{'is' if len(names) == 1 else 'are'} {', '.join(names[:SHOWN_NAMES])}{more}"


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
        raise UsageError(f"{folder}: not a folder; give the folder that holds {LAYOUT}")
    if SNAPSHOT in folder.resolve().parts:
        raise UsageError(f"{folder}: lies in a snapshot, where nothing is ever written; give the folder that holds it")


def _unreadable(path: Path, error: OSError) -> str:
    return f"{error.filename or path}: cannot be read: {error.strerror}"
