"""Repetition of starved tests and others that did not pass, alone on the machine."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.evaluation.evidence import PytestExit, repeat_folder
from slop_code.evaluation.roster import Roster
from slop_code.evaluation.run_tests import PytestSettings, keep_evidence, read_reports, run_pairs
from slop_code.evaluation.usage.starvation import to_repeat
from slop_code.execution.processors import memory_share, processor_share
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.evaluation.evidence import Evidence, ReportParser
    from slop_code.evaluation.grading import Grade
    from slop_code.execution.session import Session

MAX_REPEATS = 2
"""A machine that the probe calls free may have been busy for a moment."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repeater:
    settings: PytestSettings
    open_session: Callable[[], AbstractContextManager[Session]]
    output: Path | None
    """The folder of the result."""
    parse_ctrf: ReportParser

    def run(self, roster: Roster, grade: Callable[[Sequence[Evidence]], Grade]) -> list[Evidence]:
        """The evidence of each repetition. `grade` grades the first run with the repetitions so far."""
        repeats: list[Evidence] = []
        while len(repeats) < MAX_REPEATS:
            graded = grade(repeats)
            chosen = [test.nodeid for test in to_repeat(graded.tests)]
            if graded.infrastructure_failure_reason is not None or not chosen:
                break
            repeats.append(self._repeat(with_earlier_tests(roster, chosen), len(chosen), len(repeats) + 1))
        return repeats

    def _repeat(self, roster: Roster, count: int, number: int) -> Evidence:
        """The machine is probed while no box is open: nothing that the submission does can make it look busy."""
        context = self.settings.context
        context.progress(ProgressEvent(ProgressKind.REPEAT_STARVED, count=count))
        _log.info("repeating %d tests, of which some had no processor or no memory, repetition %d", count, number)
        with context.cache.quiet_lock(), self.open_session() as session:
            limit = context.environment.limits.memory
            before = processor_share(), memory_share(limit)
            ended = run_pairs(self.settings, [session], roster)
            processor, memory = map(min, before, (processor_share(), memory_share(limit)))
            (evidence,) = read_reports(ended, [session], self.parse_ctrf)
            if isinstance(evidence.exit, PytestExit):
                measured = evidence.exit.model_copy(update={"processor_share": processor, "memory_share": memory})
                evidence = replace(evidence, exit=measured)
            evidence = replace(evidence, folder=repeat_folder(number))
            keep_evidence(self.output, [session], [evidence], roster, evidence.folder)
        _log.info("free meanwhile: %.2f of a processor, %.2f of the memory limit", processor, memory)
        return evidence


def with_earlier_tests(roster: Roster, nodeids: Collection[str]) -> Roster:
    """These tests, and those before them in the same files, since a test may need what an earlier one left."""
    needed: set[str] = set()
    files: set[str] = set()
    for entry in reversed(roster.entries):
        file = entry.nodeid.partition("::")[0]
        if entry.nodeid in nodeids:
            files.add(file)
        if file in files and entry.pair is not None:
            needed.add(entry.nodeid)
    return Roster(tuple(replace(entry, pair=1) for entry in roster.entries if entry.nodeid in needed))
