"""`slop-code`: the parser of all commands, and the translation of errors to exit statuses."""

from __future__ import annotations

import functools
import importlib
import logging
import signal
import sys
import traceback
from typing import TYPE_CHECKING

from slop_code._io import os_error_text
from slop_code._safe_text import escape_control
from slop_code._verbose_log import verbose_log
from slop_code._version import __version__
from slop_code.cli.command_parser import CommandParser, add_commands
from slop_code.cli.exit_codes import EVAL_EXIT_HELP, Exit
from slop_code.cli.messages import MAX_TEXT_BYTES
from slop_code.cli.scb_options import add_before_command, apply_before_command
from slop_code.errors import InfrastructureError, SlopCodeError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

MAX_ERROR_BYTES = 1 << 20
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


COMMANDS = {
    "eval": "eval.eval_command",
    "eval-problem": "eval.eval_command",
    "merge": "eval.eval_command",
    "eval-snapshot": "eval.eval_snapshot_command",
    "report": "report_command",
    "leaderboard": "leaderboard_command",
    "compare": "compare_command",
    "show": "show_command",
    "verify": "verify_command",
    "rerun": "rerun_command",
    "regrade": "regrade_command",
    "export": "export_command",
    "export-task": "export_task_command",
    "metrics": "metrics_command",
    "serve": "serve_command",
    "problems": "problems",
    "doctor": "doctor.doctor_command",
    "env": "env_command",
    "cache": "cache_command",
}
"""The module of each command, in the order of the help."""


@functools.cache
def parser(names: tuple[str, ...] = tuple(COMMANDS)) -> CommandParser:
    """The parser of these commands, built once per process; that of a single command loads much less."""
    root = CommandParser(
        prog="slop-code",
        description="Evaluate code that an agent wrote in checkpoints: pytest verdicts that the code cannot forge.",
        epilog=EVAL_EXIT_HELP,
        examples=["slop-code doctor", "slop-code eval runs/today --problems-dir problems"],
    )
    root.add_argument("--version", action="version", version=f"slop-code {__version__}", help="print the version")
    root.set_defaults(verbose=False, quiet=False)
    add_before_command(root)
    commands = add_commands(root)
    for module in dict.fromkeys(COMMANDS[name] for name in names):
        importlib.import_module(f"slop_code.cli.{module}").add_to(commands)
    return root


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The first word decides which commands are loaded: all of them, unless it is a command or asks for none.

    `help COMMAND` is `COMMAND --help`.
    """
    if argv and argv[0] == "help":
        argv = [*argv[1:], "--help"]
    first = argv[0] if argv else ""
    names = (first,) if first in COMMANDS else () if first == "--version" else tuple(COMMANDS)
    return apply_before_command(parser(names).parse_args(argv))


class VisibleFormatter(logging.Formatter):
    """Messages may quote a submission, so control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_control(super().format(record), MAX_TEXT_BYTES)


def _interrupt(_number: int, _frame: object) -> None:
    """SIGTERM and SIGHUP are handled like SIGINT, so that everything is cleaned up."""
    raise KeyboardInterrupt


def _print_error(message: str) -> None:
    """Names in the message come from anywhere, so control characters are escaped."""
    print(f"slop-code: {escape_control(message, MAX_ERROR_BYTES)}", file=sys.stderr)


def run(argv: Sequence[str]) -> int:
    """The command's exit status. Every error that a user can cause ends here, as a message."""
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where the caller ignores it, exit statuses are lost
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ignored under nohup
            signal.signal(signal.SIGHUP, _interrupt)
        arguments = parse(argv)
        with verbose_log(arguments.verbose, VisibleFormatter(LOG_FORMAT)):
            status: int = arguments.run(arguments)
        return status
    except SystemExit as end:  # argparse has printed an error or the help
        return Exit.USAGE if end.code else Exit.PASSED
    except KeyboardInterrupt:
        print("slop-code: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except InfrastructureError as error:
        _print_error(str(error))
        return Exit.INFRASTRUCTURE
    except SlopCodeError as error:
        _print_error(str(error))
        return Exit.USAGE
    except BrokenPipeError:
        raise
    except OSError as error:
        _print_error(os_error_text(error, "the cache or the output"))
        return Exit.INFRASTRUCTURE
    except Exception:  # noqa: BLE001  (a bug in slop-code is not a verdict)
        traceback.print_exc()
        return Exit.INFRASTRUCTURE
