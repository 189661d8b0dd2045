"""The words after a command."""

from typing import NamedTuple

from recipes import WrongUse

FLAGS = {"show": {"--json"}, "scale": {"--json"}, "shop": {"--json"}, "cook": {"--take"}}
VALUED = {"shop": {"--units", "--servings", "--pantry"}, "cook": {"--units", "--servings", "--pantry"}}


class Arguments(NamedTuple):
    words: list[str]
    flags: set[str]
    values: dict[str, str]

    @property
    def servings(self) -> int | None:
        text = self.values.get("--servings")
        return None if text is None else servings_of(text)


def parse_arguments(command: str, rest: list[str]) -> Arguments:
    parsed, words = Arguments([], set(), {}), iter(rest)
    for word in words:
        if word == "-" or not word.startswith("-"):
            parsed.words.append(word)
        elif word in FLAGS[command]:
            parsed.flags.add(word)
        elif word in VALUED.get(command, ()):
            value = next(words, None)
            if value is None:
                raise WrongUse(f"option {word} needs a value")
            parsed.values[word] = value
        else:
            raise WrongUse(f'unknown option "{word}"')
    return parsed


def servings_of(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise WrongUse(f'servings must be a whole number above 0, not "{text}"')
    return int(text)
