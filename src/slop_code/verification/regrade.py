"""A stored result's tests and verdict once more, from the raw reports beside it, as an evaluation comes to them."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code._io import open_regular, tail
from slop_code.evaluation.conclusion import REASON_LIMIT, Conclusion, conclude
from slop_code.evaluation.evidence import Accounts, Evidence, read_accounts
from slop_code.evaluation.exit_record import EXIT, Ending, read_ending
from slop_code.evaluation.grading import NOT_IN_ROSTER
from slop_code.evaluation.pairs import NEVER_RAN, Part
from slop_code.evaluation.reports.raw_test import visible
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.evaluation.run_tests import RAW_FILES, account, believed
from slop_code.execution.process import TAIL, ProcessResult
from slop_code.execution.sandbox import REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.groups import GroupType
    from slop_code.evaluation.report import CorrectnessResults, TestResult

_TIMEOUT = re.compile(r"session timeout of (\d{1,9}(?:\.\d{1,9})?(?:e\+\d{1,2})?) s ")


@dataclass(frozen=True, slots=True)
class Raw:
    """What one pair left."""

    name: str
    """Of its folder, seen from that of the result."""
    accounts: Accounts
    evidence: Evidence
    log: str
    ending: Ending | str | None = None
    """None in older results; a text: what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Rederived:
    conclusion: Conclusion
    unchecked: list[str] = field(default_factory=list)
    """What no raw report can tell, in words."""


def places_of(pairs: int) -> list[str]:
    """The folders of an evaluation in so many pairs."""
    return [REPORTS_DIR] if pairs == 1 else [f"{REPORTS_DIR}/{number}" for number in range(1, pairs + 1)]


def read_raw(folder: Path, pairs: int) -> list[Raw]:
    """Those of each pair that left any; `pairs`: how many there were."""
    return [_read(folder / name, name) for name in places_of(pairs) if left_any(folder / name)]


def pairs_in(folder: Path) -> int:
    """How many pairs left something there, by the folders they have."""
    top = folder / REPORTS_DIR
    if left_any(top):
        return 1
    return next(number for number in itertools.count() if not left_any(top / str(number + 1)))


def left_any(folder: Path) -> bool:
    return any(os.path.lexists(folder / file) for file in RAW_FILES)


def _read(folder: Path, name: str) -> Raw:
    accounts = read_accounts(folder)
    return Raw(name, accounts, accounts.evidence, _printed(folder / "pytest.log"), read_ending(folder))


def _printed(log: Path) -> str:
    """As it is told where no test has a result: the end of it."""
    try:
        open_regular(log).close()  # no link, no pipe
    except OSError:
        return ""
    return tail(log, TAIL)


def rederive(
    stored: CorrectnessResults,
    raws: Sequence[Raw],
    pairs: int,
    *,
    ordered: Sequence[str],
    custom: Mapping[str, GroupType],
) -> Rederived:
    arguments = stored.provenance.pytest_args
    evidences = [believed(raw.evidence, arguments) for raw in raws]
    owns = _rosters(stored, raws, evidences, pairs)
    told = [_said(stored, raw, pairs) for raw in raws]
    parts = [
        _part(stored, raw, evidence, own, said)
        for raw, evidence, own, said in zip(raws, evidences, owns, told, strict=True)
    ]
    known = {entry.nodeid: entry for own in owns for entry in own.entries}
    left_out = sorted({nodeid for evidence in evidences for nodeid in evidence.deselected} - known.keys())
    roster = Roster((*known.values(), *[RosterEntry(nodeid, ()) for nodeid in left_out]))
    found = conclude(parts, roster, ordered=ordered, current=stored.checkpoint_name, custom=custom)
    return Rederived(found, [f"how pytest ended: {raw.name} has no {EXIT}" for raw in raws if raw.ending is None])


def _rosters(
    stored: CorrectnessResults, raws: Sequence[Raw], evidences: Sequence[Evidence], pairs: int
) -> list[Roster]:
    """Which tests each pair had to run: those it collected, and those that the result says left no trace.

    The judge may collect what the roster of the evaluation did not have; the result says so of such a test.
    """
    failed = stored.infrastructure_failure_reason is not None
    said = [_said(stored, raw, pairs) for raw in raws]
    tests = {test.nodeid: test for test in stored.tests}
    strange = {name for name, test in tests.items() if failed and test.failure_message == NOT_IN_ROSTER}
    owns = [{entry.nodeid: entry for entry in _collected(raw, tests) if entry.nodeid not in strange} for raw in raws]
    seen = {name for own in owns for name in own} | strange
    seen |= {test.nodeid for evidence in evidences for test in evidence.tests}
    for name, test in tests.items():
        if failed and test.status == "error" and name not in seen:
            owns[_whose(test, raws, said)][name] = RosterEntry(name, tuple(test.markers))
    return [Roster(tuple(own.values())) for own in owns]


def _collected(raw: Raw, tests: Mapping[str, TestResult]) -> list[RosterEntry]:
    """Where the stream does not say, the tests with a result; their markers are then the stored ones."""
    if raw.accounts.stream.collected:
        return list({entry.nodeid: entry for entry in raw.accounts.stream.collected}.values())
    names = [test.nodeid for test in raw.evidence.tests]
    return [RosterEntry(name, tuple(tests[name].markers) if name in tests else ()) for name in names]


def _whose(test: TestResult, raws: Sequence[Raw], said: Sequence[str | None]) -> int:
    """The pair whose output ends the test's message, else of which the result says the same; else one that failed."""
    message = (test.failure_message or "").removesuffix(" (this test was running)")
    logs = [visible(raw.log.strip(), REASON_LIMIT) for raw in raws]
    printed = [place for place, log in enumerate(logs) if log and message.endswith(log)]
    same = [place for place, one in enumerate(said) if one == message]
    failed = [place for place, one in enumerate(said) if one is not None]
    return [*printed, *same, *failed, 0][0]


def _said(stored: CorrectnessResults, raw: Raw, pairs: int) -> str | None:
    """Why this pair has no verdict: as the evaluator noted, else the part of the stored reason that is about it."""
    if isinstance(raw.ending, Ending):
        return raw.ending.reason
    reason = stored.infrastructure_failure_reason
    if reason is None or pairs == 1 or not reason.startswith("pair "):
        return reason
    number = raw.name.rpartition("/")[2]
    pieces = re.split(rf"(?:^|\n)pair (\d+) of {pairs}: ", reason)
    return dict(zip(pieces[1::2], pieces[2::2], strict=False)).get(number)


def _part(stored: CorrectnessResults, raw: Raw, evidence: Evidence, own: Roster, said: str | None) -> Part:
    """What a pair comes to by the end that is known of it, which has to give the reason that is told."""
    known = isinstance(raw.ending, Ending)
    code = raw.ending.exit_code if isinstance(raw.ending, Ending) else stored.pytest_exit_code
    told: list[int | None] = [None if code == NEVER_RAN else code]
    announced = evidence.reported_exit if evidence.source != "stream" else None
    ends = told if known else [announced] if announced is not None else [*told, None]
    parts = [account(own, evidence, ProcessResult(end, raw.log), _timeout(stored, said)) for end in ends]
    for part in parts:
        if (None if part.told is None else visible(part.told, REASON_LIMIT)) == said:
            return part
    if (known or announced is None) and said is not None and _broke_off(stored, own, None if known else said):
        return Part(own, exit_code=code, reason=said)
    return parts[0]


def _timeout(stored: CorrectnessResults, said: str | None) -> float:
    """How long pytest was given stands in no report, only in what the result says of its end."""
    told = [said or "", *(test.failure_message or "" for test in stored.tests if test.status == "error")]
    limits = (_TIMEOUT.match(one) for one in told)
    return next((float(limit.group(1)) for limit in limits if limit), 0.0)


def _broke_off(stored: CorrectnessResults, own: Roster, said: str | None) -> bool:
    """Whether the boxes failed, so that nothing of what was left counts; `said`: the reason, where no note has it."""
    known = own.nodeids
    tests = [test for test in stored.tests if test.nodeid in known]
    return bool(tests) and all(test.status == "error" and said in (None, test.failure_message) for test in tests)
