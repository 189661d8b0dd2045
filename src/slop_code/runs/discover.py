"""Discovery of runs: the snapshots of run folders, and what cannot be evaluated there."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError, first_names
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.problem_lookup import (
    DEFAULT_ENVIRONMENT,
    ENVIRONMENT,
    is_problems_folder_given,
    problems_folder,
)
from slop_code.evaluation.result_files.origin import remembered_problem
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.runs.job_records import RunIssue, Submission
from slop_code.runs.run_layout import (
    LAYOUT,
    RESULT_FILE,
    SNAPSHOT,
    check_folder,
    named_runs,
    names_in,
    names_or_none,
    natural_order,
    text_of,
    unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    _SpecOrError = EnvironmentSpec | UsageError

MISNAMED_ENVIRONMENT = "environment.yml"
SHOWN_NAMES = 10
_CONTENTS = (SNAPSHOT, RESULT_FILE)
UNNAMED_RUN = ""
"""Name of the run of submissions that were given without a run folder."""


@dataclass(frozen=True, slots=True)
class DiscoveredRun:
    """A run folder, whose results are summarised together; or submissions without a run folder."""

    name: str
    folder: Path | None
    """None for submissions without a run folder: they have no summary."""

    submissions: tuple[Submission, ...] = ()
    issues: tuple[RunIssue, ...] = ()
    within: Path | None = None
    """The run folder around `folder`, where that is the folder of a problem."""

    @property
    def warnings(self) -> list[str]:
        """Probable mistakes, each once."""
        outputs = {submission.output.parent: None for submission in self.submissions if submission.output}
        folders = dict.fromkeys([self.within, self.folder, *outputs])
        paths = [folder / MISNAMED_ENVIRONMENT for folder in folders if folder is not None]
        warnings = [
            f"{path}: ignored; an environment is called {ENVIRONMENT}" for path in paths if os.path.lexists(path)
        ]
        for submission in self.submissions:
            warnings += [*submission.problem.warnings, *submission.environment.warnings]
        return list(dict.fromkeys(warnings))


def discover(
    folders: Sequence[Path],
    *,
    problems_dir: Path | None = None,
    environment: EnvironmentSpec | None = None,
    only: Collection[str] = (),
) -> list[DiscoveredRun]:
    """Every run, in the order given. `only`: names of problems; a name that no run has is a UsageError."""
    named = named_runs(folders)
    wanted = frozenset(os.path.normpath(name) for name in only)
    existing = {name for folder in folders for name in names_or_none(folder)} if wanted else set()
    if unknown := sorted(wanted - existing):
        known = sorted(name for name in existing if any(os.path.isdir(folder / name) for folder in folders))
        searched = ", ".join(str(folder) for folder in folders[:3])
        there = f"there {'is' if len(known) == 1 else 'are'} {first_names(known, SHOWN_NAMES) or 'none'}"
        raise UsageError(f"no problem {unknown[0]!r} in {searched}; {there}")
    if folders:
        check_problems_folder(problems_dir)
    problems, explicit = problems_folder(problems_dir), is_problems_folder_given(problems_dir)
    discovery = _Discovery(problems, explicit, environment, wanted)
    runs = [discovery.run(name, folder) for name, folder in named]
    return runs if len(runs) == 1 else [_with_issue_if_empty(run) for run in runs]


def check_problems_folder(problems_dir: Path | None) -> None:
    """Raises UsageError where the user named a folder of problems that does not exist."""
    problems = problems_folder(problems_dir)
    if is_problems_folder_given(problems_dir) and not problems.is_dir():
        raise UsageError(_no_folder(problems))


def discover_problem(folder: Path, problem: ProblemConfig, environment: EnvironmentSpec | None = None) -> DiscoveredRun:
    """The folder of a problem's checkpoints, as a part of the run around it."""
    check_folder(folder)
    within = folder.resolve().parent
    run = DiscoveredRun(text_of(within.name), folder, within=within)
    spec = environment or environment_in(folder, within, problem.path)
    return _without_duplicates(run, _checkpoints(run, folder, problem, spec))


def environment_in(*folders: Path) -> _SpecOrError:
    """The environment of the first of these folders with an environment file, else the default."""
    specs = (_own_environment(folder) for folder in folders)
    return next((spec for spec in specs if spec is not None), None) or load_environment(DEFAULT_ENVIRONMENT)


def checkpoint_number(problem: ProblemConfig, checkpoint: str) -> int:
    """Number of a checkpoint among those of its problem, from 1."""
    return list(problem.checkpoints).index(checkpoint) + 1


def _with_issue_if_empty(run: DiscoveredRun) -> DiscoveredRun:
    """Among several runs, an empty run must not keep the others from being evaluated."""
    if run.submissions or run.issues:
        return run
    return replace(run, issues=(RunIssue(run.name, None, None, nothing_in(run)),))


def nothing_in(run: DiscoveredRun) -> str:
    assert run.folder is not None
    reason = f"{run.folder}: nothing to evaluate; expected {LAYOUT}"
    if not any((run.folder / name / SNAPSHOT).is_dir() for name in names_or_none(run.folder)):
        return reason
    command = f"slop-code eval-problem {shlex.quote(str(run.folder))}"
    return f"{reason}; for the folder of a problem use `{command}`, or give the run {run.folder.resolve().parent}"


def _no_folder(problems: Path) -> str:
    return f"{problems}: there is no such folder of problems"


@dataclass(frozen=True, slots=True)
class _Discovery:
    problems: Path
    explicit: bool
    """Whether the user named the folder of problems. Otherwise a problem is where it was the last time."""

    environment: EnvironmentSpec | None
    only: frozenset[str]
    loaded: dict[Path, ProblemConfig] = field(default_factory=dict)
    """Problems that were read before: many runs have the same problems."""

    def run(self, name: str, folder: Path) -> DiscoveredRun:
        run = DiscoveredRun(name, folder)
        try:
            names = names_in(folder)
        except OSError as error:
            return replace(run, issues=(RunIssue(name, None, None, unreadable(folder, error)),))
        wanted = [problem for problem in names if not self.only or problem in self.only]
        items = {problem: list(self.problem(run, folder, folder / problem)) for problem in wanted}
        missing = [problem for problem in sorted(self.only) if not items.get(problem)]
        issues = [RunIssue(name, problem, None, "no such problem in this run") for problem in missing]
        return _without_duplicates(run, [*(item for group in items.values() for item in group), *issues])

    def problem(self, run: DiscoveredRun, within: Path, folder: Path) -> Iterator[Submission | RunIssue]:
        """Submissions and issues of a problem; none for the folder of no problem, such as a folder of logs."""
        known = None if self.explicit else remembered_problem(folder, within)
        path = known or self.problems / folder.name
        try:
            if not os.path.isdir(path):
                reason = missing_problem(known) if known else self.missing()
                issues = list(_issues_of_checkpoints(run, folder, reason)) if os.path.isdir(folder) else []
                yield from (replace(issue, unknown_problem=True) for issue in issues)
                return
            try:
                problem = self.load(path)
            except UsageError as error:
                issues = list(_issues_of_checkpoints(run, folder, str(error)))
                yield from issues or [RunIssue(run.name, folder.name, None, str(error))]
                return
            spec = self.environment or environment_in(folder, within, problem.path)
            yield from _checkpoints(run, folder, problem, spec)
        except OSError as error:
            yield RunIssue(run.name, folder.name, None, unreadable(folder, error))

    def load(self, path: Path) -> ProblemConfig:
        if path not in self.loaded:
            self.loaded[path] = ProblemConfig.from_yaml(path)
        return self.loaded[path]

    def missing(self) -> str:
        if (self.problems / "config.yaml").is_file():
            return f"{self.problems} is itself a problem; give the folder that holds it as --problems-dir"
        reason = f"no such problem in {self.problems}"
        if not self.problems.is_dir():
            reason = _no_folder(self.problems)
        return reason if self.explicit else f"{reason}; give --problems-dir"


def missing_problem(known: Path) -> str:
    """Why the problem of the last evaluation is not there."""
    fact = f"no such problem in {known.parent}, the folder of problems of the last evaluation"
    if not known.parent.is_dir():
        fact = f"{known.parent}: the folder of problems of the last evaluation is gone"
    return f"{fact}; give --problems-dir"


def _issues_of_checkpoints(run: DiscoveredRun, folder: Path, reason: str) -> Iterator[RunIssue]:
    """An issue for each checkpoint of a problem that cannot be loaded: each folder with a snapshot or a result."""
    names = [name for name in names_in(folder) if any(os.path.lexists(folder / name / file) for file in _CONTENTS)]
    for order, name in enumerate(sorted(names, key=natural_order), start=1):
        yield RunIssue(run.name, folder.name, name, reason, order, folder / name)


def _checkpoints(
    run: DiscoveredRun, folder: Path, problem: ProblemConfig, spec: _SpecOrError
) -> Iterator[Submission | RunIssue]:
    try:
        unknown = [name for name in names_in(folder) if name not in problem.checkpoints]
    except OSError as error:
        yield RunIssue(run.name, problem.name, None, unreadable(folder, error))
        return
    for order, (name, checkpoint) in enumerate(problem.iterate_checkpoint_items(), start=1):
        output = folder / name
        snapshot = output / SNAPSHOT
        try:
            if not snapshot.is_dir():
                yield RunIssue(run.name, problem.name, name, f"{snapshot}: no snapshot", order, output)
                continue
            os.listdir(snapshot)
        except OSError as error:
            yield RunIssue(run.name, problem.name, name, unreadable(snapshot, error), order, output)
            continue
        if isinstance(spec, UsageError):
            yield RunIssue(run.name, problem.name, name, str(spec), order, output)
            continue
        yield Submission(
            problem=problem, checkpoint=checkpoint, environment=spec, path=snapshot, output=output, run=run.name
        )
    for name in unknown:
        if os.path.lexists(folder / name / SNAPSHOT):
            reason = f"{folder / name}: the problem has no such checkpoint"
            yield RunIssue(run.name, problem.name, None, reason, output=folder / name)


def _without_duplicates(run: DiscoveredRun, items: Iterable[Submission | RunIssue]) -> DiscoveredRun:
    """Duplicates become issues: two results with the same name, or in the same folder, would overwrite each other."""
    items = list(items)
    submissions = [item for item in items if isinstance(item, Submission)]
    issues = [item for item in items if isinstance(item, RunIssue)]
    if not submissions and all(_is_of_a_problem_itself(issue) for issue in issues):
        return run
    names = Counter(_name_of(submission) for submission in submissions)
    folders = Counter(_real_folder(submission) for submission in submissions)
    duplicates = {_name_of(submission): submission for submission in submissions if names[_name_of(submission)] > 1}
    issues += [
        replace(issue_for(submission, "two folders of this run hold this problem"), output=None)  # two results
        for submission in duplicates.values()
    ]
    named_once = [submission for submission in submissions if names[_name_of(submission)] == 1]
    unique = tuple(submission for submission in named_once if folders[_real_folder(submission)] == 1)
    issues += [
        issue_for(submission, f"{submission.output}: the folder of another checkpoint, too")
        for submission in named_once
        if folders[_real_folder(submission)] > 1
    ]
    return replace(run, submissions=unique, issues=tuple(issues))


def _is_of_a_problem_itself(issue: RunIssue) -> bool:
    """A snapshot is missing in the folder of a problem itself, which was mistaken for one of a run."""
    if issue.output is None or any(os.path.lexists(issue.output / file) for file in _CONTENTS):
        return False
    return os.path.lexists(issue.output.parent / "config.yaml")


def issue_for(submission: Submission, reason: str) -> RunIssue:
    problem, checkpoint = submission.problem, submission.checkpoint.name
    order = checkpoint_number(problem, checkpoint)
    return RunIssue(submission.run, problem.name, checkpoint, reason, order, submission.output)


def _name_of(submission: Submission) -> tuple[str, str]:
    return submission.problem.name, submission.checkpoint.name


def _real_folder(submission: Submission) -> str:
    return os.path.realpath(submission.path.parent)


def _own_environment(folder: Path) -> _SpecOrError | None:
    """An error in the file is returned: it concerns only the submissions that would use it."""
    path = folder / ENVIRONMENT
    try:
        return EnvironmentSpec.from_yaml(path) if os.path.lexists(path) else None
    except UsageError as error:
        return error


def snapshot_around(path: Path, runs: Iterable[DiscoveredRun]) -> Path | None:
    """The snapshot of these runs that the path is or lies in, whether the path exists or not."""
    real = Path(os.path.realpath(path))
    for run in runs:
        root = run.folder.resolve() if run.folder else None
        if root and real.is_relative_to(root) and SNAPSHOT in real.relative_to(root).parts:
            return path
        for submission in run.submissions:
            if real.is_relative_to(submission.path.resolve()):
                return submission.path
    return None
