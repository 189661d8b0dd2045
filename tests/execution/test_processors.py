"""Places on processors: taken without waiting, by threads and processes, and free again whatever happens."""

from __future__ import annotations

import subprocess
import sys

import pytest

from slop_code.execution import processors as module
from slop_code.execution.cache import PLACES, Cache
from slop_code.execution.processors import processor_places, processor_share


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "available_cpus", lambda: 4)
    return Cache.at(tmp_path / "cache")


def test_no_more_places_are_taken_than_there_are_processors(folder):
    with processor_places(folder) as first, processor_places(folder) as second:
        assert first(1) == 1
        assert second(2) == 2
        assert second(9) == 1
        assert first(1) == 0
    with processor_places(folder) as again:
        assert again(9) == 4


def test_the_places_of_one_evaluation_are_free_when_it_ends(folder):
    with processor_places(folder) as first:
        with processor_places(folder) as second:
            assert second(4) == 4
            assert first(1) == 0
        assert first(3) == 3


@pytest.mark.e2e
def test_the_places_of_a_killed_process_are_free(folder):
    code = (
        "import sys\nfrom pathlib import Path\nfrom slop_code.execution import processors as module\n"
        "from slop_code.execution.cache import Cache\nmodule.available_cpus = lambda: 4\n"
        "with module.processor_places(Cache(Path(sys.argv[1]))) as take:\n    print(take(3), flush=True)\n    input()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, folder.root], **pipes) as other:
        assert other.stdout.readline() == "3\n"
        with processor_places(folder) as take:
            assert take(9) == 1
        other.kill()
    with processor_places(folder) as take:
        assert take(9) == 4


@pytest.mark.parametrize(("limit", "expected"), [(1, 1.0), (1 << 62, 0.0)])
def test_the_share_of_the_memory_limit_that_is_free(limit, expected):
    assert module.memory_share(limit) == pytest.approx(expected, abs=0.01)


def test_a_cache_without_locks_has_every_place_free(folder):
    (folder.root / PLACES).write_text("in the way")
    with processor_places(folder) as take:
        assert take(3) == 3


@pytest.mark.e2e
def test_a_probe_that_cannot_be_started_counts_as_a_busy_machine(monkeypatch, tmp_path):
    assert processor_share() > 0
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert processor_share() == 0
