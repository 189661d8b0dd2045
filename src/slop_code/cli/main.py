"""`slop-code`: the parser of all commands, and the translation of errors to exit statuses."""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import traceback
from typing import TYPE_CHECKING

from slop_code._version import __version__
from slop_code.cli import (
    cache_command,
    compare_command,
    doctor_command,
    env_command,
    eval_command,
    eval_snapshot_command,
    export_command,
    problems,
    report_command,
    rerun_command,
    show_command,
    verify_command,
)
from slop_code.cli.command_parser import CommandParser, add_commands
from slop_code.cli.exit_codes import EXIT_HELP, Exit
from slop_code.errors import InfrastructureError, SlopCodeError
from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ERROR_BYTES = 1 << 20


@functools.cache
def parser() -> CommandParser:
    """Built once per process, as it has more than a hundred options."""
    root = CommandParser(
        prog="slop-code",
        description="Evaluate code that an agent wrote in checkpoints: pytest verdicts that the code cannot forge.",
        epilog=EXIT_HELP,
        examples=["slop-code doctor", "slop-code eval runs/today --problems-dir problems"],
    )
    root.add_argument("--version", action="version", version=f"slop-code {__version__}", help="print the version")
    root.set_defaults(verbose=False)
    commands = add_commands(root)
    for module in (
        eval_command,
        eval_snapshot_command,
        report_command,
        compare_command,
        show_command,
        verify_command,
        rerun_command,
        export_command,
        problems,
        doctor_command,
        env_command,
        cache_command,
    ):
        module.add_to(commands)
    return root


def _logs(*, verbose: bool) -> contextlib.AbstractContextManager[None]:
    if not verbose:
        return contextlib.nullcontext()
    from slop_code.cli.logs import logs_on_stderr

    return logs_on_stderr()


def _interrupt(_number: int, _frame: object) -> None:
    """SIGTERM is handled like SIGINT, so that everything is cleaned up."""
    raise KeyboardInterrupt


def _print_error(message: str) -> None:
    """Names in the message come from anywhere, so control characters are escaped."""
    print(f"slop-code: {visible(message, MAX_ERROR_BYTES)}", file=sys.stderr)


def run(argv: Sequence[str]) -> int:
    """The command's exit status. Every error that a user can cause ends here, as a message."""
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        arguments = parser().parse_args(argv)
        with _logs(verbose=arguments.verbose):
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
        _print_error(f"{error.filename or 'output'}: {error.strerror}")
        return Exit.INFRASTRUCTURE
    except Exception:  # noqa: BLE001  (a bug in slop-code is not a verdict)
        traceback.print_exc()
        return Exit.INFRASTRUCTURE
