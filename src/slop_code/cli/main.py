"""`slop-code`: the parser, and the one place where errors become exit statuses."""

from __future__ import annotations

import argparse
import functools
import signal
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

from slop_code import __version__
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
from slop_code.cli.exit_codes import EXIT_HELP, Exit
from slop_code.errors import InfrastructureError, SlopCodeError
from slop_code.evaluation.reports.raw_test import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 1 << 20


class _Parser(argparse.ArgumentParser):
    """Its commands' parsers are of its kind."""

    def error(self, message: str) -> NoReturn:
        """Words of a command line may be names of files, which are anyone's."""
        super().error(visible(message, LONGEST))


@functools.cache
def parser() -> argparse.ArgumentParser:
    """Made once: it has a hundred options and more, which whoever calls `run` again need not wait for."""
    root = _Parser(
        prog="slop-code",
        description="Evaluate code that an agent wrote in checkpoints: pytest verdicts that the code cannot forge.",
        epilog=EXIT_HELP,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"slop-code {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
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


def _interrupt(_number: int, _frame: object) -> None:
    """Told to end, it cleans up as when it is interrupted."""
    raise KeyboardInterrupt


def _complain(message: str) -> None:
    """Names in it may be anyone's: no control sequence reaches the terminal."""
    print(f"slop-code: {visible(message, LONGEST)}", file=sys.stderr)


def run(argv: Sequence[str]) -> int:
    """The command's exit status; every error a user can meet ends here, as a message."""
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        arguments = parser().parse_args(argv)
        status: int = arguments.run(arguments)
        return status
    except SystemExit as end:  # argparse has said what is wrong, or shown its help
        return Exit.USAGE if end.code else Exit.PASSED
    except KeyboardInterrupt:
        print("slop-code: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except InfrastructureError as error:
        _complain(str(error))
        return Exit.INFRASTRUCTURE
    except SlopCodeError as error:
        _complain(str(error))
        return Exit.USAGE
    except BrokenPipeError:
        raise
    except OSError as error:
        _complain(f"{error.filename or 'output'}: {error.strerror}")
        return Exit.INFRASTRUCTURE
    except Exception:  # noqa: BLE001  (a defect of ours is no verdict)
        traceback.print_exc()
        return Exit.INFRASTRUCTURE
