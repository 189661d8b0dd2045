"""Quantities with a unit."""

import string
from fractions import Fraction


class Measure:
    """A positive quantity and its unit; the unit is the empty string for plain counts."""

    def __init__(self, value, unit=""):
        self.value = value
        self.unit = unit

    @classmethod
    def parse(cls, text):
        """Raise ValueError when the text is not a measure."""
        number = text.rstrip(string.ascii_letters)
        unit = text[len(number):]
        value = sum_of_words(number.split())
        if value <= 0:
            raise ValueError(text)
        return cls(value, unit)

    def times(self, factor):
        return Measure(self.value * factor, self.unit)

    def number(self):
        whole = self.value.numerator // self.value.denominator
        rest = self.value - whole
        words = [str(whole)] if whole or not rest else []
        if rest:
            words.append(f"{rest.numerator}/{rest.denominator}")
        return " ".join(words)

    def __str__(self):
        return f"{self.number()} {self.unit}".strip()


def sum_of_words(words):
    if len(words) == 1:
        return one_number(words[0])
    if len(words) == 2 and is_digits(words[0]) and "/" in words[1]:
        return int(words[0]) + one_number(words[1])
    raise ValueError(" ".join(words))


def one_number(word):
    for separator in "/.":
        if separator in word:
            left, right = word.split(separator, 1)
            if not (is_digits(left) and is_digits(right)):
                raise ValueError(word)
            if separator == "/" and int(right) == 0:
                raise ValueError(word)
            return Fraction(word)
    if not is_digits(word):
        raise ValueError(word)
    return Fraction(int(word))


def is_digits(word):
    return word.isascii() and word.isdigit()
