"""What evaluated runs hold, read back: each checkpoint's line with its result, one at a time."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.conclude import LINES, SUMMARY
from slop_code.runs.discover import RESULT
from slop_code.runs.layout import LAYOUT, SNAPSHOT, named_runs, names_or_none, natural
from slop_code.runs.lines import CheckpointLine, Facts, Outcomes, compare, outcomes_of, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LEVELS = 2
"""Folders between a run's and that of a result: problem and checkpoint."""

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Entry:
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

    def entries(self) -> Iterator[Entry]:
        """By problem, in the order of its checkpoints, each read when it is wanted.

        A result that cannot be read is a checkpoint without a verdict, and says why.
        """
        seen: set[tuple[str, str]] = set()
        before: tuple[str, str, Outcomes] | None = None
        for place in self._places():
            entry = place.entry(self)
            line = entry.line
            if (line.problem, line.checkpoint) in seen:
                raise ResultError(f"{self.folder}: two results for {line.problem} {line.checkpoint}; keep one of them")
            seen.add((line.problem, line.checkpoint))
            if entry.results is not None and line.state == "evaluated":
                outcomes = outcomes_of(entry.results)
                if before is not None and before[0] == line.problem:
                    regressions = compare(before[2], outcomes, since=before[1])
                    entry = replace(entry, line=line.model_copy(update={"regressions": regressions}))
                before = line.problem, line.checkpoint, outcomes
            yield entry

    def _places(self) -> list[_Place]:
        paths = {os.path.relpath(path, self.folder): path for path in result_files(self.folder)}
        lines = read_lines(self.folder / LINES) if os.path.lexists(self.folder / LINES) else []
        found = [self._summarised(line, paths) for line in lines]
        found += [_unknown(path) for path in paths.values()]
        found.sort(key=lambda one: (one.problem, one.order or sys.maxsize, natural(one.checkpoint)))
        count: Counter[str] = Counter()
        for number, place in enumerate(found):
            count[place.problem] += 1
            found[number] = replace(place, order=place.order or count[place.problem])
        return found

    def _summarised(self, line: CheckpointLine, paths: dict[str, Path]) -> _Place:
        """Takes from `paths` what this line is about. Without a result of its own, what lies there is another's."""
        usual = f"{line.problem}/{line.checkpoint}/{RESULT}"
        path = paths.pop(line.evaluation or usual, None)
        if line.evaluation is None and path is not None:
            reason = f"{line.reason}; {path} is not its result: slop-code merge {self.folder} looks at it again"
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
    """As it was summarised."""

    def entry(self, run: RunResults) -> Entry:
        if self.path is None:
            assert self.line is not None
            return Entry(self.line)
        place = {"run": run.name, "order": self.order, "evaluation": os.path.relpath(self.path, run.folder)}
        try:
            results = CorrectnessResults.load(self.path)
        except ResultError as error:
            names = {"problem": self.problem, "checkpoint": self.checkpoint}
            return Entry(CheckpointLine(**dict(Facts.none(str(error))), **names, **place), None, self.path.parent)
        names = {"problem": results.problem_name, "checkpoint": results.checkpoint_name}
        return Entry(CheckpointLine(**dict(Facts.of(results)), **names, **place), results, self.path.parent)


def _unknown(path: Path) -> _Place:
    """One that no summary knows is read for its place among the others, too."""
    try:
        results = CorrectnessResults.load(path)
    except ResultError:
        return _Place(path.parent.parent.name, path.parent.name, None, path)
    name, ordered = results.checkpoint_name, results.provenance.checkpoints
    return _Place(results.problem_name, name, ordered.index(name) + 1 if name in ordered else None, path)


def _without(line: CheckpointLine, reason: str) -> CheckpointLine:
    return line.model_copy(update={**dict(Facts.none(reason)), "regressions": None})


def folder_of(given: Path) -> Path:
    """Of a result that is given as its file."""
    return given.parent if given.name == RESULT and not given.is_dir() else given


def result_at(given: Path) -> Path:
    """The evaluation.json that is meant by itself or by its folder."""
    if os.path.lexists(given) and not given.is_dir():
        return given
    folder = folder_of(given)
    if os.path.lexists(folder / RESULT):
        return folder / RESULT
    found = result_files(folder) if folder.is_dir() else []
    if not found:
        raise UsageError(f"{given}: no {RESULT} there; give a result, such as RUN_DIR/problem/checkpoint")
    several = "".join(f"\n  {path.parent}" for path in found[:SHOWN])
    more = f"\n  and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise UsageError(f"{given}: a folder around results; give one of them:{several}{more}")


def check_output(path: Path) -> None:
    """Nothing that is written from results takes the place of one, or lies where a submission does."""
    if path.is_dir():
        raise UsageError(f"{path}: a folder; give the name of a file with -o")
    if SNAPSHOT in path.absolute().parent.resolve().parts:
        raise UsageError(f"{path}: lies in a snapshot, where nothing is ever written; give another place with -o")
    if path.resolve().name in (RESULT, LINES, SUMMARY):
        raise UsageError(f"{path}: a name of the results' own; give another one with -o")


def read_runs(given: Sequence[Path]) -> list[RunResults]:
    """Each a run's folder, a problem's of it, that of one result, or the evaluation.json itself."""
    named = named_runs([folder_of(path) for path in given])
    for _, folder in named:
        if not os.path.lexists(folder / LINES) and not result_files(folder):
            raise UsageError(f"{folder}: no {RESULT} there; evaluate it first: slop-code eval {folder}")
    return [RunResults(name, folder) for name, folder in named]


def result_files(folder: Path, levels: int = LEVELS) -> list[Path]:
    """What lies in a snapshot is the submission's, whatever it is called."""
    here = [folder / RESULT] if os.path.lexists(folder / RESULT) else []
    inside = [folder / name for name in names_or_none(folder) if name != SNAPSHOT] if levels else []
    return here + [path for place in inside if place.is_dir() for path in result_files(place, levels - 1)]


def runs_below(folder: Path) -> list[Path]:
    """The run itself, or the runs that a folder holds."""
    if os.path.lexists(folder / LINES) or result_files(folder):
        return [folder]
    inside = [folder / name for name in sorted(names_or_none(folder), key=natural)]
    found = [place for place in inside if place.is_dir() and (os.path.lexists(place / LINES) or result_files(place))]
    if not found:
        raise UsageError(
            f"{folder}: neither a run with results nor a folder of such runs; expected {LAYOUT} and results"
        )
    return found
