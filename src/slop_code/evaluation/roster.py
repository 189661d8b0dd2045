"""Roster: the tests that every evaluation of a checkpoint has to account for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

TESTS_FOLDER = ".evaluation_tests"
MAX_PAIRS = 1024


def normal_nodeid(nodeid: str) -> str:
    """The node id relative to the tests folder, whatever folder pytest took as its root."""
    file, separator, name = nodeid.partition("::")
    _, inside, path = f"/{file}".rpartition(f"/{TESTS_FOLDER}/")
    return (path if inside else file.removeprefix("./")) + separator + name


@dataclass(frozen=True, slots=True)
class RosterEntry:
    nodeid: str
    markers: tuple[str, ...]
    """Closest to the test first."""

    pair: int | None = None
    """The judge/subject pair that runs the test, counted from 1; None: no pair does."""


@dataclass(frozen=True, slots=True)
class Roster:
    entries: tuple[RosterEntry, ...]

    def __post_init__(self) -> None:
        if len(self.nodeids) != len(self.entries):
            raise ValueError("a roster holds a test twice")

    @property
    def nodeids(self) -> frozenset[str]:
        return frozenset(entry.nodeid for entry in self.entries)

    @property
    def pairs(self) -> int:
        return max((entry.pair or 1 for entry in self.entries), default=1)

    def of_pair(self, pair: int) -> Roster:
        return Roster(tuple(entry for entry in self.entries if entry.pair == pair))

    def to_json(self) -> str:
        tests = [{"nodeid": entry.nodeid, "markers": list(entry.markers), "pair": entry.pair} for entry in self.entries]
        return json.dumps({"tests": tests}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Roster:
        """Raises ValueError for anything that `to_json` does not write."""
        try:
            document = json.loads(text)
        except RecursionError as error:
            raise ValueError("a roster is nested too deeply") from error
        if not isinstance(document, dict):
            raise ValueError("a roster is an object with a list of tests")
        return cls(entries_from(document.get("tests")))


def entries_from(value: Any) -> tuple[RosterEntry, ...]:
    if not isinstance(value, list):
        raise ValueError("a roster needs a list of tests")
    return tuple(_entry(item) for item in value)


def _entry(item: Any) -> RosterEntry:
    if not isinstance(item, dict) or not isinstance(item.get("nodeid"), str):
        raise ValueError("a test of a roster needs a nodeid")
    markers, pair = item.get("markers"), item.get("pair")
    if not isinstance(markers, list) or not all(isinstance(marker, str) for marker in markers):
        raise ValueError(f"{item['nodeid']}: markers need to be a list of names")
    if pair is not None and not (type(pair) is int and 1 <= pair <= MAX_PAIRS):
        raise ValueError(f"{item['nodeid']}: pair needs to be a number from 1 to {MAX_PAIRS}")
    return RosterEntry(normal_nodeid(item["nodeid"]), tuple(markers), pair)
