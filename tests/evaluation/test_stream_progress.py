"""Tests done so far, from a stream that is still being written and may hold anything."""

import json

import pytest

from slop_code.evaluation.reports.stream import LINE_LIMIT
from slop_code.evaluation.reports.stream_progress import SPARE_LINES, StreamProgress
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

START = ProgressEvent(ProgressKind.TESTS_DONE, "/s", "p", "checkpoint_1", total=4)
NAMES = ["a.py::one", "a.py::two", "a.py::three", "a.py::four"]


def line(nodeid=NAMES[0], status="passed", kind="result", **more):
    return json.dumps({"kind": kind, "nodeid": nodeid, "status": status, **more}).encode() + b"\n"


@pytest.fixture
def counts():
    """(done, passed, failed) of every event, the first of which is sent at once."""
    return []


@pytest.fixture
def read(counts):
    return StreamProgress(START, lambda event: counts.append((event.count, event.passed, event.failed))).reader(NAMES)


@pytest.mark.parametrize(
    ("statuses", "count"),
    [
        (["passed"], (1, 1, 0)),
        (["failed"], (1, 0, 1)),
        (["error"], (1, 0, 1)),
        (["skipped"], (1, 0, 0)),
        (["of no known kind"], (1, 0, 1)),
        (["passed", "failed", "passed", "skipped"], (4, 2, 1)),
    ],
)
def test_results_are_counted_by_status(read, counts, statuses, count):
    read(b"".join(line(name, status) for name, status in zip(NAMES, statuses, strict=False)))
    assert counts == [(0, 0, 0), count]


def test_a_line_counts_once_its_end_is_written(read, counts):
    data = line(NAMES[0]) + line(NAMES[1], "failed")
    for position in range(len(data)):
        read(data[position : position + 1])
    assert counts == [(0, 0, 0), (1, 1, 0), (2, 1, 1)]


def test_the_pairs_of_an_evaluation_are_summed_up(counts):
    progress = StreamProgress(START, lambda event: counts.append((event.count, event.passed, event.failed)))
    first, second = progress.reader(NAMES[:2]), progress.reader(NAMES[2:])
    first(line(NAMES[0]))
    second(line(NAMES[2], "failed"))
    assert counts[-1] == (2, 1, 1)


HOSTILE = [
    line(NAMES[0]) + line(NAMES[0], "failed"),
    line(NAMES[0]) + line("a.py::unknown") + line("../../etc/passwd::x"),
    line(NAMES[0]) + line(["a.py::two"]) + line(NAMES[1], {"passed": 1}) + line(NAMES[1], kind=["result"]),
    line(NAMES[0]) + b"\xff\xfe\0\x1b]0;owned\x07\n" + b"[" * 100_000 + b"\n" + b'{"kind": ' + b"9" * 10_000 + b"}\n",
    b'"result"\n[]\nnull\n{}\n\n' + line(NAMES[0]),
    line(NAMES[0], more="x" * LINE_LIMIT).replace(b"\n", b"") + line(NAMES[1]) + line(NAMES[0]),
]


@pytest.mark.parametrize("content", HOSTILE)
def test_anything_but_a_first_result_of_an_expected_test_is_ignored(read, counts, content):
    for start in range(0, len(content), 1 << 16):
        read(content[start : start + (1 << 16)])
    assert counts == [(0, 0, 0), (1, 1, 0)]


@pytest.mark.e2e
def test_a_line_without_end_takes_no_memory(read):
    for _ in range(3 * LINE_LIMIT // (1 << 16)):
        read(b"x" * (1 << 16))
    assert len(read._rest) <= LINE_LIMIT + 1


def test_a_flooded_stream_is_given_up(read, counts):
    read(line(NAMES[0]))
    for _ in range(SPARE_LINES):
        read(b"{}\n" * 10)
    read(line(NAMES[1]))
    assert counts == [(0, 0, 0), (1, 1, 0)]
