"""Data of the report: a little about each test at once, and texts in parts of bounded size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code._safe_text import decoded_name
from slop_code.comparison.load import ABSENT, LETTERS
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.result_files.stored_record import MAX_DURATION
from slop_code.quality.line_diff import StepBudget
from slop_code.quality.snapshot_diff import MAX_HISTORY_STEPS, SnapshotHistory
from slop_code.reporting.agent_text import agent_text, work_text
from slop_code.reporting.evaluated_problem import EvaluatedProblems
from slop_code.reporting.failures.failure_causes import checkpoint_cause
from slop_code.reporting.failures.failure_lines import other_warnings
from slop_code.reporting.html.agents_data import agents_data
from slop_code.reporting.html.code_data import (
    MAX_DIFF_LINES,
    MAX_DIFFS_LENGTH,
    code_figures,
    diff_data,
    smaller_diffs,
)
from slop_code.reporting.html.made_from import made_from
from slop_code.reporting.html.page import MAX_PARTS_LENGTH, PageParts
from slop_code.reporting.html.page_texts import (
    UniqueNames,
    limited,
    name_of,
    short,
)
from slop_code.reporting.html.part_data import part_of, smaller_versions
from slop_code.reporting.html.regrade_data import regrade_notes
from slop_code.reporting.html.relevant_files import relevant_first
from slop_code.reporting.leaderboard.agent_runs import entries_of, open_agent_run
from slop_code.reporting.text import format_percent, rates_text, shell_word
from slop_code.runs.checkpoint_lines import regression_kind
from slop_code.runs.run_layout import stored_snapshot
from slop_code.runs.scb.load_result import is_scb
from slop_code.runs.summary import totals_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slop_code.evaluation.policy import Policy
    from slop_code.evaluation.report import TestResult
    from slop_code.quality.quality_record import MeasuredQuality
    from slop_code.reporting.failures.failure_causes import CheckpointCause
    from slop_code.runs.read_results import RunResults, StoredCheckpoint

NEW, UNKNOWN = "n", "u"
CHANGES = {"introduced": "b", "repaired": "r", None: ABSENT}
WITHOUT_REGRESSIONS = str.maketrans(dict.fromkeys("br", ABSENT))
"""A quarantined test neither breaks nor recovers."""
GROUPS = {group: str(number) for number, group in enumerate(GroupType)}
MAX_WARNINGS = 20


@dataclass(slots=True)
class TestRow:
    """A test at the checkpoints so far, with a character for each."""

    name: str
    shell_name: str | None
    """The name quoted for a shell; None where it is too long for the page."""
    home: str
    """The checkpoint of its test file."""
    statuses: str = ""
    groups: str = ""
    quarantined: bool = False


@dataclass(slots=True)
class ProblemData:
    """A problem of a run, filled checkpoint by checkpoint."""

    name: str
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[tuple[str, str], TestRow] = field(default_factory=dict)
    """Ordered by the first checkpoint of each test, then as they were collected."""
    names: UniqueNames = field(default_factory=UniqueNames)


def report_data(
    runs: Iterable[RunResults], policies: Sequence[Policy], *, limit: int = MAX_PARTS_LENGTH
) -> tuple[dict[str, Any], dict[str, str]]:
    """The data of the page and its parts; one result is in memory at a time."""
    parts = ReportParts(PageParts(limit))
    run_list, agent_runs = [], []
    for number, run in enumerate(runs):
        agent_run = open_agent_run(run)
        agent_runs.append(agent_run)
        problems = run_data(number, run, entries_of(run, agent_run), policies, parts)
        totals = totals_of(agent_run.lines, [])
        agent = agent_text(agent_run.identity, totals.agent)
        facts = {"agent": short(agent) if agent else None, "rates": rates_text(totals)}
        run_list.append({"name": name_of(run.name), **facts, **problems})
    data = {"policies": [str(policy) for policy in policies], "groups": [group.value for group in GroupType]}
    agents = agents_data(agent_runs, policies)
    return {**data, "runs": run_list, "agents": agents}, {**parts.texts.packed, **parts.diffs.packed}


@dataclass(slots=True)
class ReportParts:
    """Parts of the report, with a limit for each kind, the steps that are left to compare snapshots, and problems."""

    texts: PageParts
    diffs: PageParts = field(default_factory=lambda: PageParts(MAX_DIFFS_LENGTH))
    steps: StepBudget = field(default_factory=lambda: StepBudget(MAX_HISTORY_STEPS))
    problems: EvaluatedProblems = field(default_factory=EvaluatedProblems)


def run_data(
    number: int,
    run: RunResults,
    entries: Iterable[tuple[StoredCheckpoint, MeasuredQuality]],
    policies: Sequence[Policy],
    parts: ReportParts,
) -> dict[str, Any]:
    """Problems of the run with this number, and how it was regraded."""
    problems: dict[str, ProblemData] = {}
    regrades, notes = regrade_notes(run.folder)
    history = SnapshotHistory(parts.steps)
    for entry, quality in entries:
        problem = problems.setdefault(entry.line.problem, ProblemData(entry.line.problem))
        part_name = f"{number}/{list(problems).index(problem.name)}/{len(problem.checkpoints)}"
        snapshots = history.add(entry.line, stored_snapshot(entry.folder) if entry.folder else None)
        results, folder = entry.results, entry.folder
        cause = checkpoint_cause(results) if results else None
        evaluated = parts.problems.of(results, folder, run.folder) if results and folder else None
        problem.checkpoints.append(
            {
                **checkpoint_data(entry, cause, policies),
                "code": code_figures(snapshots, quality),
                "regraded": notes.get((entry.line.problem, entry.line.checkpoint), []),
                "made_from": made_from(evaluated, folder) if evaluated and folder else [],
            }
        )
        add_tests(problem, results.tests if results else [])
        if evaluated is None:
            continue
        if snapshots.broke is not None:
            files = relevant_first(snapshots.broke.files, evaluated.results)
            limit = MAX_DIFF_LINES if not parts.diffs.is_full else 0
            diff = diff_data(files, snapshots.broke.unread, limit)
            parts.diffs.add(f"{part_name}/diff", smaller_diffs(diff))
        parts.texts.add(part_name, smaller_versions(part_of(evaluated, list(problem.rows), cause)))
    return {"regraded": regrades, "problems": [problem_data(problem) for problem in problems.values()]}


def add_tests(problem: ProblemData, tests: Iterable[TestResult]) -> None:
    """Tests of the last checkpoint so far."""
    before = len(problem.checkpoints) - 1
    for test in tests:
        key = test.file_path, test.id
        if key not in problem.rows:
            name, shell_name = problem.names.add(f"{test.file_path}::{test.id}", len(problem.rows))
            problem.rows[key] = TestRow(name, shell_name, name_of(test.checkpoint))
        row = problem.rows[key]
        row.quarantined |= test.quarantined
        row.statuses = row.statuses.ljust(before, ABSENT) + LETTERS[test.status]
        row.groups = row.groups.ljust(before, ABSENT) + GROUPS[test.group_type]


def shell_path(entry: StoredCheckpoint) -> str | None:
    """Path of the result below the folder that was given, quoted for a shell."""
    if entry.folder is None:
        return None
    path = decoded_name(str(entry.folder))
    return shell_word(f"./{path}" if path.startswith("-") else path)


def checkpoint_data(
    entry: StoredCheckpoint, cause: CheckpointCause | None, policies: Sequence[Policy]
) -> dict[str, Any]:
    """Verdicts and shares are computed here, so that the page needs no rules."""
    line = entry.line
    regressions = line.regressions
    passed = [line.pass_counts.get(group, 0) for group in GroupType]
    total = [line.total_counts.get(group, 0) for group in GroupType]
    return {
        "name": name_of(line.checkpoint),
        "state": line.state,
        "reason": short(line.reason) if line.reason else None,
        "cause": short(cause.text) if cause else None,
        "not_looked_at_again": short(line.not_looked_at_again) if line.not_looked_at_again else None,
        "verdicts": "".join("1" if line.passes(policy) else "0" for policy in policies),
        "passed": passed,
        "total": total,
        "shares": [format_percent(good / of) if of else None for good, of in zip(passed, total, strict=True)],
        "ms": milliseconds(line.duration),
        "phases": {name_of(name): milliseconds(seconds) for name, seconds in line.phases.items()},
        "attempts": line.attempts,
        "agent": work_text(line.agent) or None if line.agent else None,
        "warnings": limited(other_warnings(line.warnings, cause), MAX_WARNINGS, short),
        "since": name_of(regressions.since) if regressions else None,
        "introduced": regressions.introduced if regressions else 0,
        "repaired": regressions.repaired if regressions else 0,
        "path": shell_path(entry),
        "not_recorded": entry.results is not None and is_scb(entry.results),
    }


def milliseconds(seconds: float) -> int:
    return round(min(max(seconds, 0.0), MAX_DURATION) * 1000)


def problem_data(problem: ProblemData) -> dict[str, Any]:
    verdicts = [checkpoint["state"] == "evaluated" for checkpoint in problem.checkpoints]
    numbers = {checkpoint["name"]: number for number, checkpoint in enumerate(problem.checkpoints)}
    tests = []
    for row in problem.rows.values():
        statuses = row.statuses.ljust(len(verdicts), ABSENT)
        home = numbers.get(row.home, -1)
        history = changes(statuses, verdicts, home)
        if row.quarantined:
            history = history.translate(WITHOUT_REGRESSIONS)
        groups = row.groups.ljust(len(verdicts), ABSENT)
        letters = {"statuses": statuses, "groups": groups, "changes": history}
        tests.append({"name": row.name, **letters, "home": home, "shell_name": row.shell_name})
    return {"name": name_of(problem.name), "checkpoints": problem.checkpoints, "tests": tests}


def changes(statuses: str, verdicts: Sequence[bool], home: int) -> str:
    """Of a test at each checkpoint: n for new, b for broke, r for recovered, u if nothing can be compared, else a dot.

    A checkpoint is compared with the nearest earlier checkpoint that has a verdict. `home`: number of the checkpoint
    of the test file, -1 where it is not in this run. A test that may have run before is not new.
    """
    letters, before, known = "", ABSENT, home < 0
    for number, (status, verdict) in enumerate(zip(statuses, verdicts, strict=True)):
        if not verdict:
            letters, known = letters + ABSENT, known or number >= home
            continue
        letters += _change(before, status, known=known)
        before, known = status, known or status != ABSENT
    return letters


def _change(before: str, now: str, *, known: bool) -> str:
    if now == ABSENT:
        return ABSENT
    if before == ABSENT:
        return UNKNOWN if known else NEW
    return CHANGES[regression_kind(before == LETTERS["passed"], now == LETTERS["passed"])]
