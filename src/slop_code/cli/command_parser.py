"""Argument parser of every command: help that ends with examples, `-v`, and help for a group without a command."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING, Any, NoReturn

from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import MAX_TEXT_BYTES
from slop_code.evaluation.reports.raw_test import escape_control

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.cli.shared_options import Commands

VERBOSE_HELP = "log each step of the execution to standard error"


class ParagraphFormatter(argparse.HelpFormatter):
    """Wraps each paragraph by itself, and keeps indented lines (the examples) and names with hyphens as they are."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = [
            line
            if not line or line.startswith(" ")
            else super(ParagraphFormatter, self)._fill_text(line, width, indent)
            for line in text.splitlines()
        ]
        return "\n".join(lines)


class CommandParser(argparse.ArgumentParser):
    """`examples` end the help; `verbose` says what `-v` shows besides the log."""

    def __init__(
        self, *, examples: Sequence[str] = (), verbose: str = "", epilog: str | None = None, **options: Any
    ) -> None:
        self.examples = examples
        shown = "\n".join(["examples:", *(f"  {example}" for example in examples)])
        super().__init__(
            epilog=f"{epilog}\n\n{shown}" if epilog else shown,
            allow_abbrev=False,
            formatter_class=ParagraphFormatter,
            **options,
        )
        # Suppressed: a default here would hide a -v before the command.
        self.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            default=argparse.SUPPRESS,
            help=f"{verbose}; {VERBOSE_HELP}" if verbose else VERBOSE_HELP,
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Unknown arguments are an error already here, so that the usage of the command is printed with it."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._similar_option(unknown)}")
        return parsed, unknown

    def _similar_option(self, unknown: Sequence[str]) -> str:
        import difflib

        options = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        similar = [
            name for option in options for name in difflib.get_close_matches(option, self._option_string_actions)
        ]
        return f"; was {similar[0]!r} meant?" if similar else ""

    def _get_option_tuples(self, option_string: str) -> Any:
        """Without abbreviations of `-proc`, which argparse allows for options with a single dash."""
        return [match for match in super()._get_option_tuples(option_string) if match[1] == option_string[:2]]

    def error(self, message: str) -> NoReturn:
        """Words of a command line may be names of files, which come from anywhere."""
        super().error(escape_control(message, MAX_TEXT_BYTES))


def add_commands(parser: argparse.ArgumentParser) -> Commands:
    """The commands of a group; the group alone prints its help."""

    def print_help(_arguments: argparse.Namespace) -> int:
        parser.print_help()
        return Exit.PASSED

    parser.set_defaults(run=print_help)
    return parser.add_subparsers(title="commands", metavar="COMMAND")
