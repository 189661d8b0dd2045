"""Recipe files."""

import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from amounts import Amount, parse_amount


class LarderError(Exception):
    status = 1


class WrongUse(LarderError):  # noqa: N818
    status = 2


class Ingredient(NamedTuple):
    name: str
    amount: Amount | None


class Recipe(NamedTuple):
    title: str
    serves: int
    ingredients: list[Ingredient]


def read_text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read()
    except OSError:
        raise LarderError(f"{file}: no such file") from None


def meaningful_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("//"):
            yield number, stripped


def read_recipe(file: str) -> Recipe:
    lines = meaningful_lines(read_text(file))
    number, line = next(lines, (0, ""))
    if not line:
        raise LarderError(f"{file}: no title")
    if not line.startswith("# "):
        raise LarderError(f'{file}:{number}: expected a title, found "{line}"')
    title, serves, ingredients = line[2:].strip(), 0, []
    for number, line in lines:
        if line.startswith("serves:"):
            serves = parse_servings(line.removeprefix("serves:").strip(), f"{file}:{number}")
        elif line.startswith("- "):
            ingredients.append(parse_ingredient(line[2:], f"{file}:{number}"))
        else:
            raise LarderError(f'{file}:{number}: cannot read "{line}"')
    if not serves:
        raise LarderError(f"{file}: no servings")
    return Recipe(title, serves, ingredients)


def parse_servings(text: str, place: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise LarderError(f'{place}: bad servings "{text}"')
    return int(text)


def parse_ingredient(text: str, place: str) -> Ingredient:
    name, colon, written = (part.strip() for part in text.partition(":"))
    if not colon:
        return Ingredient(name, None)
    amount = parse_amount(written)
    if amount is None:
        raise LarderError(f'{place}: bad amount "{written}"')
    return Ingredient(name, amount)


def scaled(recipe: Recipe, servings: int) -> Recipe:
    factor = Fraction(servings, recipe.serves)
    return Recipe(recipe.title, servings, [times(each, factor) for each in recipe.ingredients])


def times(ingredient: Ingredient, factor: Fraction) -> Ingredient:
    if ingredient.amount is None:
        return ingredient
    quantity, unit = ingredient.amount
    return Ingredient(ingredient.name, Amount(quantity * factor, unit))
