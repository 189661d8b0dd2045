"""Definitions and uses in Python sources, on the command line."""

import sys

from definitions import Definition, definitions_in
from sources import RollcallError, Sources, WrongUse, read_sources
from uses import uses_in

ARGUMENTS = {"list": 1, "find": 2, "uses": 2, "unused": 1}
"""The number of arguments of each command; the last is the folder."""
KINDS = ("class", "function", "method", "type")


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
    command, *rest = argv
    if command not in ARGUMENTS:
        raise WrongUse(f'unknown command "{command}"')
    words, kind = split_options(command, rest)
    if len(words) != ARGUMENTS[command]:
        raise WrongUse(f"wrong number of arguments for {command}")
    *names, folder = words
    sources = read_sources(folder)
    if command == "uses":
        return lines_of_uses(sources, names[0])
    definitions = unused(sources) if command == "unused" else definitions_in(sources)
    definitions = [each for each in definitions if kind in (None, each.kind)]
    for name in names:
        definitions = [each for each in definitions if each.is_called(name)]
        if not definitions:
            raise RollcallError(f'no definition of "{name}"')
    return [str(each) for each in definitions]


def split_options(command: str, words: list[str]) -> tuple[list[str], str | None]:
    """The other words, and the last kind."""
    plain, kind, rest = [], None, iter(words)
    for word in rest:
        if not word.startswith("-"):
            plain.append(word)
        elif word != "-k" or command == "uses":
            raise WrongUse(f'unknown option "{word}"')
        else:
            kind = next(rest, None)
            if kind is None:
                raise WrongUse("-k needs a kind")
            if kind not in KINDS:
                raise WrongUse(f'unknown kind "{kind}"')
    return plain, kind


def lines_of_uses(sources: Sources, name: str) -> list[str]:
    lines = [str(use) for use in uses_in(sources) if use.name == name]
    if not lines:
        raise RollcallError(f'no use of "{name}"')
    return lines


def unused(sources: Sources) -> list[Definition]:
    used = {use.name for use in uses_in(sources)}
    return [each for each in definitions_in(sources) if each.names[-1] not in used and not is_called_by_others(each)]


def is_called_by_others(definition: Definition) -> bool:
    """By Python itself, or by a test runner."""
    name = definition.names[-1]
    return (name.startswith("__") and name.endswith("__")) or (
        name.startswith("test_") and definition.kind in ("function", "method")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
