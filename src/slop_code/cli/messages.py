"""Lines that several commands print. Names in them come from anywhere, so control characters are escaped."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING

from slop_code._safe_text import escape_control
from slop_code.cli.exit_codes import Exit
from slop_code.reporting.progress.progress_text import progress_text
from slop_code.reporting.text import file_safe, one_line, plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.evaluation.result_files.stored_evaluation import StoredEvaluation
    from slop_code.execution.progress_events import ProgressEvent
    from slop_code.runs.read_results import RunResults

MAX_TEXT_BYTES = 1 << 16
SHOWN_MESSAGES = 20


def closed_pipe_ignored() -> AbstractContextManager[None]:
    """A reader that ends early, such as `head`, does not change the exit status."""
    return contextlib.suppress(BrokenPipeError)


def print_written(path: Path, note: str = "") -> None:
    print(f"written: {escape_control(str(path), MAX_TEXT_BYTES)}{note}", flush=True)


def print_stored(path: Path, evaluation: StoredEvaluation, *, quiet: bool) -> None:
    """`quiet` says that standard output is for JSON."""
    if evaluation.attempt is not None:
        why = "not looked at again, as this evaluation ended with an infrastructure failure"
        print_step(f"{path} keeps its verdict: {why}; what that left is in {evaluation.attempt}")
    elif not quiet:
        print_written(path)


def print_json(document: object) -> None:
    print(json.dumps(document, indent=2), flush=True)


def print_step(text: str) -> None:
    """A line on standard error, which leaves standard output to the results."""
    print(f"· {escape_control(text, MAX_TEXT_BYTES)}", file=sys.stderr, flush=True)


def end_written(
    path: Path | None, runs: Sequence[RunResults], /, *, as_json: bool, note: str = "", **facts: object
) -> Exit:
    """The end of a command that wrote runs to a file, or to standard output where there is no path."""
    unreadable = [message for results in runs for message in results.unreadable]
    if path is not None and as_json:
        print_json({"written": file_safe(str(path)), **facts, "unreadable": [*map(file_safe, unreadable)]})
    elif path is not None:
        print_written(path, note)
    return unreadable_status(unreadable)


def unreadable_status(messages: Sequence[str]) -> Exit:
    """Names each result that cannot be read; the exit status of a command that otherwise succeeded."""
    for message in messages[:SHOWN_MESSAGES]:
        print_step(f"unreadable result: {one_line(message)}")
    if len(messages) > SHOWN_MESSAGES:
        print_step(f"... and {plural(len(messages) - SHOWN_MESSAGES, 'more unreadable result')}")
    return Exit.INFRASTRUCTURE if messages else Exit.PASSED


def print_progress(event: ProgressEvent) -> None:
    """Steps that may take minutes are always shown, the others on a terminal; never counts that change all the time."""
    if event.is_long or (sys.stderr.isatty() and not event.is_count):
        print_step(progress_text(event))
