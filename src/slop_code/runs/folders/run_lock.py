"""Run lock: a run folder has a single evaluator at a time, or the shards of a plan."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import json
import os
import shlex
import socket
import stat
import sys
import textwrap
import time
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import try_lock
from slop_code.runs.jobs.job_records import RunIssue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from slop_code.runs.discover import DiscoveredRun
    from slop_code.runs.jobs.plan import Shard

STATE_DIR = ".slop-code"
"""Folder of slop-code in a run folder: locks, and the index of results."""

MAX_HOLDER_LENGTH = 4096
MAX_COMMAND_LENGTH = 300


class _LockedError(Exception):
    pass


@contextlib.contextmanager
def lock_runs(runs: Sequence[DiscoveredRun], shard: Shard | None) -> Iterator[list[DiscoveredRun]]:
    """The runs. Those that another evaluator holds, or where nothing can be written, have an issue instead."""
    with contextlib.ExitStack() as stack:
        held = []
        for run in runs:
            if run.folder is None or not (run.submissions or any(issue.problem is not None for issue in run.issues)):
                held.append(run)  # nothing is written there
                continue
            try:
                if run.source is not None:
                    run.folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(_lock_within(run.within, run.folder, shard))
                held.append(run)
            except _LockedError as error:
                held.append(replace(run, submissions=(), issues=(RunIssue(run.name, None, None, str(error)),)))
            except OSError as error:
                reason = (
                    f"{run.folder}: results cannot be written there: {error.strerror}; "
                    "make it writable, or evaluate a copy of the run"
                )
                held.append(replace(run, submissions=(), issues=(RunIssue(run.name, None, None, reason),)))
        yield held


@contextlib.contextmanager
def lock_common(folder: Path | None) -> Iterator[None]:
    """For the common summary of several runs, if any; where another evaluator holds it, nothing is evaluated."""
    if folder is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_lock(folder, None))
        except _LockedError as error:
            raise InfrastructureError(str(error)) from error
        except OSError as error:
            raise InfrastructureError(f"{folder}: results cannot be written there: {error.strerror}") from error
        yield


@contextlib.contextmanager
def _lock_within(run: Path | None, folder: Path, shard: Shard | None) -> Iterator[None]:
    """`run` is around a problem's folder. Its evaluation looks for locks of problems once it has locked the run.

    So the run is looked at again once the problem is locked: one of the two then sees the other.
    """
    with _lock_shared(run), _lock(folder, shard), _lock_shared(run):
        yield


@contextlib.contextmanager
def _lock_shared(folder: Path | None) -> Iterator[None]:
    """Excludes an evaluation of the whole run around a problem's folder, where there was one ever."""
    if folder is None or not (folder / STATE_DIR).is_dir():
        yield
        return
    with _open(folder / STATE_DIR / "lock") as whole:
        if not try_lock(whole, fcntl.LOCK_SH):
            raise _LockedError(_held_by(folder, [_holder(whole)]))
        yield


@contextlib.contextmanager
def _lock(folder: Path, shard: Shard | None) -> Iterator[None]:
    """A whole evaluation excludes all others; a shard excludes only the same shard and those of other plans."""
    own = folder / STATE_DIR
    own.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        whole = stack.enter_context(_open(own / "lock"))
        if not try_lock(whole, fcntl.LOCK_SH if shard else fcntl.LOCK_EX):
            problem_holders = _holders(sorted(folder.glob(f"*/{STATE_DIR}/lock")))
            raise _LockedError(_held_by(folder, [_holder(whole), *_shard_holders(own), *problem_holders]))
        # Who evaluates a problem of a run that was never evaluated as a whole finds no folder to lock there.
        if shard is None and (problem_holders := _holders(sorted(folder.glob(f"*/{STATE_DIR}/lock")))):
            raise _LockedError(_held_by(folder, problem_holders))
        if shard is not None:
            whole.truncate(0)  # the text of a holder that was killed
            part = stack.enter_context(_open(own / f"shard-{shard.number}-of-{shard.count}.lock"))
            if not try_lock(part, fcntl.LOCK_EX):
                raise _LockedError(_held_by(folder, [_holder(part)]))
            if others := _shard_holders(own, except_count=shard.count):
                raise _LockedError(_held_by(folder, others))
            whole = part
        _write_holder(whole)
        try:
            yield
        finally:
            whole.truncate(0)


def _open(path: Path) -> IO[str]:
    """Links are not followed: the file is truncated, and must not be a file of somebody else."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, f"{path.parent} is a link", str(path))
    descriptor = os.open(path, flags, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{path} is not a regular file", str(path))
    return os.fdopen(descriptor, "a+")


def _write_holder(file: IO[str]) -> None:
    who = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": _user(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "command": textwrap.shorten(shlex.join(sys.argv), MAX_COMMAND_LENGTH, placeholder=" …"),
    }
    file.truncate(0)
    file.write(json.dumps(who) + "\n")
    file.flush()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in containers
        return str(os.getuid())


def _held_by(folder: Path, holders: Sequence[str | None]) -> str:
    known = [who for who in holders if who]
    return f"{folder}: held by {'; '.join(known) or 'another evaluator'}; wait for its end, or end it"


def _shard_holders(own: Path, except_count: int | None = None) -> list[str | None]:
    """Holders of shards, except those of a plan of `except_count` shards."""
    paths = sorted(own.glob("shard-*.lock"))
    same_plan = f"-of-{except_count}.lock"
    return _holders([path for path in paths if except_count is None or not path.name.endswith(same_plan)])


def _holders(paths: Sequence[Path]) -> list[str | None]:
    holders: list[str | None] = []
    for path in paths:
        with contextlib.suppress(OSError), _open(path) as file:
            if not try_lock(file, fcntl.LOCK_EX):
                holders.append(_holder(file))
    return holders


def _holder(file: IO[str]) -> str | None:
    """The holder in words, for the message; None where the file, which another process wrote, is not understood."""
    file.seek(0)
    try:
        who = json.loads(file.read(MAX_HOLDER_LENGTH))
        return f"process {who['pid']} of {who['user']} on {who['host']} since {who['since']} ({who['command']})"
    except (ValueError, LookupError, TypeError, RecursionError, OSError):
        return None
