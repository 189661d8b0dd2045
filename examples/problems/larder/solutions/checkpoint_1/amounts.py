"""Exact kitchen amounts."""

import re
from fractions import Fraction
from typing import NamedTuple

_QUANTITY = r"(?:(?P<whole>\d+)\s+)?(?P<top>\d+)/(?P<bottom>\d+)|(?P<decimal>\d+(?:\.\d+)?)"
_AMOUNT = re.compile(rf"(?:{_QUANTITY})\s*(?P<unit>[A-Za-z]+)?")


class Amount(NamedTuple):
    quantity: Fraction
    unit: str | None

    def __str__(self) -> str:
        text = quantity_text(self.quantity)
        return f"{text} {self.unit}" if self.unit else text


def parse_amount(text: str) -> Amount | None:
    """None for anything that is not an amount above 0."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return None
    if match["decimal"]:
        quantity = Fraction(match["decimal"])
    elif int(match["bottom"]) == 0:
        return None
    else:
        quantity = int(match["whole"] or 0) + Fraction(int(match["top"]), int(match["bottom"]))
    return Amount(quantity, match["unit"]) if quantity > 0 else None


def quantity_text(quantity: Fraction) -> str:
    whole, rest = divmod(quantity.numerator, quantity.denominator)
    if not rest:
        return str(whole)
    part = f"{rest}/{quantity.denominator}"
    return f"{whole} {part}" if whole else part
