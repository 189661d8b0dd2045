"""What is in the house."""

from typing import NamedTuple

from amounts import Amount
from recipes import Ingredient, LarderError, meaningful_lines, parse_ingredient, read_text
from shopping import Needs, normal_name
from units import Table, comparable, minus


class Pantry(NamedTuple):
    text: str
    supplies: dict[str, tuple[int, Ingredient]]
    """By normal name: the number of the line, and what it says."""


def read_pantry(file: str) -> Pantry:
    text = read_text(file)
    supplies: dict[str, tuple[int, Ingredient]] = {}
    for number, line in meaningful_lines(text):
        supply = parse_ingredient(line, f"{file}:{number}")
        name = normal_name(supply.name)
        if name in supplies:
            raise LarderError(f'{file}:{number}: "{name}" is listed twice')
        supplies[name] = (number, supply)
    return Pantry(text, supplies)


def missing_from(pantry: Pantry, needs: Needs, table: Table) -> Needs:
    missing: Needs = {}
    for name, amounts in needs.items():
        if name not in pantry.supplies:
            missing[name] = amounts
            continue
        held = pantry.supplies[name][1].amount
        lacking = [rest for rest in (lack(amount, held, table) for amount in amounts) if rest.quantity]
        if lacking:
            missing[name] = lacking
    return missing


def lack(need: Amount, held: Amount | None, table: Table) -> Amount:
    if held is None:
        return Amount(need.quantity * 0, need.unit)
    return minus(need, held, table) if comparable(need, held, table) else need


def take(file: str, pantry: Pantry, needs: Needs, table: Table) -> None:
    lines: list[str | None] = list(pantry.text.splitlines(keepends=True))
    for name, amounts in needs.items():
        number, supply = pantry.supplies[name]
        if supply.amount is None or not amounts:
            continue
        rest = minus(supply.amount, amounts[0], table)
        lines[number - 1] = f"{supply.name}: {rest}\n" if rest.quantity else None
    with open(file, "w", encoding="utf-8") as stream:
        stream.writelines(line for line in lines if line is not None)
