"""Reader of evaluated runs: each checkpoint with its line and its result, read when it is asked for."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slop_code._arguments import check_paths
from slop_code._safe_text import decoded_name
from slop_code.errors import ResultError
from slop_code.evaluation.result_files.replace_result import is_interrupted
from slop_code.runs.checkpoint_lines import (
    CheckpointFacts,
    CheckpointLine,
    PassedByTest,
    count_regressions,
    passed_by_test,
    read_lines,
)
from slop_code.runs.folders.result_folders import (
    checkpoint_folders,
    folder_of,
    result_files,
    runs_below,
    unreadable_folders,
)
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, named_runs, natural_order, stored_snapshot
from slop_code.runs.scb.agent_facts import read_agent_facts
from slop_code.runs.scb.load_result import load_result
from slop_code.runs.scb.scb_lines import ScbLine, agent_facts_of, has_own_lines, scb_lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.runs.scb.agent_facts import AgentFacts


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """One checkpoint of a run."""

    line: CheckpointLine
    """Made of the result, if any; a line of an old summary is not used."""

    results: CorrectnessResults | None = None
    folder: Path | None = None
    """The folder of evaluation.json and .scbench."""

    error: str | None = None
    """Why its result cannot be read, or that it is gone."""


@dataclass(frozen=True, slots=True)
class RunResults:
    name: str
    folder: Path
    unreadable: list[str] = field(default_factory=list, compare=False)
    """Results and folders that the last call of `entries` could not read, each with the reason."""

    lines: Sequence[CheckpointLine] | None = None
    """Of an evaluation that goes on: its checkpoints so far, in place of the summary and of other results."""

    def entries(self) -> Iterator[StoredCheckpoint]:
        """Checkpoints by problem, in the problem's order. Each result is read when it is asked for.

        A result that cannot be read is a checkpoint without a verdict, with the reason.
        """
        self.unreadable[:] = unreadable_folders(self.folder)
        sources: dict[tuple[str, str], Path] = {}
        before: tuple[str, str, PassedByTest] | None = None
        for located in self._located():
            entry = located.read(self)
            self.unreadable.extend([entry.error] if entry.error else [])
            line = entry.line
            names, source = (line.problem, line.checkpoint), entry.folder or self.folder / LINES_FILE
            if names in sources:
                both = f"{sources[names]} and {source}"
                raise ResultError(f"two results for {line.problem} {line.checkpoint}: {both}; keep one of them")
            sources[names] = source
            if entry.results is not None and line.state == "evaluated":
                passed = passed_by_test(entry.results)
                if before is not None and before[0] == line.problem:
                    regressions = count_regressions(before[2], passed, since=before[1])
                    entry = replace(entry, line=line.model_copy(update={"regressions": regressions}))
                before = line.problem, line.checkpoint, passed
            yield entry
            del entry  # frees the memory before the next result is read

    def _located(self) -> list[_LocatedCheckpoint]:
        """All checkpoints that the run has or should have, in order and with their numbers."""
        located = self._stored() if self.lines is None else [self._so_far(line) for line in self.lines]
        located.sort(key=lambda item: (item.problem, item.order or sys.maxsize, natural_order(item.checkpoint)))
        count: Counter[str] = Counter()
        for number, item in enumerate(located):
            count[item.problem] += 1
            located[number] = replace(item, order=item.order or count[item.problem])
        return located

    def _so_far(self, line: CheckpointLine) -> _LocatedCheckpoint:
        path = self.folder / line.evaluation if line.evaluation else None
        return _LocatedCheckpoint(line.problem, line.checkpoint, line.order, path, line)

    def _stored(self) -> list[_LocatedCheckpoint]:
        paths = {os.path.relpath(path, self.folder): path for path in result_files(self.folder)}
        if has_own_lines(self.folder):
            summarised = [self._summarised(line, paths) for line in read_lines(self.folder / LINES_FILE)]
            moved = [_locate(path) for path in paths.values()]
            names = {(item.problem, item.checkpoint) for item in moved}
            gone = [item for item in summarised if item.is_gone and (item.problem, item.checkpoint) in names]
            return [*(item for item in summarised if item not in gone), *moved]
        located = [_locate(path) for path in paths.values()]
        located += self._missing(located)
        return self._with_scb_lines(located, scb_lines_of(self.folder))

    def _missing(self, located: Sequence[_LocatedCheckpoint]) -> list[_LocatedCheckpoint]:
        """Without a summary: checkpoints of the same problems, and snapshots, that have no result."""
        problems = {item.path.parent.parent: item.problem for item in located if item.path}
        wanted: dict[tuple[str, str], int | None] = {}
        agents: dict[tuple[str, str], AgentFacts | None] = {}
        for folder in (path for path in checkpoint_folders(self.folder) if path != self.folder):
            problem = problems.get(folder.parent, decoded_name(folder.parent.resolve().name))
            names = problem, decoded_name(folder.resolve().name)
            wanted[names], agents[names] = None, read_agent_facts(stored_snapshot(folder).parent)
        for item in located:
            if item.path != self.folder / RESULT_FILE:
                wanted.update({(item.problem, name): order for order, name in enumerate(item.checkpoints, start=1)})
        known = {(item.problem, item.checkpoint) for item in located}
        facts = CheckpointFacts.no_verdict(f"no result; evaluate it: slop-code eval {shlex.quote(str(self.folder))}")
        return [
            _LocatedCheckpoint(*names, order, None, _line(self.name, *names, facts, agents.get(names)))
            for names, order in wanted.items()
            if names not in known
        ]

    def _with_scb_lines(
        self, located: Sequence[_LocatedCheckpoint], lines: Sequence[ScbLine]
    ) -> list[_LocatedCheckpoint]:
        """Order and facts from the lines of the SlopCodeBench runner; a checkpoint of these alone has no verdict."""
        order: dict[tuple[str, str], int] = {}
        count: Counter[str] = Counter()
        for line in sorted(lines, key=lambda line: line.number):
            count[line.problem] += 1
            order[line.problem, line.checkpoint] = count[line.problem]
        by_name = {(line.problem, line.checkpoint): line for line in lines}
        known = {(item.problem, item.checkpoint) for item in located}
        alone = [
            _LocatedCheckpoint(*names, None, None, _line(self.name, *names, CheckpointFacts.no_verdict(reason)))
            for names, line in by_name.items()
            if names not in known
            for reason in [f"no {RESULT_FILE}; in {LINES_FILE} of the SlopCodeBench runner its state is {line.state}"]
        ]
        return [
            replace(item, order=item.order or order.get(names), agent_line=by_name.get(names))
            for item in (*located, *alone)
            for names in [(item.problem, item.checkpoint)]
        ]

    def _summarised(self, line: CheckpointLine, paths: dict[str, Path]) -> _LocatedCheckpoint:
        """Takes the path of this line's result from `paths`. A file at its usual path may belong to another result."""
        usual = f"{line.problem}/{line.checkpoint}/{RESULT_FILE}"
        path = paths.pop(line.evaluation or usual, None)
        if line.evaluation is None and path is not None:
            step = f"slop-code merge {shlex.quote(str(self.folder))} looks at it again"
            reason = f"{line.reason}; {path} is not its result: {step}"
            path, line = None, line.model_copy(update={"reason": reason})
        elif line.evaluation is not None and path is None:
            gone = CheckpointFacts.no_verdict(_why_gone(self.folder / line.evaluation))
            line = line.model_copy(update={**dict(gone), "regressions": None})
        return _LocatedCheckpoint(line.problem, line.checkpoint, line.order, path, line)


@dataclass(frozen=True, slots=True)
class _LocatedCheckpoint:
    """A checkpoint that a run has or should have, before its result is read."""

    problem: str
    checkpoint: str
    order: int | None
    """Number among the problem's checkpoints, from 1; None where that is unknown."""

    path: Path | None
    line: CheckpointLine | None = None
    """The line of the summary; always there without a result."""

    checkpoints: Sequence[str] = ()
    """Names of all checkpoints of the problem, in their order."""

    agent_line: ScbLine | None = None
    """What the SlopCodeBench runner says of the checkpoint."""

    @property
    def is_gone(self) -> bool:
        """The summary names a result that does not exist."""
        return self.path is None and self.line is not None and self.line.evaluation is not None

    def read(self, run: RunResults) -> StoredCheckpoint:
        order: dict[str, object] = {"order": self.order}
        if self.path is None:
            assert self.line is not None
            order["agent"] = self.line.agent or (self.agent_line.agent if self.agent_line else None)
            line = self.line.model_copy(update=order)
            return StoredCheckpoint(line, error=self.line.reason if self.is_gone else None)
        order["evaluation"] = os.path.relpath(self.path, run.folder)
        order["agent"] = agent_facts_of(self.path.parent, self.agent_line) or (self.line.agent if self.line else None)
        try:
            results = load_result(self.path)
        except ResultError as error:
            line = _line(run.name, self.problem, self.checkpoint, CheckpointFacts.no_verdict(str(error)))
            return StoredCheckpoint(line.model_copy(update=order), None, self.path.parent, str(error))
        facts = CheckpointFacts.of(results)
        if self.line is not None and all(getattr(self.line, name) == value for name, value in facts):
            order["not_looked_at_again"] = self.line.not_looked_at_again
        line = _line(run.name, results.problem_name, results.checkpoint_name, facts)
        return StoredCheckpoint(line.model_copy(update=order), results, self.path.parent)


def _line(
    run: str, problem: str, checkpoint: str, facts: CheckpointFacts, agent: AgentFacts | None = None
) -> CheckpointLine:
    return CheckpointLine(**dict(facts), run=run, problem=problem, checkpoint=checkpoint, order=1, agent=agent)


def _locate(path: Path) -> _LocatedCheckpoint:
    """A result that is in no summary is read for its number among the checkpoints."""
    try:
        results = load_result(path)
    except ResultError:
        problem = decoded_name(path.parent.parent.resolve().name)
        return _LocatedCheckpoint(problem, decoded_name(path.parent.name), None, path)
    name, ordered = results.checkpoint_name, results.provenance.checkpoints
    order = ordered.index(name) + 1 if name in ordered else None
    return _LocatedCheckpoint(results.problem_name, name, order, path, None, ordered)


def _why_gone(path: Path) -> str:
    if is_interrupted(path.parent):
        return f"{path}: its replacement was interrupted; evaluate the run again to complete it"
    return f"{path}: the result is gone; evaluate it again"


def read_runs(paths: Path | str | Iterable[Path | str]) -> list[RunResults]:
    """Each path is the folder of a run, of several runs, of a problem or of a result, or an evaluation.json."""
    given = check_paths("paths", paths, "the folder of a run, or a list of such paths")
    folders = [run for path in given for run in runs_below(folder_of(path))]
    return [RunResults(name, folder) for name, folder in named_runs(folders)]
