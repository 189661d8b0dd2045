"""Line diffs: longest common subsequences within a budget, and unified hunks."""

from __future__ import annotations

import difflib
import itertools
import random

import pytest

from slop_code.quality.line_diff import Block, StepBudget, matching_blocks, outer_blocks, split_lines, unified_lines

PLENTY = 10**9


def blocks_of(before, after, steps=PLENTY):
    return matching_blocks([*map(str.encode, before)], [*map(str.encode, after)], StepBudget(steps))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a\n"]),
        (b"a\n\nb", [b"a\n", b"\n", b"b"]),
        (b"a\r\nb\x0bc\x85\n", [b"a\r\n", b"b\x0bc\x85\n"]),  # only a line feed ends a line
    ],
)
def test_lines_end_with_a_line_feed(data, lines):
    assert split_lines(data) == lines


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        ("", "ab", []),
        ("ab", "", []),
        ("ab", "ab", [Block(0, 0, 2)]),
        ("ab", "xy", []),
        ("abc", "axc", [Block(0, 0, 1), Block(2, 2, 1)]),
        ("abc", "ac", [Block(0, 0, 1), Block(2, 1, 1)]),
        ("ac", "abc", [Block(0, 0, 1), Block(1, 2, 1)]),
        ("abcde", "axcye", [Block(0, 0, 1), Block(2, 2, 1), Block(4, 4, 1)]),
        ("aaaa", "aa", [Block(0, 0, 2)]),
        ("xab", "aby", [Block(1, 0, 2)]),
    ],
)
def test_common_lines_are_found(before, after, expected):
    assert blocks_of(before, after) == expected


def longest_common(before, after):
    """The textbook's table, as a second opinion."""
    row = [0] * (len(after) + 1)
    for one in before:
        row, last = [0], row
        for number, other in enumerate(after):
            row.append(last[number] + 1 if one == other else max(row[-1], last[number + 1]))
    return row[-1]


@pytest.mark.e2e
def test_no_other_common_subsequence_is_longer():
    words = ["".join(word) for size in range(5) for word in itertools.product("ab", repeat=size)]
    chance = random.Random(1)
    drawn = ["".join(chance.choices("abcd", k=chance.randrange(40))) for _ in range(20)]
    for before, after in [*itertools.product(words, words), *itertools.product(drawn, drawn)]:
        blocks = blocks_of(before, after)
        assert sum(block.size for block in blocks) == longest_common(before, after), (before, after)
        for block in blocks:
            size = block.size
            assert before[block.before : block.before + size] == after[block.after : block.after + size]
        ends = [(block.before + block.size, block.after + block.size) for block in blocks]
        assert all(
            end[0] <= block.before and end[1] <= block.after for end, block in zip(ends, blocks[1:], strict=False)
        )


def test_a_spent_budget_has_no_answer():
    assert blocks_of("abab" * 10, "baab" * 10, steps=5) is None
    assert outer_blocks([b"a", b"x", b"y", b"b"], [b"a", b"y", b"b"]) == [Block(0, 0, 1), Block(2, 1, 2)]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([b"same\n"] * 100_000, [b"same\n"] * 60_000),
        ([b"a\n", b"b\n"] * 50_000, [b"b\n", b"a\n", b"a\n"] * 30_000),
        ([b"%d\n" % (n * 7919 % 200) for n in range(50_000)], [b"%d\n" % (n * 104729 % 200) for n in range(50_000)]),
        ([b"%d\n" % n for n in range(100_000)], [b"%d\n" % -n for n in range(100_000)]),
        ([b"%d\n" % n for n in range(100_000)], [b"%d\n" % n for n in reversed(range(100_000))]),
    ],
    ids=["equal lines", "two lines", "popular lines", "nothing in common", "reversed"],
)
def test_steps_are_bounded_for_lines_that_make_a_comparison_quadratic(before, after):
    budget = StepBudget(200_000)
    matching_blocks(before, after, budget)
    assert budget.left > -500_000  # the last round may exceed it, by no more than the lines and the diagonals


@pytest.mark.parametrize("seed", range(20))
def test_hunks_are_those_of_a_unified_diff(seed):
    """Both versions follow from the hunks, which have the form that difflib writes."""
    chance = random.Random(seed)
    before = [b"line %d\n" % chance.randrange(30) for _ in range(chance.randrange(60))]
    after = [line for line in before if chance.random() > 0.1]
    for _ in range(chance.randrange(6)):
        after.insert(chance.randrange(len(after) + 1), b"new %d\n" % chance.randrange(5))
    lines = [*unified_lines(before, after, matching_blocks(before, after, StepBudget(PLENTY)))]
    old, new = ([*map(bytes.decode, version)] for version in (before, after))
    theirs = [line.rstrip("\n") for line in difflib.unified_diff(old, new)][2:]
    count = len([line for line in theirs if line[0] in "+-"])
    assert len([line for line in lines if line[0] in "+-"]) <= count
    assert applied(before, lines) == after


def applied(before, lines):
    """The version after these hunks."""
    after, position = [], 0
    for line in lines:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            first = int(start) - (0 if count == "0" else 1)
            after += before[position:first]
            position = first
        elif line[0] in " -":
            assert before[position] == f"{line[1:]}\n".encode()
            after += [before[position]] if line[0] == " " else []
            position += 1
        else:
            after.append(f"{line[1:]}\n".encode())
    return after + before[position:]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"", b"a\n", ["@@ -0,0 +1 @@", "+a"]),
        (b"a\nb\n", b"", ["@@ -1,2 +0,0 @@", "-a", "-b"]),
        (b"a", b"a\n", ["@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"]),
        (b"caf\xe9\n", b"caf\xc3\xa9\n", ["@@ -1 +1 @@", "-caf\\xe9", "+café"]),
        (
            b"1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
            ["@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"],
        ),
    ],
)
def test_a_hunk_has_its_context(before, after, expected):
    old, new = split_lines(before), split_lines(after)
    assert [*unified_lines(old, new, matching_blocks(old, new, StepBudget(PLENTY)))] == expected


def test_every_line_takes_a_step():
    budget = StepBudget(100)
    assert matching_blocks([b"x\n"] * 40, [b"x\n"] * 40, budget) is not None
    assert budget.left <= 20
    assert matching_blocks([b"x\n"] * 40, [b"x\n"] * 40, budget) is None
