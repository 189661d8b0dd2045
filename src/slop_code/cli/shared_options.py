"""What the modules of several commands share."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.policy import PassPolicy, Policy, parse_policy
from slop_code.evaluation.reports.raw_test import visible
from slop_code.reporting.progress_text import progress_text

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.execution.progress_events import ProgressEvent

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

LONGEST_TEXT = 1 << 16


def add_policy(parser: argparse.ArgumentParser, *, repeatable: bool = False) -> None:
    """Where it is repeatable, there is a list of them, which may be empty."""
    more = "; repeatable, the first is shown first" if repeatable else ""
    parser.add_argument(
        "--pass-policy",
        type=_policy,
        action="append" if repeatable else "store",
        default=[] if repeatable else PassPolicy.ALL_CASES,
        metavar="POLICY",
        help=f"what counts as passed: {', '.join(PassPolicy)}, "
        f"or an expression such as 'core == 1 and regression >= 95%%' (default: all-cases){more}",
    )


def _policy(text: str) -> Policy:
    try:
        return parse_policy(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(visible(str(error), LONGEST_TEXT)) from None


def tell_written(path: Path, note: str = "") -> None:
    """A name in it may be anyone's."""
    print(f"written: {visible(str(path), LONGEST_TEXT)}{note}", flush=True)


def print_progress(event: ProgressEvent) -> None:
    """Steps that may take minutes are always shown, the others on a terminal."""
    if event.is_long or sys.stderr.isatty():
        print_step(progress_text(event))


def print_step(text: str) -> None:
    """To standard error; names in the text come from others, and control characters are escaped."""
    print(f"· {visible(text, LONGEST_TEXT)}", file=sys.stderr, flush=True)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: results cannot be written there: {error.strerror}") from error
