"""Detection of work that was done twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.damage import account
from tests.faults.repeated_work import (
    RecordedEvent,
    StoredEntry,
    begun_again,
    begun_twice,
    lost_to_a_signal,
    printed_again,
    stored_again,
)


def events(text):
    """`a0 a0! a1`: a is begun, fails, is begun once more. `/` is the next start."""
    starts = enumerate(text.split("/"))
    words = [(number, word) for number, part in starts for word in part.split()]
    return [
        RecordedEvent("failed" if word[2:] else "begun", str(number), int(word[1]), word[0]) for number, word in words
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a0 b0", []),
        ("a0 / a0", []),
        ("a0 a0! a1", []),
        ("a0 a0", ["a was begun 2 times in one start"]),
        ("a0 b0 a0 a0", ["a was begun 3 times in one start"]),
        ("a0 a1", ["a was begun again in one start, and had not failed"]),
        ("a0 b0 b0! a1", ["a was begun again in one start, and had not failed"]),
        ("a0 a0! / a1", ["a was begun again in one start, and had not failed"]),
        ("a0 a0! a1 a1! a2", ["a was begun again after 2 attempts"]),
    ],
)
def test_a_checkpoint_that_begins_twice_is_reported(text, expected):
    assert list(begun_twice(events(text))) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [("b0", 0), ("a0", 1), ("a0 a0", 1), ("a0!", 0), ("c0 b0", 1)],
)
def test_a_finished_checkpoint_that_begins_again_is_reported(text, count):
    assert len(list(begun_again(events(text), {"a": "one", "c": "another"}))) == count


@pytest.mark.parametrize(
    ("text", "done", "reported"),
    [
        ("a0 b0", "", False),
        ("a0 b0 c0", "", True),
        ("a0 b0 c0", "b", False),
        ("a0 b0 c0 c0!", "", False),
        ("a0 b0 c0 c0! c1", "", True),
        ("a0 b0 c0 c0! c1", "c", False),
    ],
)
def test_a_signal_loses_only_what_was_running(text, done, reported):
    assert bool(list(lost_to_a_signal(events(text), set(done)))) is reported


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("[1/3] PASSED 0/a 1/1 0.5 s\n[2/3] NOT PASSED 0/b 0/1 (core 0/1) 0.5 s\n", []),
        ("[1/3] PASSED 0/a 1/1 0.5 s\n[2/3] NOT PASSED 0/a 0/1 (core 0/1) 0.5 s\n", ["0/a was printed 2 times"]),
        ("[1/3] PASSED 0/a 1/1 (cached)\n[2/3] PASSED 0/a 1/1 (cached)\n", []),
        ("[1/3] PASSED 0/done 1/1 (cached)\n", []),
        ("[1/3] PASSED 0/done 1/1 0.5 s\n", ["0/done was finished, and was printed again"]),
        ("[1/3] NO VERDICT 0/done: killed\n", []),
    ],
)
def test_a_finished_checkpoint_that_is_printed_again_is_reported(said, expected):
    assert list(printed_again(said, ["0/done"])) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({"a": 1, "b": 2}, []),
        ({"a": 1, "b": 2, "c": 3}, []),
        ({"a": 1}, ["stored b was lost"]),
        ({"a": 1, "b": 3}, ["stored b was written again"]),
    ],
)
def test_a_result_that_is_stored_again_is_reported(after, expected):
    def entries(inodes):
        return {Path(name): StoredEntry(name, "t", inode) for name, inode in inodes.items()}

    assert list(stored_again(entries({"a": 1, "b": 2}), entries(after))) == expected


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        (
            "stream.jsonl",
            b'{"kind": "start"}\n{"kind": "result", "nodeid": "a", "status": "passed"}',
            [("a", "passed")],
        ),
        ("stream.jsonl", b'{"kine": "start"}', None),
        ("ctrf-report.json", b'{"results": {"tests": [{"name": "a", "status": "failed"}]}}', [("a", "failed")]),
        ("ctrf-report.json", b'{"results": {"tests": [{"name": "a", "statue": "failed"}]}}', None),
        ("pytest-report.json", b'{"tests": [{"nodeid": "a", "outcome": "passed", "x": 1}]}', [("a", "passed")]),
        ("pytest-report.json", b'{"tests": [{"nodeid": "a", "outcome": "pass\xe5d"}]}', None),
        ("pytest-report.json", b"", None),
    ],
)
def test_the_account_of_a_raw_report(name, content, found):
    assert account(name, content) == found
