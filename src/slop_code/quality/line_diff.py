"""Line diff with a bounded number of steps: the lines that two versions of a file share, and unified hunks."""

from __future__ import annotations

import contextlib
import re
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")

Pair = tuple[int, int]


class Block(NamedTuple):
    """Lines that both versions have, at these positions from 0."""

    before: int
    after: int
    size: int


@dataclass(slots=True)
class StepBudget:
    """Steps that comparisons may still take. Steps are counted, not seconds, so that figures do not depend on load."""

    left: int

    def take(self, steps: int) -> bool:
        self.left -= steps
        return self.left >= 0

    @contextlib.contextmanager
    def part(self, limit: int) -> Iterator[StepBudget]:
        """A budget of at most `limit` of the steps that are left; the steps that it spends are taken from this one."""
        given = max(0, min(limit, self.left))
        part = StepBudget(given)
        yield part
        self.left -= given - max(0, part.left)


def split_lines(data: bytes) -> list[bytes]:
    """Each line with its line feed; only the last one may lack it."""
    return _LINE.findall(data)


def matching_blocks(before: Sequence[bytes], after: Sequence[bytes], budget: StepBudget) -> list[Block] | None:
    """A longest common subsequence of lines; None where the budget is spent before it is known.

    Lines at both ends are compared first, and lines that only one version has are left out: neither changes the
    result, and what remains is short for most files. Each line is a step, too.
    """
    if not budget.take(len(before) + len(after)):
        return None
    head, tail = common_ends(before, after)
    both = set(before[head : len(before) - tail]) & set(after[head : len(after) - tail])
    left = [number for number in range(head, len(before) - tail) if before[number] in both]
    right = [number for number in range(head, len(after) - tail) if after[number] in both]
    pairs = _common_pairs([before[number] for number in left], [after[number] for number in right], budget)
    if pairs is None:
        return None
    middle = [(left[x], right[y]) for x, y in pairs]
    return _blocks(head, middle, tail, (len(before), len(after)))


def outer_blocks(before: Sequence[bytes], after: Sequence[bytes]) -> list[Block]:
    """Only the common lines at both ends: everything between them counts as replaced."""
    head, tail = common_ends(before, after)
    return _blocks(head, [], tail, (len(before), len(after)))


def common_ends(before: Sequence[bytes], after: Sequence[bytes]) -> tuple[int, int]:
    """Numbers of equal lines at the beginning and, after these, at the end."""
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return head, tail


def _blocks(head: int, pairs: Sequence[Pair], tail: int, sizes: Pair) -> list[Block]:
    """Pairs that follow each other, or follow the head, are one block."""
    blocks: list[Block] = []
    before = after = 0
    size = head
    for x, y in pairs:
        if x != before + size or y != after + size:
            blocks.append(Block(before, after, size))
            before, after, size = x, y, 0
        size += 1
    blocks.append(Block(before, after, size))
    blocks.append(Block(sizes[0] - tail, sizes[1] - tail, tail))
    return [block for block in blocks if block.size]


def _common_pairs(before: Sequence[bytes], after: Sequence[bytes], budget: StepBudget) -> list[Pair] | None:
    """Positions of a longest common subsequence, by Myers' greedy algorithm (1986).

    `furthest[k]` is the position in `before` that a path with so many edits reaches on the diagonal k, where k is the
    difference of both positions. `trace` has these of each number of edits, from which the path is read backwards.
    """
    size, other = len(before), len(after)
    middle = size + other + 1
    furthest = array("i", bytes(4 * (2 * middle + 1)))
    trace: list[array[int]] = []
    for edits in range(size + other + 1):
        lowest, highest = -(edits - 2 * max(0, edits - other)), edits - 2 * max(0, edits - size)
        steps = highest - lowest
        for k in range(lowest, highest + 1, 2):
            down = k == -edits or (k != edits and furthest[middle + k - 1] < furthest[middle + k + 1])
            x = start = furthest[middle + k + 1] if down else furthest[middle + k - 1] + 1
            while x < size and x - k < other and before[x] == after[x - k]:
                x += 1
            furthest[middle + k] = x
            steps += x - start
        if not budget.take(steps + 1):
            return None
        if furthest[middle + size - other] == size and abs(size - other) <= edits:
            return _path(trace, (size, other), edits)
        trace.append(furthest[middle - edits : middle + edits + 1 : 2])
    raise AssertionError("deleting and inserting every line is always enough")


def _path(trace: Sequence[array[int]], end: Pair, edits: int) -> list[Pair]:
    """Positions of equal lines on the path with this number of edits that ends at `end`."""
    pairs: list[Pair] = []
    x, y = end
    for number in range(edits, 0, -1):
        k, earlier = x - y, trace[number - 1]
        lower, upper = (k - 1 + number - 1) // 2, (k + 1 + number - 1) // 2
        down = k == -number or (k != number and earlier[lower] < earlier[upper])
        start = earlier[upper] if down else earlier[lower] + 1
        pairs += [(position, position - k) for position in range(x - 1, start - 1, -1)]
        x, y = (start, start - k - 1) if down else (start - 1, start - k)
    pairs += [(position, position) for position in range(x - 1, -1, -1)]
    return pairs[::-1]


def unified_lines(before: Sequence[bytes], after: Sequence[bytes], blocks: Sequence[Block]) -> Iterator[str]:
    """Hunks of a unified diff without the names of the files; bytes that are no UTF-8 become escapes."""
    for hunk in _hunks(_gaps(blocks, len(before), len(after))):
        (first, first_after), (last, last_after) = hunk[0][:2], hunk[-1][2:]
        start, end = max(0, first - CONTEXT), min(len(before), last + CONTEXT)
        start_after, end_after = max(0, first_after - CONTEXT), min(len(after), last_after + CONTEXT)
        yield f"@@ -{_range(start, end)} +{_range(start_after, end_after)} @@"
        position = start
        for low, low_after, high, high_after in hunk:
            yield from _signed(" ", before[position:low])
            yield from _signed("-", before[low:high])
            yield from _signed("+", after[low_after:high_after])
            position = high
        yield from _signed(" ", before[position:end])


Gap = tuple[int, int, int, int]
"""Beginning in both versions, and end in both versions, of lines that differ."""


def _gaps(blocks: Sequence[Block], before: int, after: int) -> Iterator[Gap]:
    position, position_after = 0, 0
    for block in [*blocks, Block(before, after, 0)]:
        if (position, position_after) != (block.before, block.after):
            yield position, position_after, block.before, block.after
        position, position_after = block.before + block.size, block.after + block.size


def _hunks(gaps: Iterator[Gap]) -> Iterator[list[Gap]]:
    """Gaps whose contexts touch are in one hunk."""
    hunk: list[Gap] = []
    for gap in gaps:
        if hunk and gap[0] - hunk[-1][2] > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(gap)
    if hunk:
        yield hunk


def _range(start: int, end: int) -> str:
    """As in a unified diff: the number of the first line, or of the line before an empty range."""
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _signed(sign: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        yield sign + line.removesuffix(b"\n").decode("utf-8", "backslashreplace")
        if not line.endswith(b"\n"):
            yield NO_NEWLINE
