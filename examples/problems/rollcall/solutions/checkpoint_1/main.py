"""Definitions in Python sources, on the command line."""

import sys

from definitions import definitions_in
from sources import RollcallError, WrongUse, read_sources

ARGUMENTS = {"list": 1, "find": 2}
"""The number of arguments of each command; the last is the folder."""


def main(argv: list[str]) -> int:
    try:
        lines = run(argv)
    except RollcallError as error:
        print(f"rollcall: {error}", file=sys.stderr)
        return error.status
    print("".join(f"{line}\n" for line in lines), end="")
    return 0


def run(argv: list[str]) -> list[str]:
    if not argv:
        raise WrongUse("no command")
    command, *words = argv
    if command not in ARGUMENTS:
        raise WrongUse(f'unknown command "{command}"')
    if len(words) != ARGUMENTS[command]:
        raise WrongUse(f"wrong number of arguments for {command}")
    *names, folder = words
    definitions = definitions_in(read_sources(folder))
    for name in names:
        definitions = [each for each in definitions if each.is_called(name)]
        if not definitions:
            raise RollcallError(f'no definition of "{name}"')
    return [str(each) for each in definitions]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
