"""Argument parser of every command: help that ends with examples, `-v`, and help for a group without a command."""

from __future__ import annotations

import argparse
import itertools
import textwrap
from typing import TYPE_CHECKING, Any, NoReturn

from slop_code._safe_text import escape_control
from slop_code._suggestions import did_you_mean, near_or_known
from slop_code.cli.exit_codes import Exit
from slop_code.cli.messages import MAX_TEXT_BYTES
from slop_code.cli.scb_options import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.cli.shared_options import Commands

MISSING = "the following arguments are required: "
"""Beginning of argparse's message, which it prints before it looks at unknown options."""

NO_VALUE = ": expected one argument"
"""End of argparse's message about an option, also where a word that begins with - follows."""

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
        self._words: list[str] = []
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
        self._words = [word for word in args or () if isinstance(word, str)]
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            near = next(self._similar_options(unknown), ("", ""))[1]
            quiet = "".join(f"; {word} goes before the command" for word in unknown if word in QUIET)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near or quiet}")
        return parsed, unknown

    def _similar_options(self, words: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Each unknown option that is like a known one, with the end of a message that names that."""
        known = self._option_string_actions
        for option in (word.partition("=")[0] for word in words if word.startswith("--")):
            if option not in known and (near := did_you_mean(option, known)):
                yield option, near

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Names the choice that may be meant, or all of them, without the other names of a command."""
        if action.choices is None or value in action.choices:
            return
        names, near = [*map(str, action.choices)], ""
        if isinstance(action, argparse._SubParsersAction):
            names, near = [item.dest for item in action._choices_actions], _in_groups(action, value)
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{near or near_or_known(str(value), names)}")

    def _get_option_tuples(self, option_string: str) -> Any:
        """Without abbreviations of `-proc`, which argparse allows for options with a single dash."""
        return [match for match in super()._get_option_tuples(option_string) if match[1] == option_string[:2]]

    def error(self, message: str) -> NoReturn:
        """Words of a command line may be names of files, which come from anywhere."""
        if message.startswith(MISSING):
            unknown = [f"; unknown option {option!r}{near}" for option, near in self._similar_options(self._words)]
            message += "".join(unknown) or self._meaning(message.removeprefix(MISSING))
        if message.endswith(NO_VALUE):
            message += self._joined_value(message.removeprefix("argument ").removesuffix(NO_VALUE).split("/"))
        super().error(escape_control(message, MAX_TEXT_BYTES))

    def _meaning(self, name: str) -> str:
        """The end of a message that a single argument is missing: its help."""
        actions = [action for action in self._actions if argparse._get_action_name(action) == name and action.help]
        return "".join(f": {self._get_formatter()._expand_help(action)}" for action in actions)

    def _joined_value(self, names: Sequence[str]) -> str:
        """The end of a message about an option with these names: how to write a value that begins with -.

        A word that is an option of this command is taken for one, except after `--pytest-arg`.
        """
        own = () if "--pytest-arg" in names else self._option_string_actions
        pairs = itertools.pairwise(self._words)
        values = [
            (word, value)
            for word, value in pairs
            if word in names and value.startswith("-") and value.partition("=")[0] not in own
        ]
        return "".join(f"; for the value {value}, write {word}={value}" for word, value in values[:1])


def _in_groups(action: Commands, value: object) -> str:
    """The commands of groups that have this name, for one that was given without its group."""
    inner = [(name, part) for name, parser in action.choices.items() for part in parser._actions]
    groups = [name for name, part in inner if isinstance(part, argparse._SubParsersAction) and value in part.choices]
    meant = " or ".join(f"'{name} {value}'" for name in groups)
    return f"; did you mean {meant}?" if meant else ""


def add_commands(parser: argparse.ArgumentParser) -> Commands:
    """The commands of a group; the group alone prints its help."""

    def print_help(_arguments: argparse.Namespace) -> int:
        parser.print_help()
        return Exit.PASSED

    parser.set_defaults(run=print_help)
    return parser.add_subparsers(title="commands", metavar="COMMAND")
