"""Durations of tests: kept by the digest of the tests, bounded, and never trusted."""

from __future__ import annotations

import json
import os

import pytest

from slop_code.evaluation.parallel import test_durations as module
from slop_code.evaluation.parallel.test_durations import load_durations, store_durations
from slop_code.execution.cache import DURATIONS, Cache
from tests.factories import result

DIGEST = "d" * 64


@pytest.fixture
def folder(tmp_path):
    return Cache.at(tmp_path / "cache")


def results(milliseconds, **keys):
    """Of tests 0, 1 and so on, which took so long."""
    made = result("+" * len(milliseconds), digests={"tests": DIGEST}, **keys)
    tests = [test.model_copy(update={"duration_ms": each}) for test, each in zip(made.tests, milliseconds, strict=True)]
    return made.model_copy(update={"tests": tests})


def test_durations_are_the_mean_of_earlier_ones_and_the_last(folder):
    assert load_durations(folder, DIGEST) == {}
    first = results([100, 300])
    store_durations(folder, first)
    assert list(load_durations(folder, DIGEST)) == [test.nodeid for test in first.tests]
    assert list(load_durations(folder, DIGEST).values()) == [0.1, 0.3]
    store_durations(folder, results([200, 300]))
    assert list(load_durations(folder, DIGEST).values()) == [0.15, 0.3]
    store_durations(folder, results([150]))
    assert list(load_durations(folder, DIGEST).values()) == [0.15]
    assert load_durations(folder, "e" * 64) == {}


@pytest.mark.parametrize(
    "keys", [{"infrastructure_failure_reason": "killed"}, {"deselected": 1}, {"setup_failure": "no such package"}]
)
def test_an_evaluation_that_did_not_run_every_test_stores_nothing(folder, keys):
    store_durations(folder, results([100], **keys))
    assert load_durations(folder, DIGEST) == {}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", {}),
        ("[1]", {}),
        ("[" * 100_000, {}),
        ('{"a": 1, "b": -1, "c": "1", "d": true, "e": null, "f": NaN, "g": Infinity}', {"a": 1.0}),
        ('{"a": 1%s}' % ("0" * 400), {}),
        ("1" * (module.MAX_SIZE + 1), {}),
    ],
)
def test_a_damaged_file_says_nothing(folder, content, expected):
    (folder.root / DURATIONS).mkdir()
    (folder.root / DURATIONS / DIGEST).write_text(content)
    assert load_durations(folder, DIGEST) == expected


def test_the_oldest_files_make_room(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_FILES", 3)
    (folder.root / DURATIONS).mkdir()
    for number in range(5):
        path = folder.root / DURATIONS / str(number)
        path.write_text("{}")
        os.utime(path, (number, number))
    store_durations(folder, results([100]))
    assert {path.name for path in (folder.root / DURATIONS).iterdir()} == {DIGEST, "3", "4"}


def test_a_roster_that_is_too_long_is_not_stored(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_SIZE", len(json.dumps({"test_checkpoint_1.py::test_0": 0.1})))
    store_durations(folder, results([100, 100]))
    assert not (folder.root / DURATIONS).exists()


def test_a_cache_that_cannot_be_written_is_no_failure(folder):
    (folder.root / DURATIONS).write_text("in the way")
    store_durations(folder, results([100]))
    assert load_durations(folder, DIGEST) == {}
