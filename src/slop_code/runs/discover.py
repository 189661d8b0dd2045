"""Discovery of runs: the snapshots of run folders, and what cannot be evaluated there."""

from __future__ import annotations

import functools
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code._io import unreadable_text
from slop_code._safe_text import decoded_name
from slop_code._suggestions import near_or_known
from slop_code.errors import UsageError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.problem_lookup import (
    CONFIG,
    DEFAULT_ENVIRONMENT,
    ENVIRONMENT,
    find_folder,
    named_problems_folder,
    problems_folders,
)
from slop_code.evaluation.result_files.origin import remembered_problem
from slop_code.execution.environment import EnvironmentSpec, load_environment
from slop_code.runs.folders.folder_kind import FolderKind, folder_advice
from slop_code.runs.folders.mirror import check_mirror, mirror_folder, mirrored
from slop_code.runs.jobs.job_records import RunIssue, Submission
from slop_code.runs.run_layout import (
    RESULT_FILE,
    SNAPSHOT,
    check_folder,
    named_runs,
    names_in,
    names_or_none,
    natural_order,
)
from slop_code.runs.scb.catalog import catalog_warnings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    _SpecOrError = EnvironmentSpec | UsageError

MISNAMED_ENVIRONMENT = "environment.yml"
UNNAMED_RUN = ""
"""Name of the run of submissions that were given without a run folder."""


@dataclass(frozen=True, slots=True)
class DiscoveredRun:
    """A run folder, whose results are summarised together; or submissions without a run folder.

    Snapshots are read in `input_folder`, results are written in `folder`. Both are the run folder, with two exceptions:
    in a mirrored tree `folder` is in that tree, and for `eval-problem` both are folders of a problem, in `within`.
    """

    name: str
    folder: Path | None
    """Of results and summary. None for submissions without a run folder: they have no summary."""

    submissions: tuple[Submission, ...] = ()
    issues: tuple[RunIssue, ...] = ()
    within: Path | None = None
    """The run folder, or the mirrored tree, around `folder`, where that is the folder of a problem."""
    source: Path | None = None
    """The input folder, where it is not `folder`; nothing is written in it."""
    snapshot_dir: str = SNAPSHOT
    """Name of the folder of a snapshot."""

    @property
    def input_folder(self) -> Path | None:
        return self.source or self.folder

    @property
    def release_warnings(self) -> list[str]:
        """Warnings that the run used another release of the problems."""
        problems = {submission.problem.path.parent for submission in self.submissions}
        folder = self.input_folder
        if folder is not None and self.within is not None:
            folder = folder.resolve().parent
        return catalog_warnings(folder, problems) if folder else []

    @property
    def warnings(self) -> list[str]:
        """Probable mistakes, each once."""
        parents = {submission.path.parent.parent: None for submission in self.submissions if submission.output}
        folders = dict.fromkeys([self.within, self.input_folder, *parents])
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
    output: Path | None = None,
    snapshot_dir: str = SNAPSHOT,
) -> list[DiscoveredRun]:
    """Every run, in the order given. `only` has names of problems. A name that no run has is a UsageError.

    `output`: the folder of a mirrored tree, for all results. `snapshot_dir`: name of the folder of a snapshot.
    """
    named = named_runs(folders)
    wanted = frozenset(os.path.normpath(name) for name in only)
    existing = {name for folder in folders for name in names_or_none(folder)} if wanted else set()
    if unknown := sorted(wanted - existing):
        known = sorted(name for name in existing if any(os.path.isdir(folder / name) for folder in folders))
        searched = ", ".join(str(folder) for folder in folders[:3])
        raise UsageError(f"no problem {unknown[0]!r} in {searched}{near_or_known(unknown[0], known)}")
    if folders:
        check_problems_folder(problems_dir)
    check_snapshot_dir(snapshot_dir)
    several = len(folders) > 1
    explicit = named_problems_folder(problems_dir) is not None
    discovery = _Discovery(
        folders=problems_folders(problems_dir),
        explicit=explicit,
        environment=environment,
        only=wanted,
        output=output,
        several=several,
        snapshot_dir=snapshot_dir,
    )
    runs = [discovery.run(name, folder) for name, folder in named]
    if output is not None:
        check_mirror(output, runs)
    return [_with_issue_if_empty(run) for run in runs] if several else runs


def check_problems_folder(problems_dir: Path | None) -> None:
    """Raises UsageError where the user named a folder of problems that does not exist."""
    problems = named_problems_folder(problems_dir)
    if problems is not None and not problems.is_dir():
        raise UsageError(_no_folder(problems))


def discover_problem(
    folder: Path,
    problem: ProblemConfig,
    environment: EnvironmentSpec | None = None,
    *,
    output: Path | None = None,
    snapshot_dir: str = SNAPSHOT,
) -> DiscoveredRun:
    """The folder of a problem's checkpoints, as a part of the run around it, and of a mirrored tree in `output`."""
    check_folder(folder)
    check_snapshot_dir(snapshot_dir)
    within = folder.resolve().parent
    run = DiscoveredRun(decoded_name(within.name), folder, within=within, snapshot_dir=snapshot_dir)
    spec = environment or environment_in(folder, within, problem.path)
    run = _without_duplicates(run, _checkpoints(run, folder, problem, spec))
    if output is None:
        return run
    run = replace(mirrored(run, output / problem.path.name), within=output)
    check_mirror(output, [run])
    return run


def environment_in(*folders: Path) -> _SpecOrError:
    """The environment of the first of these folders with an environment file, else the default."""
    specs = (_own_environment(folder) for folder in folders)
    return next((spec for spec in specs if spec is not None), None) or _default_environment()


@functools.cache
def _default_environment() -> EnvironmentSpec:
    """Read once: most problems of a run have no environment file."""
    return load_environment(DEFAULT_ENVIRONMENT)


def checkpoint_number(problem: ProblemConfig, checkpoint: str) -> int:
    """Number of a checkpoint among those of its problem, from 1."""
    return list(problem.checkpoints).index(checkpoint) + 1


def _with_issue_if_empty(run: DiscoveredRun) -> DiscoveredRun:
    """Among several runs, an empty run must not keep the others from being evaluated."""
    if run.submissions or run.issues:
        return run
    return replace(run, issues=(RunIssue(run.name, None, None, empty_run_reason(run)),))


def empty_run_reason(run: DiscoveredRun) -> str:
    folder = run.input_folder
    assert folder is not None
    layout = f"<problem>/<checkpoint>/{run.snapshot_dir}"
    advice = folder_advice(folder, run.snapshot_dir, taken=FolderKind.RUN)
    step = "; one submission is evaluated with `slop-code eval-snapshot DIR -p PROBLEM -c CHECKPOINT`"
    return f"{folder}: nothing to evaluate; expected {layout}{advice or step}"


def check_snapshot_dir(name: str) -> None:
    if not name or "/" in name or name.startswith(".") or name == RESULT_FILE:
        raise UsageError(f"--snapshot-dir {name}: expected the name of a folder in the folder of a checkpoint")


def _no_folder(*problems: Path) -> str:
    return f"{', '.join(map(str, problems))}: there is no such folder of problems"


@dataclass(frozen=True, slots=True)
class _Discovery:
    folders: list[Path]
    """Folders of problems."""

    explicit: bool
    """Whether the user named the folder of problems. Otherwise a problem is where it was the last time."""

    environment: EnvironmentSpec | None
    only: frozenset[str]
    output: Path | None
    several: bool
    snapshot_dir: str
    loaded: dict[Path, ProblemConfig] = field(default_factory=dict)
    """Problems that were read before: many runs have the same problems."""

    def run(self, name: str, folder: Path) -> DiscoveredRun:
        run = DiscoveredRun(name, folder, snapshot_dir=self.snapshot_dir)
        try:
            names = names_in(folder)
        except OSError as error:
            return replace(run, issues=(RunIssue(name, None, None, unreadable_text(error, folder)),))
        wanted = [problem for problem in names if not self.only or problem in self.only]
        items = {problem: list(self.problem(run, folder, folder / problem)) for problem in wanted}
        missing = [problem for problem in sorted(self.only) if not items.get(problem)]
        issues = [RunIssue(name, problem, None, "no such problem in this run") for problem in missing]
        all_items = [*(item for group in items.values() for item in group), *issues]
        run = _without_duplicates(run, all_items)
        mirror = self.mirror_of(run)
        return mirrored(run, mirror) if mirror else run

    def mirror_of(self, run: DiscoveredRun) -> Path | None:
        """The folder of the mirrored tree for this run."""
        return mirror_folder(self.output, run.name, several=self.several) if self.output else None

    def problem(self, run: DiscoveredRun, within: Path, folder: Path) -> Iterator[Submission | RunIssue]:
        """Submissions and issues of a problem; none for the folder of no problem, such as a folder of logs."""
        known = None if self.explicit else remembered_problem(folder, within, self.mirror_of(run))
        path = known or find_folder(folder.name, self.folders)
        try:
            if path is None or not os.path.isdir(path):
                reason = vanished_problem_reason(known) if known else self.unknown_problem_reason()
                issues = list(self.issues_of_checkpoints(run, folder, reason)) if os.path.isdir(folder) else []
                yield from (replace(issue, unknown_problem=True) for issue in issues)
                return
            try:
                problem = self.load(path)
            except UsageError as error:
                issues = list(self.issues_of_checkpoints(run, folder, str(error)))
                yield from issues or [RunIssue(run.name, folder.name, None, str(error))]
                return
            spec = self.environment or environment_in(folder, within, problem.path)
            yield from _checkpoints(run, folder, problem, spec)
        except OSError as error:
            yield RunIssue(run.name, folder.name, None, unreadable_text(error, folder))

    def load(self, path: Path) -> ProblemConfig:
        if path not in self.loaded:
            self.loaded[path] = ProblemConfig.from_yaml(path)
        return self.loaded[path]

    def unknown_problem_reason(self) -> str:
        for folder in self.folders:
            if (folder / CONFIG).is_file():
                return f"{folder} is itself a problem; give the folder that holds it as --problems-dir"
        reason = f"no such problem in {', '.join(map(str, self.folders))}"
        if not any(folder.is_dir() for folder in self.folders):
            reason = _no_folder(*self.folders)
        step = "give the folder that holds it as --problems-dir" if self.explicit else "give --problems-dir"
        return f"{reason}; {step}"

    def issues_of_checkpoints(self, run: DiscoveredRun, folder: Path, reason: str) -> Iterator[RunIssue]:
        """An issue for each checkpoint of a problem that cannot be loaded: each folder with a snapshot or a result."""
        contents = (self.snapshot_dir, RESULT_FILE)
        names = [name for name in names_in(folder) if any(os.path.lexists(folder / name / file) for file in contents)]
        for order, name in enumerate(sorted(names, key=natural_order), start=1):
            output = folder / name
            yield RunIssue(run.name, folder.name, name, reason, order, output, output / self.snapshot_dir)


def vanished_problem_reason(known: Path) -> str:
    """Why the problem of the last evaluation is not there."""
    fact = f"no such problem in {known.parent}, the folder of problems of the last evaluation"
    if not known.parent.is_dir():
        fact = f"{known.parent}: the folder of problems of the last evaluation is gone"
    return f"{fact}; give --problems-dir"


def _checkpoints(
    run: DiscoveredRun, folder: Path, problem: ProblemConfig, spec: _SpecOrError
) -> Iterator[Submission | RunIssue]:
    try:
        unknown = [name for name in names_in(folder) if name not in problem.checkpoints]
    except OSError as error:
        yield RunIssue(run.name, problem.name, None, unreadable_text(error, folder))
        return
    for order, (name, checkpoint) in enumerate(problem.iterate_checkpoint_items(), start=1):
        output = folder / name
        snapshot = output / run.snapshot_dir
        reason = _unusable_snapshot_reason(snapshot) or (str(spec) if isinstance(spec, UsageError) else None)
        if reason is not None or isinstance(spec, UsageError):
            yield RunIssue(run.name, problem.name, name, reason or "", order, output, snapshot)
            continue
        yield Submission(
            problem=problem, checkpoint=checkpoint, environment=spec, path=snapshot, output=output, run=run.name
        )
    for name in unknown:
        if os.path.lexists(folder / name / run.snapshot_dir):
            reason = f"{folder / name}: the problem has no such checkpoint"
            yield RunIssue(run.name, problem.name, None, reason, output=folder / name)


def _unusable_snapshot_reason(snapshot: Path) -> str | None:
    """Why there is no snapshot that can be read."""
    try:
        if not snapshot.is_dir():
            return f"{snapshot}: no snapshot"
        os.listdir(snapshot)
    except OSError as error:
        return unreadable_text(error, snapshot)
    return None


def _without_duplicates(run: DiscoveredRun, items: Iterable[Submission | RunIssue]) -> DiscoveredRun:
    """Duplicates become issues: two results with the same name, or in the same folder, would overwrite each other."""
    items = list(items)
    submissions = [item for item in items if isinstance(item, Submission)]
    issues = [item for item in items if isinstance(item, RunIssue)]
    if not submissions and all(_is_of_a_problem_itself(issue, run.snapshot_dir) for issue in issues):
        return run
    names = Counter(_name_of(submission) for submission in submissions)
    real = {id(submission): _identity_of(submission.path.parent) for submission in submissions}
    folders = Counter(real.values())
    duplicates = {_name_of(submission): submission for submission in submissions if names[_name_of(submission)] > 1}
    issues += [
        replace(issue_for(submission, "two folders of this run hold this problem"), output=None)  # two results
        for submission in duplicates.values()
    ]
    named_once = [submission for submission in submissions if names[_name_of(submission)] == 1]
    unique = tuple(submission for submission in named_once if folders[real[id(submission)]] == 1)
    issues += [
        issue_for(submission, f"{submission.output}: the folder of another checkpoint, too")
        for submission in named_once
        if folders[real[id(submission)]] > 1
    ]
    return replace(run, submissions=unique, issues=tuple(issues))


def _identity_of(folder: Path) -> tuple[int, int] | str:
    """Equal for all names of a folder; the path itself where there is no such folder."""
    try:
        status = os.stat(folder)
    except OSError:
        return os.path.realpath(folder)
    return status.st_dev, status.st_ino


def _is_of_a_problem_itself(issue: RunIssue, snapshot_dir: str) -> bool:
    """A snapshot is missing in the folder of a problem itself, which was mistaken for one of a run."""
    contents = (snapshot_dir, RESULT_FILE)
    if issue.output is None or any(os.path.lexists(issue.output / file) for file in contents):
        return False
    return os.path.lexists(issue.output.parent / CONFIG)


def issue_for(submission: Submission, reason: str) -> RunIssue:
    problem, checkpoint = submission.problem, submission.checkpoint.name
    order = checkpoint_number(problem, checkpoint)
    return RunIssue(submission.run, problem.name, checkpoint, reason, order, submission.output, submission.path)


def _name_of(submission: Submission) -> tuple[str, str]:
    return submission.problem.name, submission.checkpoint.name


def _own_environment(folder: Path) -> _SpecOrError | None:
    """An error in the file is returned: it concerns only the submissions that would use it."""
    path = folder / ENVIRONMENT
    try:
        return EnvironmentSpec.from_yaml(path) if os.path.lexists(path) else None
    except UsageError as error:
        return error
