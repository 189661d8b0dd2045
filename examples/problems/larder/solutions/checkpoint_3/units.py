"""The table of units: what can be added to what."""

from fractions import Fraction

from amounts import Amount, parse_amount
from recipes import LarderError, meaningful_lines, read_text

Table = dict[str, tuple[Fraction, str]]


def read_table(file: str) -> Table:
    table: Table = {}
    for number, line in meaningful_lines(read_text(file)):
        unit, equals, right = (part.strip() for part in line.partition("="))
        factor = parse_amount(right)
        if not unit or not equals or factor is None or factor.unit is None:
            raise LarderError(f'{file}:{number}: cannot read "{line}"')
        if unit in table:
            raise LarderError(f'{file}:{number}: "{unit}" is defined twice')
        table[unit] = (factor.quantity, factor.unit)
    return table


def in_base(amount: Amount, table: Table) -> Amount:
    if amount.unit not in table:
        return amount
    factor, base = table[amount.unit]
    return Amount(amount.quantity * factor, base)


def total(amounts: list[Amount], table: Table) -> list[Amount]:
    """One amount per base: in the unit they were all written in, else in the base."""
    by_base: dict[str | None, list[Amount]] = {}
    for amount in amounts:
        by_base.setdefault(in_base(amount, table).unit, []).append(amount)
    sums = [sum_of(group, table) for group in by_base.values()]
    return sorted(sums, key=lambda amount: amount.unit or "")


def sum_of(amounts: list[Amount], table: Table) -> Amount:
    if len({amount.unit for amount in amounts}) > 1:
        amounts = [in_base(amount, table) for amount in amounts]
    return Amount(sum((amount.quantity for amount in amounts), Fraction(0)), amounts[0].unit)


def comparable(one: Amount, other: Amount, table: Table) -> bool:
    return in_base(one, table).unit == in_base(other, table).unit


def minus(amount: Amount, other: Amount, table: Table) -> Amount:
    """In the unit of the first; never below 0."""
    if amount.unit == other.unit:
        rest = amount.quantity - other.quantity
    else:
        factor = table[amount.unit][0] if amount.unit in table else Fraction(1)
        rest = amount.quantity - in_base(other, table).quantity / factor
    return Amount(max(rest, Fraction(0)), amount.unit)
