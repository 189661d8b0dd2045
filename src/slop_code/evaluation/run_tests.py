"""Test runs: a session for each judge/subject pair, run concurrently, and the evidence of each pair."""

from __future__ import annotations

import contextlib
import functools
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code._io import keep_ends, write_atomic
from slop_code.errors import InfrastructureError, SlowSetupError, SubmissionSetupError
from slop_code.evaluation.context import timeout_per_test
from slop_code.evaluation.evidence import Evidence, PytestExit, pair_folders
from slop_code.evaluation.groups import QUARANTINED
from slop_code.evaluation.reports.followed_files import follow_file, follow_stream, stream_progress
from slop_code.evaluation.result_files.evidence_files import (
    COLLECTION,
    EXIT,
    FROM_JUDGE,
    ROSTER,
    remove_evidence,
)
from slop_code.evaluation.roster import assign_only
from slop_code.evaluation.staging import (
    LOG_LIMIT,
    CollectionError,
    JudgeSelection,
    Staged,
    judge_request,
    reports_of,
)
from slop_code.evaluation.usage.starvation import MIN_FREE_SHARE
from slop_code.evaluation.warm_judge import warm_judge
from slop_code.execution.concurrency import run_cancellable
from slop_code.execution.processors import processor_share
from slop_code.execution.sandbox import LOG, REPORTS_DIR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig
    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.evidence import ReportParser
    from slop_code.evaluation.reports.stream_progress import StreamReader
    from slop_code.evaluation.roster import Roster
    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import TimeoutsSpec
    from slop_code.execution.session import Session
    from slop_code.execution.templates import TemplatePool

SESSION_BASE_S = 120.0
SESSION_TEST_S = 6.0


@dataclass(frozen=True, slots=True)
class PytestSettings:
    """Settings of pytest that all pairs of an evaluation share."""

    context: EvaluationContext
    staged: Staged
    command: Sequence[str]
    follow: Callable[[bytes], None] | None = None
    """Gets the output of pytest as it is printed."""

    seed: int | None = None
    """Shuffles the tests, and seeds `random` in them; None does neither."""

    interactive: bool = False
    """pytest reads the evaluator's standard input, and there is no session timeout."""

    templates: TemplatePool | None = None
    """Without templates, each judge is started anew."""

    @property
    def may_fork(self) -> bool:
        """Python decides about hashes and buffers when it starts, and only a new judge has a standard input."""
        return self.follow is None and self.seed is None and not self.interactive


@contextlib.contextmanager
def sessions_for(session: Session, pairs: int) -> Iterator[list[Session]]:
    with contextlib.ExitStack() as stack:
        yield [session, *[stack.enter_context(session.another()) for _ in range(1, pairs)]]


def run_pairs(settings: PytestSettings, sessions: Sequence[Session], roster: Roster) -> list[Evidence]:
    """The evidence of each pair, without its reports. A failure of a pair does not stop the others."""
    progress = stream_progress(settings.context, sessions[0], roster)
    actions = []
    for pair, session in enumerate(sessions, start=1):
        own = roster.of_pair(pair)
        reader = progress.reader(entry.nodeid for entry in own.entries) if progress else None
        actions.append(functools.partial(_run_pair, settings, session, own, pair, reader))
    return run_cancellable(actions) if len(actions) > 1 else [actions[0]()]


def _run_pair(
    settings: PytestSettings, session: Session, own: Roster, pair: int, reader: StreamReader | None
) -> Evidence:
    context, staged = settings.context, settings.staged
    selection = JudgeSelection(
        None if len(own.entries) == len(staged.roster.entries) else [entry.nodeid for entry in own.entries],
        settings.seed,
        [entry.nodeid for entry in own.entries if QUARANTINED in entry.markers],
    )
    live = {} if settings.follow is None else {"PYTHONUNBUFFERED": "1"}
    limit = session_timeout(context.checkpoint, len(own.entries), context.environment.timeouts)
    timeout = None if settings.interactive else limit
    try:
        seconds = float("inf") if timeout is None else timeout
        request = judge_request(session, context, staged.folder, settings.command, seconds, selection)
        request = replace(request, environment={**request.environment, **live}, interactive=settings.interactive)
        if settings.templates is not None and settings.may_fork:
            request = replace(request, warm=warm_judge(settings.templates, context, staged, request))
        with follow_stream(session, request, reader), follow_file(request.reports / LOG, settings.follow):
            judged = session.judge(request)
    except (InfrastructureError, OSError) as error:
        return Evidence.of_failure(error, own, pair)
    return Evidence(
        own,
        PytestExit(
            pair=pair,
            exit_code=judged.done.exit_code,
            session_timeout=timeout,
            error=None,
            memory_limit=context.environment.limits.memory if judged.reached_memory_limit else None,
        ),
        log=judged.done.output,
        isolation={**judged.isolation, "in_process": context.problem.in_process},
    )


def session_timeout(checkpoint: CheckpointConfig, tests: int, timeouts: TimeoutsSpec) -> float:
    """Unless configured, it is long enough for every test to reach its own timeout, and again while it cleans up."""
    test = timeout_per_test(checkpoint, timeouts)
    return timeouts.session or checkpoint.session_timeout or SESSION_BASE_S + (2 * test + SESSION_TEST_S) * tests


def read_reports(evidence: Sequence[Evidence], sessions: Sequence[Session], parse_ctrf: ReportParser) -> list[Evidence]:
    """The same evidence, with the reports of each pair."""
    folders = pair_folders(len(sessions))
    return [
        replace(pair.with_reports(reports_of(session), parse_ctrf), folder=folder)
        for pair, session, folder in zip(evidence, sessions, folders, strict=True)
    ]


def keep_collection(output: Path | None, error: Exception) -> None:
    """Writes what a failed collection of the tests left; nothing for other errors."""
    if output is None or not isinstance(error, CollectionError):
        return
    folder = output / REPORTS_DIR / COLLECTION
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in error.files.items():
        write_atomic(folder / name, content)


def keep_evidence(
    output: Path | None,
    sessions: Sequence[Session],
    evidence: Sequence[Evidence],
    roster: Roster,
    folder: str = REPORTS_DIR,
) -> None:
    """Copies the evidence to the folder of the result, and the roster to `folder`. The log is cut to LOG_LIMIT."""
    for session, pair in zip(sessions, evidence, strict=True):
        reports = reports_of(session)
        keep_ends(reports / LOG, LOG_LIMIT)
        if output is None:
            continue
        target = output / pair.folder
        target.mkdir(parents=True, exist_ok=True)
        for name in FROM_JUDGE:
            if (reports / name).is_file() and not (reports / name).is_symlink():
                shutil.copyfile(reports / name, target / name, follow_symlinks=False)
        if isinstance(pair.exit, PytestExit):
            write_atomic(target / EXIT, pair.exit.model_dump_json() + "\n")
    if output is not None:
        write_atomic(output / folder / ROSTER, roster.to_json())


def repeat_setup(
    cache: Cache,
    open_session: Callable[[], AbstractContextManager[object]],
    probe: Callable[[], float] = processor_share,
) -> None:
    """Repeat a set-up that was too slow, while nothing else of ours runs; a busy machine gives no verdict, either.

    The machine is probed while no box is open: nothing that the submission does can make it look busy.
    """
    with cache.quiet_lock():
        before = probe()
        try:
            with open_session():
                return
        except SlowSetupError as slow:
            share = min(before, probe())
            if share >= MIN_FREE_SHARE:
                raise SubmissionSetupError(slow.fact) from slow
            busy = f"the machine is busy, a process gets {share:.0%} of a processor"
            raise InfrastructureError(f"set-up: {busy}: {slow.fact}") from slow


def keep_setup_failure(output: Path | None, roster: Roster, reason: str) -> tuple[Roster, list[Evidence]]:
    """The evidence of a submission that cannot be set up, in the output folder too; there is a single pair."""
    single = assign_only(roster, {entry.nodeid for entry in roster.entries if entry.pair is not None})
    evidence = Evidence.of_setup_failure(reason, single.of_pair(1))
    remove_evidence(output)
    if output is not None:
        assert isinstance(evidence.exit, PytestExit)
        (output / REPORTS_DIR).mkdir(parents=True, exist_ok=True)
        write_atomic(output / REPORTS_DIR / EXIT, evidence.exit.model_dump_json() + "\n")
        write_atomic(output / REPORTS_DIR / ROSTER, single.to_json())
    return single, [evidence]
