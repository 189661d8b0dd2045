"""Reading recipe files."""

import sys
from fractions import Fraction

from larder.errors import InputError
from larder.measure import Measure


class Recipe:
    def __init__(self, title, serves, items):
        self.title = title
        self.serves = serves
        self.items = items  # pairs of a name and a Measure or None

    def for_servings(self, servings):
        factor = Fraction(servings, self.serves)
        items = [(name, measure.times(factor) if measure else None) for name, measure in self.items]
        return Recipe(self.title, servings, items)

    @property
    def heading(self):
        return f"{self.title} (serves {self.serves})"


class Source:
    """A text file as numbered lines, with errors that name their place."""

    def __init__(self, name):
        self.name = name
        if name == "-":
            self.text = sys.stdin.read()
            return
        try:
            with open(name, encoding="utf-8") as stream:
                self.text = stream.read()
        except OSError:
            raise InputError(f"{name}: no such file") from None

    def lines(self):
        for number, line in enumerate(self.text.splitlines(), 1):
            line = line.strip()
            if line != "" and line[:2] != "//":
                yield number, line

    def error(self, message, line=None):
        place = self.name if line is None else f"{self.name}:{line}"
        return InputError(f"{place}: {message}")

    def item(self, text, line):
        if ":" not in text:
            return text.strip(), None
        name, written = (part.strip() for part in text.split(":", 1))
        try:
            return name, Measure.parse(written)
        except ValueError:
            raise self.error(f'bad amount "{written}"', line) from None


def read_recipe(file):
    source = Source(file)
    title = serves = None
    items = []
    for number, line in source.lines():
        if title is None:
            if line[:2] != "# ":
                raise source.error(f'expected a title, found "{line}"', number)
            title = line[2:].strip()
        elif line.startswith("serves:"):
            written = line[len("serves:"):].strip()
            if not (written.isascii() and written.isdigit() and int(written)):
                raise source.error(f'bad servings "{written}"', number)
            serves = int(written)
        elif line.startswith("- "):
            items.append(source.item(line[2:], number))
        else:
            raise source.error(f'cannot read "{line}"', number)
    if title is None:
        raise source.error("no title")
    if serves is None:
        raise source.error("no servings")
    return Recipe(title, serves, items)
