"""What evaluated runs hold, read back: each checkpoint's line with its result, one at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.conclude import LINES
from slop_code.runs.discover import RESULT
from slop_code.runs.layout import LAYOUT, SNAPSHOT, named_runs, names_or_none, natural
from slop_code.runs.lines import CheckpointLine, Facts, Outcomes, compare, outcomes_of, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LEVELS = 2
"""Folders between a run's and that of a result: problem and checkpoint."""


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
        """By problem, in the order of checkpoints; one result is in memory at a time.

        A result that cannot be read is a checkpoint without a verdict, and says why.
        """
        seen: list[tuple[str, str]] = []
        before: tuple[str, str, Outcomes] | None = None
        for path, told in self._places():
            entry = Entry(told) if path is None and told else self._read(path or self.folder, told)
            line = entry.line
            if (line.problem, line.checkpoint) in seen:
                raise ResultError(f"{self.folder}: two results for {line.problem} {line.checkpoint}; keep one of them")
            seen.append((line.problem, line.checkpoint))
            if told is None:
                line = line.model_copy(update={"order": sum(problem == line.problem for problem, _ in seen)})
                entry = replace(entry, line=line)
            if entry.results is not None and line.state == "evaluated":
                outcomes = outcomes_of(entry.results)
                if before is not None and before[0] == line.problem:
                    regressions = compare(before[2], outcomes, since=before[1])
                    entry = replace(entry, line=line.model_copy(update={"regressions": regressions}))
                before = line.problem, line.checkpoint, outcomes
            yield entry

    def _places(self) -> list[tuple[Path | None, CheckpointLine | None]]:
        """Each checkpoint: its file, and what was summarised of it. A summary knows what has no file."""
        paths = {os.path.relpath(path, self.folder): path for path in result_files(self.folder)}
        summary = self.folder / LINES
        lines = read_lines(summary) if os.path.lexists(summary) else []
        found: list[tuple[Path | None, CheckpointLine | None]] = []
        for line in lines:
            path = paths.pop(line.evaluation, None) if line.evaluation else None
            usual = f"{line.problem}/{line.checkpoint}/{RESULT}"
            if path is None and usual in paths:  # a later evaluation's, or one that a failure left there
                other = paths.pop(usual)
                path = other if line.evaluation or os.stat(other).st_mtime_ns > os.stat(summary).st_mtime_ns else None
            if path is None and line.evaluation:
                line = _without(line, f"{self.folder / line.evaluation}: the result is gone; evaluate it again")
            found.append((path, line))
        found += [(path, None) for path in paths.values()]
        return sorted(found, key=_order)

    def _read(self, path: Path, told: CheckpointLine | None) -> Entry:
        place = {"evaluation": os.path.relpath(path, self.folder), "order": told.order if told else 1, "run": self.name}
        try:
            results = CorrectnessResults.load(path)
        except ResultError as error:
            names = {"problem": path.parent.parent.name, "checkpoint": path.parent.name}
            line = told or CheckpointLine(**dict(Facts.none("")), **names, **place)
            return Entry(_without(line, str(error)), None, path.parent)
        names = {"problem": results.problem_name, "checkpoint": results.checkpoint_name}
        return Entry(CheckpointLine(**dict(Facts.of(results)), **names, **place), results, path.parent)


def _without(line: CheckpointLine, reason: str) -> CheckpointLine:
    return line.model_copy(update={**dict(Facts.none(reason)), "regressions": None})


def _order(found: tuple[Path | None, CheckpointLine | None]) -> tuple[object, ...]:
    path, line = found
    if line is not None:
        return line.problem, line.order, natural(line.checkpoint)
    assert path is not None
    return path.parent.parent.name, 1, natural(path.parent.name)


def read_runs(given: Sequence[Path]) -> list[RunResults]:
    """Each a run's folder, a problem's of it, that of one result, or the evaluation.json itself."""
    folders = [path.parent if path.name == RESULT and not path.is_dir() else path for path in given]
    named = named_runs(folders)
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
