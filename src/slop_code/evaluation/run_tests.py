"""Running the tests: a session for each pair, side by side, and what each of them left."""

from __future__ import annotations

import contextlib
import functools
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from slop_code._io import keep_ends
from slop_code.errors import InfrastructureError
from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT, STREAM, Evidence, read_evidence
from slop_code.evaluation.exit_record import EXIT, Ending
from slop_code.evaluation.groups import QUARANTINED
from slop_code.evaluation.infrastructure import infrastructure_failure
from slop_code.evaluation.pairs import NEVER_RAN, Part
from slop_code.evaluation.staging import Asked, Staged, judge_environment, judge_files
from slop_code.execution.cancellation import CancelToken, cancel_scope, wait_for
from slop_code.execution.concurrency import start_thread
from slop_code.execution.log_tail import follow_file
from slop_code.execution.sandbox import REPORTS_DIR, JudgeRequest, JudgeResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.roster import Roster
    from slop_code.execution.process import ProcessResult
    from slop_code.execution.sandbox import ToolEnvironment
    from slop_code.execution.session import Session

SESSION_BASE_S = 60.0
SESSION_TEST_S = 1.0
LOG_LIMIT = 16 << 20
LOG = "pytest.log"
SHOWN = "shown.json"
"""Left where the judge is asked to watch."""

LEFT_BY_JUDGE = (JSON_REPORT, CTRF_REPORT, STREAM, LOG, SHOWN)
RAW_FILES = (*LEFT_BY_JUDGE, EXIT)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Trial:
    """What all pairs of an evaluation share."""

    problem: ProblemConfig
    checkpoint: CheckpointConfig
    staged: Staged
    tools: ToolEnvironment
    command: Sequence[str]
    arguments: Sequence[str]
    follow: Callable[[bytes], None] | None = None
    """Is given what pytest prints, as it is printed."""

    seed: int | None = None
    """Of the tests' order and of the chance in them; None: as they are."""

    interactive: bool = False
    """Whether pytest reads our standard input."""


@contextlib.contextmanager
def sessions_for(session: Session, groups: Sequence[Roster]) -> Iterator[list[Session]]:
    with contextlib.ExitStack() as stack:
        yield [session, *[stack.enter_context(session.another()) for _ in groups[1:]]]


def judge_all(trial: Trial, sessions: Sequence[Session], groups: Sequence[Roster]) -> list[JudgeResult | Part]:
    """A pair that cannot be judged is a part with the reason, and leaves the others alone."""
    pairs = zip(sessions, groups, strict=True)
    judges = [functools.partial(_judge, trial, session, own) for session, own in pairs]
    return side_by_side(judges) if len(judges) > 1 else [judges[0]()]


def _judge(trial: Trial, session: Session, own: Roster) -> JudgeResult | Part:
    staged = trial.staged
    asked = Asked(
        None if own == staged.roster else [entry.nodeid for entry in own.entries],
        trial.seed,
        [entry.nodeid for entry in own.entries if QUARANTINED in entry.markers],
    )
    live = {} if trial.follow is None else {"PYTHONUNBUFFERED": "1"}
    try:
        reports_of(session).mkdir()
        with follow_file(reports_of(session) / LOG, trial.follow):
            environment = judge_environment(session, trial.problem, trial.checkpoint, staged.plugin, asked)
            request = JudgeRequest(
                argv=trial.command,
                environment={**environment, **live},
                tests=staged.tests,
                shown=staged.shown,
                reports=reports_of(session),
                tools=trial.tools.entry,
                files=judge_files(session, trial.tools, staged.plugin),
                timeout=float("inf") if trial.interactive else session_timeout(trial.checkpoint, len(own.entries)),
                interactive=trial.interactive,
            )
            return session.judge(request)
    except (InfrastructureError, OSError) as error:
        return broken(error, own)


def reports_of(session: Session) -> Path:
    return session.folder / "reports"


def session_timeout(checkpoint: CheckpointConfig, tests: int) -> float:
    """Every test may use up its own timeout, and be reported, and the session still ends by itself."""
    return checkpoint.session_timeout or SESSION_BASE_S + (checkpoint.timeout + SESSION_TEST_S) * tests


def broken(error: InfrastructureError | OSError, own: Roster) -> Part:
    if isinstance(error, InfrastructureError):
        return Part(own, exit_code=NEVER_RAN if error.exit_code is None else error.exit_code, reason=str(error))
    place = error.filename or "input or output"
    return Part(own, reason=f"{place}: {error.strerror}; is the disk full, the cache or the output not writable?")


def part_of(trial: Trial, session: Session, own: Roster, judged: JudgeResult | Part) -> Part:
    if isinstance(judged, Part):
        return judged
    evidence = believed(read_evidence(reports_of(session)), trial.arguments)
    part = account(own, evidence, judged.done, session_timeout(trial.checkpoint, len(own.entries)))
    return replace(part, isolation={**judged.isolation, "in_process": trial.problem.in_process})


def believed(evidence: Evidence, arguments: Sequence[str]) -> Evidence:
    """Without pytest arguments, nothing but the tests themselves can have left tests out."""
    return evidence if arguments else replace(evidence, deselected=frozenset())


def account(own: Roster, evidence: Evidence, done: ProcessResult, timeout: float) -> Part:
    return Part(
        own,
        evidence,
        exit_code=NEVER_RAN if done.exit_code is None else done.exit_code,
        reason=_reason(done, evidence, own, timeout),
        output="" if evidence.tests else done.output.strip(),
    )


def _reason(done: ProcessResult, evidence: Evidence, own: Roster, timeout: float) -> str | None:
    running = f"while running {evidence.running}" if evidence.running else "with no test running"
    ended = f"session timeout of {timeout:g} s {running}" if done.exit_code is None else None
    reason = infrastructure_failure(done.exit_code, evidence=evidence, expected=own.nodeids, ended=ended)
    if reason is not None and evidence.running and running not in reason:
        return f"{reason}, {running}"
    return reason


def side_by_side(actions: Sequence[Callable[[], Value]]) -> list[Value]:
    """All to their end; what breaks the waiting (a stop, an interrupt, an error) stops those that still run."""
    token, ends = CancelToken(), [CancelToken() for _ in actions]

    def work(action: Callable[[], Value], end: CancelToken) -> Value:
        try:
            return action()
        finally:
            end.cancel()

    values: list[Callable[[], Value]] = []
    try:
        with cancel_scope(token):
            for action, end in zip(actions, ends, strict=True):
                values.append(start_thread(work, action, end))
        found = []
        for end, value in zip(ends, values, strict=True):
            while not end.is_cancelled():
                wait_for(end.fileno(), float("inf"))
            found.append(value())
        return found
    except BaseException:
        token.cancel()
        for value in values:
            with contextlib.suppress(BaseException):
                value()
        raise
    finally:
        for one in (token, *ends):
            one.close()


def forget(output: Path | None) -> None:
    """Raw evidence of an earlier evaluation must not lie beside this one's result."""
    if output is None:
        return
    top = output / REPORTS_DIR
    numbered = [folder for folder in top.glob("[1-9]*") if folder.name.isdecimal()]
    for folder in (top, *numbered):
        for name in RAW_FILES:
            (folder / name).unlink(missing_ok=True)
    for folder in numbered:
        with contextlib.suppress(OSError):  # whatever else is in it is somebody's
            folder.rmdir()


def keep(output: Path | None, sessions: Sequence[Session], parts: Sequence[Part]) -> None:
    """Copy the raw evidence beside the result, each file within bounds; of several pairs each into its own folder."""
    for number, (session, part) in enumerate(zip(sessions, parts, strict=True), start=1):
        reports = reports_of(session)
        keep_ends(reports / LOG, LOG_LIMIT)
        if output is None:
            continue
        target = output / REPORTS_DIR / (str(number) if len(sessions) > 1 else "")
        target.mkdir(parents=True, exist_ok=True)
        for name in LEFT_BY_JUDGE:
            if (reports / name).is_file() and not (reports / name).is_symlink():
                shutil.copyfile(reports / name, target / name, follow_symlinks=False)
        Ending.of(part).save(target / EXIT)
