"""Families of programming tasks in the shape of public competitive-programming sets: standard input to standard output.

A family has a right program, and edits that make it wrong. The number `K`, which is the program's first line, makes
several tasks of one family.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000)
"""Of the inputs of one task: a case for each."""

NUMBERS = "import sys\nnumbers = list(map(int, sys.stdin.read().split()))[1:]\n"
WORDS = "import sys\nwords = sys.stdin.read().split()\n"
NUMBER = "number = int(input())\n"


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    right: str
    edits: tuple[tuple[str, str], ...]
    """Each replaces a text by another, and gives a wrong program."""

    given: Callable[[random.Random, int], str]
    """An input of a size."""


def numbers(chance: random.Random, size: int) -> str:
    return f"{size}\n{' '.join(str(chance.randint(-100, 100)) for _ in range(size))}\n"


def naturals(chance: random.Random, size: int) -> str:
    return f"{size}\n{' '.join(str(chance.randint(1, 1000)) for _ in range(size))}\n"


def number(chance: random.Random, size: int) -> str:
    return f"{chance.randint(size, 2 * size)}\n"


def words(chance: random.Random, size: int) -> str:
    return " ".join("".join(chance.choices("abc", k=chance.randint(1, 3))) for _ in range(size)) + "\n"


def brackets(chance: random.Random, size: int) -> str:
    """Balanced, or with one bracket too many."""
    text, open_ones = "", 0
    for _ in range(size):
        step = "(" if open_ones == 0 or chance.random() < 0.5 else ")"
        open_ones += 1 if step == "(" else -1
        text += step
    return f"{text}{')' * (open_ones - (size % 5 == 0))}\n"


def two_words(chance: random.Random, size: int) -> str:
    length = max(2, size // 8)
    return "\n".join("".join(chance.choices("abcd", k=length + more)) for more in (0, 1)) + "\n"


def intervals(chance: random.Random, size: int) -> str:
    starts = [chance.randint(0, 10 * size) for _ in range(size)]
    return f"{size}\n" + "".join(f"{start} {start + chance.randint(1, 9)}\n" for start in starts)


def grid(chance: random.Random, size: int) -> str:
    side = max(2, int(size**0.5))
    rows = ["".join(chance.choices(".#", (4, 1), k=side)) for _ in range(side)]
    return "\n".join([f".{rows[0][1:]}", *rows[1:-1], f"{rows[-1][:-1]}."]) + "\n"


FAMILIES = (
    Family(
        "sum_of_multiples",
        NUMBERS + "print(sum(number for number in numbers if number % K == 0))\n",
        (("== 0", "!= 0"), ("sum(number for", "sum(abs(number) for")),
        numbers,
    ),
    Family(
        "largest_window",
        NUMBERS + "width = min(K, len(numbers))\nlast = len(numbers) - width\n"
        "print(max(sum(numbers[start : start + width]) for start in range(last + 1)))\n",
        (("min(K, len", "min(K - 1, len"), ("max(sum", "min(sum")),
        numbers,
    ),
    Family(
        "pairs_by_difference",
        NUMBERS + "seen, pairs = {}, 0\nfor number in numbers:\n"
        "    pairs += seen.get(number - K, 0) + seen.get(number + K, 0)\n"
        "    seen[number] = seen.get(number, 0) + 1\nprint(pairs)\n",
        ((" + seen.get(number + K, 0)", ""), ("seen.get(number, 0) + 1", "1")),
        numbers,
    ),
    Family(
        "caesar",
        WORDS + "print(*(''.join(chr((ord(letter) - 97 + K) % 26 + 97) for letter in word) for word in words))\n",
        (("+ K", "- K"), ("+ 97)", "+ 65)")),
        words,
    ),
    Family(
        "digits_in_base",
        NUMBER + "base, digits = K + 1, ''\nwhile number:\n"
        "    number, digit = divmod(number, base)\n    digits = str(digit) + digits\nprint(digits)\n",
        (("str(digit) + digits", "digits + str(digit) + '.'"), ("K + 1", "K + 2")),
        number,
    ),
    Family(
        "longest_run",
        NUMBERS + "best = run = 0\nfor number in numbers:\n"
        "    run = run + 1 if abs(number) >= K else 0\n    best = max(best, run)\nprint(best)\n",
        (("print(best)", "print(run + 1)"), ("abs(number) >= K", "abs(number) > 50")),
        numbers,
    ),
    Family(
        "rotation",
        NUMBERS + "cut = K % len(numbers)\nprint(*numbers[cut:], *numbers[:cut])\n",
        (("numbers[cut:], *numbers[:cut]", "numbers[-cut - 1:], *numbers[:-cut - 1]"), ("*numbers[:cut]", "K")),
        numbers,
    ),
    Family(
        "smallest_by_rank",
        NUMBERS + "ordered = sorted(set(numbers))\nprint(ordered[min(K, len(ordered)) - 1])\n",
        ((") - 1]", ") - 2]"), ("sorted(set(numbers))", "sorted(numbers, key=str)")),
        numbers,
    ),
    Family(
        "sum_of_powers",
        NUMBERS + "print(sum(pow(number, K, 10007) for number in numbers) % 10007)\n",
        (("K, 10007", "K + 1, 10007"), (") % 10007", ")")),
        naturals,
    ),
    Family(
        "bracket_depth",
        "depth, deepest, valid = 0, 0, True\nfor bracket in input():\n"
        "    depth += 1 if bracket == '(' else -1\n    deepest = max(deepest, depth)\n"
        "    valid = valid and depth >= 0\nprint('yes' if valid and depth == 0 else 'no', deepest * K)\n",
        ((" and depth == 0", ""), ("deepest * K", "deepest + K + 1")),
        brackets,
    ),
    Family(
        "frequent_words",
        WORDS + "often = sorted({word for word in words if words.count(word) >= K})\nprint(len(often), *often)\n",
        ((">= K", "> K"), ("{word for word in words if words.count(word) >= K}", "words")),
        words,
    ),
    Family(
        "shortest_way",
        "import sys\nrows = sys.stdin.read().split()\nside = len(rows)\nsteps, edge = {(0, 0): 0}, [(0, 0)]\n"
        "for row, column in edge:\n    for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):\n"
        "        cell = (row + down, column + right)\n"
        "        if min(cell) >= 0 and max(cell) < side and cell not in steps and rows[cell[0]][cell[1]] == '.':\n"
        "            steps[cell] = steps[row, column] + K\n            edge.append(cell)\n"
        "print(steps.get((side - 1, side - 1), -1))\n",
        (("+ K", "+ K + 1"), ("(-1, 0)", "(1, 1)")),
        grid,
    ),
    Family(
        "ways_to_pay",
        NUMBER + "ways = [1] + [0] * number\nfor coin in range(1, K + 1):\n    for amount in range(coin, number + 1):\n"
        "        ways[amount] += ways[amount - coin]\nprint(ways[number])\n",
        (("range(1, K + 1)", "range(1, K + 2)"), ("+= ways", "= ways")),
        number,
    ),
    Family(
        "stairs",
        NUMBER + "ways = [1]\nfor step in range(number):\n    ways.append(sum(ways[-K:]) % 1000007)\nprint(ways[-1])\n",
        (("ways[-K:]", "ways[-K - 1:]"), ("print(ways[-1])", "print(ways[-2] + 1)")),
        number,
    ),
    Family(
        "rising_numbers",
        NUMBERS + "longest = []\nfor index, number in enumerate(numbers):\n"
        "    before = [longest[other] for other in range(index) if numbers[other] + K <= number]\n"
        "    longest.append(max(before, default=0) + 1)\nprint(max(longest))\n",
        (("<= number", "> number"), ("print(max(longest))", "print(longest[-1] + 1)")),
        lambda chance, size: naturals(chance, min(size, 200)),
    ),
    Family(
        "last_in_circle",
        NUMBER + "place = 0\nfor size in range(2, number + 1):\n    place = (place + K) % size\nprint(place + 1)\n",
        (("print(place + 1)", "print(place)"), ("range(2, number + 1)", "range(2, number + 2)")),
        number,
    ),
    Family(
        "next_prime",
        NUMBER + "left = K\nwhile left:\n    number += 1\n"
        "    left -= number > 1 and all(number % factor for factor in range(2, int(number**0.5) + 1))\nprint(number)\n",
        (("left = K", "left = K + 1"), (" + 1))", "))")),
        number,
    ),
    Family(
        "edit_distance",
        "first, second = input(), input()\nline = list(range(len(second) + 1))\n"
        "for row, letter in enumerate(first, start=1):\n    previous, line = line, [row]\n"
        "    for column, other in enumerate(second, start=1):\n"
        "        same = previous[column - 1] + (0 if letter == other else K)\n"
        "        line.append(min(same, previous[column] + 1, line[-1] + 1))\nprint(line[-1])\n",
        (("0 if letter == other else K", "K"), ("print(line[-1])", "print(line[-1] + 1)")),
        two_words,
    ),
    Family(
        "divisible_stretches",
        NUMBERS + "seen, total, count = {0: 1}, 0, 0\nfor number in numbers:\n    total = (total + number) % (K + 1)\n"
        "    count += seen.get(total, 0)\n    seen[total] = seen.get(total, 0) + 1\nprint(count)\n",
        (("{0: 1}", "{}"), ("% (K + 1)", "% (K + 3)")),
        numbers,
    ),
    Family(
        "merged_intervals",
        NUMBERS + "spans = sorted(zip(numbers[::2], numbers[1::2]))\nend, count = -K - 1, 0\n"
        "for start, stop in spans:\n    count += start > end + K\n    end = max(end, stop)\nprint(count)\n",
        (("sorted(zip(numbers[::2], numbers[1::2]))", "list(zip(numbers[::2], numbers[1::2]))[1:]"),
         ("start > end + K", "start >= end - K")),
        intervals,
    ),
)  # fmt: skip
