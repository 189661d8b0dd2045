"""What evaluated runs hold, read back: each checkpoint's line with its result, one at a time."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.runs.checkpoint_lines import (
    CheckpointFacts,
    CheckpointLine,
    PassedByTest,
    compare,
    passed_by_test,
    read_lines,
)
from slop_code.runs.run_layout import (
    LINES_FILE,
    RESULT_FILE,
    SNAPSHOT,
    SUMMARY_FILE,
    check_folder,
    named_runs,
    names_or_none,
    natural_order,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LEVELS = 2
"""Folders between a run's and that of a result: problem and checkpoint."""

SHOWN = 20


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """One checkpoint of a run."""

    line: CheckpointLine
    """What the result says, where there is one; never what a summary said once."""

    results: CorrectnessResults | None = None
    folder: Path | None = None
    """Where evaluation.json and .scbench lie."""


@dataclass(frozen=True, slots=True)
class RunResults:
    name: str
    folder: Path

    def entries(self) -> Iterator[StoredCheckpoint]:
        """By problem, in the order of its checkpoints, each read when it is wanted.

        A result that cannot be read is a checkpoint without a verdict, and says why.
        """
        seen: set[tuple[str, str]] = set()
        before: tuple[str, str, PassedByTest] | None = None
        for place in self._places():
            entry = place.entry(self)
            line = entry.line
            if (line.problem, line.checkpoint) in seen:
                raise ResultError(f"{self.folder}: two results for {line.problem} {line.checkpoint}; keep one of them")
            seen.add((line.problem, line.checkpoint))
            if entry.results is not None and line.state == "evaluated":
                outcomes = passed_by_test(entry.results)
                if before is not None and before[0] == line.problem:
                    regressions = compare(before[2], outcomes, since=before[1])
                    entry = replace(entry, line=line.model_copy(update={"regressions": regressions}))
                before = line.problem, line.checkpoint, outcomes
            yield entry
            del entry  # what nobody keeps is gone before the next one is read

    def _places(self) -> list[_Place]:
        paths = {os.path.relpath(path, self.folder): path for path in result_files(self.folder)}
        if os.path.lexists(self.folder / LINES_FILE):
            found = [self._summarised(line, paths) for line in read_lines(self.folder / LINES_FILE)]
            found += [_unknown(path) for path in paths.values()]
        else:
            found = [_unknown(path) for path in paths.values()]
            found += self._missing(found)
        found.sort(key=lambda one: (one.problem, one.order or sys.maxsize, natural_order(one.checkpoint)))
        count: Counter[str] = Counter()
        for number, place in enumerate(found):
            count[place.problem] += 1
            found[number] = replace(place, order=place.order or count[place.problem])
        return found

    def _missing(self, found: Sequence[_Place]) -> list[_Place]:
        """Where nothing says what was planned: checkpoints of the same problems, and snapshots, without a result."""
        names = {place.path.parent.parent: place.problem for place in found if place.path}
        wanted: dict[tuple[str, str], int | None] = {}
        for snapshot in snapshots_in(self.folder):
            folder = snapshot.parent.parent
            wanted[names.get(folder, text_of(folder.resolve().name)), text_of(snapshot.parent.name)] = None
        for place in found:
            if place.path != self.folder / RESULT_FILE:
                wanted.update({(place.problem, name): order for order, name in enumerate(place.ordered, start=1)})
        known = {(place.problem, place.checkpoint) for place in found}
        reason = f"no result; evaluate it: slop-code eval {shlex.quote(str(self.folder))}"
        return [
            _Place(*names, order, None, _line(self.name, *names, CheckpointFacts.no_verdict(reason)))
            for names, order in wanted.items()
            if names not in known
        ]

    def _summarised(self, line: CheckpointLine, paths: dict[str, Path]) -> _Place:
        """Takes from `paths` what this line is about. Without a result of its own, what lies there is another's."""
        usual = f"{line.problem}/{line.checkpoint}/{RESULT_FILE}"
        path = paths.pop(line.evaluation or usual, None)
        if line.evaluation is None and path is not None:
            step = f"slop-code merge {shlex.quote(str(self.folder))} looks at it again"
            reason = f"{line.reason}; {path} is not its result: {step}"
            path, line = None, line.model_copy(update={"reason": reason})
        elif line.evaluation is not None and path is None:
            line = _without(line, f"{self.folder / line.evaluation}: the result is gone; evaluate it again")
        return _Place(line.problem, line.checkpoint, line.order, path, line)


@dataclass(frozen=True, slots=True)
class _Place:
    """A checkpoint that a run has, or should have."""

    problem: str
    checkpoint: str
    order: int | None
    """Among the problem's checkpoints, from 1; None: nothing says so."""

    path: Path | None
    line: CheckpointLine | None = None
    """What is known where there is no result."""

    ordered: Sequence[str] = ()
    """The problem's checkpoints."""

    def entry(self, run: RunResults) -> StoredCheckpoint:
        order: dict[str, object] = {"order": self.order}
        if self.path is None:
            assert self.line is not None
            return StoredCheckpoint(self.line.model_copy(update=order))
        order["evaluation"] = os.path.relpath(self.path, run.folder)
        try:
            results = CorrectnessResults.load(self.path)
        except ResultError as error:
            line = _line(run.name, self.problem, self.checkpoint, CheckpointFacts.no_verdict(str(error)))
            return StoredCheckpoint(line.model_copy(update=order), None, self.path.parent)
        line = _line(run.name, results.problem_name, results.checkpoint_name, CheckpointFacts.of(results))
        return StoredCheckpoint(line.model_copy(update=order), results, self.path.parent)


def _line(run: str, problem: str, checkpoint: str, facts: CheckpointFacts) -> CheckpointLine:
    return CheckpointLine(**dict(facts), run=run, problem=problem, checkpoint=checkpoint, order=1)


def _unknown(path: Path) -> _Place:
    """One that no summary knows is read for its place among the others, too."""
    try:
        results = CorrectnessResults.load(path)
    except ResultError:
        return _Place(text_of(path.parent.parent.resolve().name), text_of(path.parent.name), None, path)
    name, ordered = results.checkpoint_name, results.provenance.checkpoints
    order = ordered.index(name) + 1 if name in ordered else None
    return _Place(results.problem_name, name, order, path, None, ordered)


def _without(line: CheckpointLine, reason: str) -> CheckpointLine:
    return line.model_copy(update={**dict(CheckpointFacts.no_verdict(reason)), "regressions": None})


def folder_of(given: Path) -> Path:
    """Of a result that is given as its file."""
    return given.parent if given.name == RESULT_FILE and not given.is_dir() else given


def result_at(given: Path) -> Path:
    """The evaluation.json that is meant by itself or by its folder."""
    if os.path.lexists(given) and not given.is_dir():
        return given
    folder = folder_of(given)
    if os.path.lexists(folder / RESULT_FILE):
        return folder / RESULT_FILE
    found = result_files(folder) if folder.is_dir() else []
    if not found:
        raise UsageError(
            f"{given}: no {RESULT_FILE} there; give a result that was evaluated, such as RUN_DIR/problem/checkpoint"
        )
    several = "".join(f"\n  {path.parent}" for path in found[:SHOWN])
    more = f"\n  and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise UsageError(f"{given}: a folder around results; give one of them:{several}{more}")


def check_output(path: Path, option: str = "-o") -> None:
    """Nothing that is written from results takes the place of one, or lies where a submission does."""
    if path.is_dir():
        raise UsageError(f"{path}: a folder; give the name of a file with {option}")
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise UsageError(f"{path}: not a plain file, and would be replaced by one; give another name with {option}")
    if SNAPSHOT in path.absolute().parent.resolve().parts:
        raise UsageError(f"{path}: lies in a snapshot, where nothing is ever written; give another place with {option}")
    if path.name in (RESULT_FILE, LINES_FILE, SUMMARY_FILE) or REPORTS_DIR in path.absolute().parts:
        raise UsageError(f"{path}: a name of the results' own; give another one with {option}")


def read_runs(given: Sequence[Path]) -> list[RunResults]:
    """Each a run's folder, one that holds runs, a problem's, that of one result, or the evaluation.json itself."""
    folders = [run for path in given for run in runs_below(folder_of(path))]
    return [RunResults(name, folder) for name, folder in named_runs(folders)]


def result_files(folder: Path, levels: int = LEVELS) -> list[Path]:
    """What lies in a snapshot is the submission's, whatever it is called."""
    here = [folder / RESULT_FILE] if os.path.lexists(folder / RESULT_FILE) else []
    inside = [folder / name for name in names_or_none(folder) if name != SNAPSHOT] if levels else []
    return here + [path for place in inside if place.is_dir() for path in result_files(place, levels - 1)]


def snapshots_in(folder: Path, levels: int = LEVELS) -> list[Path]:
    found: list[Path] = []
    for place in (folder / name for name in names_or_none(folder) if levels and name != SNAPSHOT):
        snapshot = place / SNAPSHOT
        found += [snapshot] if snapshot.is_dir() else snapshots_in(place, levels - 1)
    return found


def runs_below(folder: Path) -> list[Path]:
    """The run itself, or the runs that a folder holds."""
    check_folder(folder)
    if _holds_results(folder):
        return [folder]
    inside = [folder / name for name in sorted(names_or_none(folder), key=natural_order)]
    found = [place for place in inside if place.is_dir() and _holds_results(place)]
    if not found:
        step = f"evaluate it first: slop-code eval {shlex.quote(str(folder))}"
        raise UsageError(f"{folder}: no {RESULT_FILE} there, and no run that has one; {step}")
    return found


def _holds_results(folder: Path) -> bool:
    return os.path.lexists(folder / LINES_FILE) or bool(result_files(folder))
