"""`slop-code cache`: what is kept, and making room."""

from __future__ import annotations

import json
import os
import time

import pytest

from slop_code._io import digest_of
from slop_code.cli.main import run
from slop_code.execution.cache import Cache
from slop_code.execution.cache_pruning import KINDS
from slop_code.reporting.text import format_size
from slop_code.runs.result_cache import ResultCache

NO_ENGINE = ("--docker", "no-such-engine")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SCBENCH_RESULTS_LIMIT", raising=False)
    return Cache.default()


@pytest.fixture
def store(here):
    """Three results of the same size, used one, two and three hours ago."""
    store = ResultCache(here)
    for number in (1, 2, 3):
        key = digest_of(number)
        store.put(key, b"x" * 1000)
        os.utime(store.root / key[:2] / key, (time.time() - 3600 * number,) * 2)
    return store


def keep(cache, kind, size):
    (cache.root / kind / "entry").mkdir(parents=True)
    (cache.root / kind / "entry" / "file").write_bytes(b"x" * size)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 bytes"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (5 << 30, "5 GiB"),
        ((5 << 30) - 1, "5 GiB"),
        (3 << 50, "3072 TiB"),
    ],
)
def test_sizes_are_printed_with_units(size, text):
    assert format_size(size) == text


def test_info_of_an_empty_cache(here, capsys):
    assert run(["cache", "info"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"cache: {here.root}"
    assert {line.split()[0] for line in printed[1:-2]} == set(KINDS) - {"results"}
    assert printed[-2:] == [f"results: {here.root}/results", "  0 entries, 0 bytes of at most 5 GiB"]


def test_info_prints_entries_and_sizes(here, store, monkeypatch, capsys):
    keep(here, "tests", 2048)
    monkeypatch.setenv("SCBENCH_RESULTS_LIMIT", "1M")
    assert run(["cache", "info"]) == 0
    printed = capsys.readouterr().out
    assert "\n  tests      1 entry, 2 KiB\n" in printed
    assert "\n  3 entries, 3.079 KiB of at most 1 MiB\n  used: first " in printed


def test_info_as_json_has_entries_and_sizes(here, store, capsys):
    keep(here, "tests", 2048)
    assert run(["cache", "info", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["folder"] == str(here.root)
    assert printed["kinds"]["tests"] == {"entries": 1, "bytes": 2048}
    assert printed["kinds"]["tools"] == {"entries": 0, "bytes": 0}
    results = printed["results"]
    assert (results["folder"], results["entries"], results["limit"]) == (str(store.root), 3, 5 << 30)
    assert results["bytes"] == store.info().bytes
    assert results["newest_use"] - results["oldest_use"] == pytest.approx(7200, abs=60)


def test_a_limit_that_is_none(here, monkeypatch, capsys):
    monkeypatch.setenv("SCBENCH_RESULTS_LIMIT", "much")
    assert run(["cache", "info"]) == 2
    assert "SCBENCH_RESULTS_LIMIT=much" in capsys.readouterr().err


@pytest.mark.parametrize(("size", "left"), [("1G", 3), ("2.5K", 2), ("1100", 1), ("0", 0)])
def test_the_least_recently_used_results_are_pruned(here, store, capsys, size, left):
    keep(here, "tests", 10)
    assert run(["cache", "prune", *NO_ENGINE, "--results-limit", size]) == 0
    assert store.info().entries == left
    assert [store.has(digest_of(number)) for number in (1, 2, 3)] == [number <= left for number in (1, 2, 3)]
    assert f"{store.root}: {'1 entry' if left == 2 else f'{3 - left} entries'} removed" in capsys.readouterr().out
    assert (here.root / "tests" / "entry").is_dir()


@pytest.mark.parametrize("size", ["much", "-1", ""])
def test_a_size_that_is_none(here, store, capsys, size):
    assert run(["cache", "prune", *NO_ENGINE, f"--results-limit={size}"]) == 2
    assert "expected a size such as 512M or 1G, or 0" in capsys.readouterr().err
    assert store.info().entries == 3


def test_results_stay_unless_everything_goes(here, store, capsys):
    assert run(["cache", "prune", *NO_ENGINE]) == 0
    assert (store.info().entries, capsys.readouterr().out) == (3, "")
    assert run(["cache", "prune", *NO_ENGINE, "--all"]) == 0
    assert not store.root.exists()
    assert f"{store.root}: removed" in capsys.readouterr().out


def test_everything_stays_while_it_is_used(here, store, capsys):
    with here.shared_lock():
        assert run(["cache", "prune", *NO_ENGINE, "--all"]) == 3
        assert "evaluations are running with this cache" in capsys.readouterr().err
        assert store.info().entries == 3
        assert run(["cache", "prune", *NO_ENGINE, "--results-limit", "0"]) == 0
        assert store.info().entries == 0
