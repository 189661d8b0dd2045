"""Killed at any moment and started again, a run loses nothing and repeats nothing."""

from __future__ import annotations

import os
import random
import re
import sys

import pytest

from slop_code.evaluation import CorrectnessResults
from slop_code.runs.lines import read_lines
from slop_code.runs.parcel import results_in
from slop_code.runs.store import Store
from tests.e2e.conftest import most_at_a_time

RUNS = 12
KILLS = 20
WORKERS = 2
SEED = "SLOP_CODE_TEST_SEED"
COUNTED = """
import os, sys
from slop_code.__main__ import main
from slop_code.runs import executors
from slop_code.runs.executors.threads import Threads

class Counted(Threads):
    def submit(self, work):
        with open(os.environ["WITNESS"], "a") as file:
            file.write(work.digest + "\\n")
        return super().submit(work)

executors.BUILT_IN["threads"] = "__main__:Counted"
sys.exit(main())
"""
"""slop-code, with an executor that says which submission it is given before it begins."""


class Witness:
    def __init__(self, file, names):
        self._file, self._names, self._read = file, names, 0

    def heard(self):
        """The names of the submissions whose evaluation has begun since the last time."""
        begun = self._file.read_text().splitlines() if self._file.exists() else []
        new, self._read = begun[self._read :], len(begun)
        return [self._names[digest] for digest in new]


def make_runs(sums, group):
    """Three submissions each, all of them different; some are wrong, some crash."""
    chance, folders = random.Random(1), []
    for number in range(RUNS):
        mains = {}
        for checkpoint in sums.checkpoints:
            kind = chance.choice(["good", "good", "good", "wrong", "crashes"])
            mains[checkpoint] = sums.main(f"{number}/{checkpoint}", kind)
        folders.append(sums.run(f"{group}/{number}", mains=mains))
    return folders


def results(folders):
    """Every evaluation.json, by the name of its submission; one that is there is whole, or this raises."""
    return {
        f"{folder.name}/{path.parent.name}": CorrectnessResults.load(path)
        for folder in folders
        for path in folder.glob("sums/*/evaluation.json")
    }


def stamps(folders):
    """Which files they are: another writing of the same content is another file."""
    paths = [path for folder in folders for path in folder.glob("sums/*/evaluation.json")]
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def stored(cache):
    """The store's results by their submission's digest, with the identity of their file."""
    store = Store(cache)
    found = {}
    for path in store.root.glob("??/*"):
        if not path.name.startswith(".") and (parcel := store.get(path.name)) is not None:
            found[results_in(parcel).provenance.digests.submission] = path.stat().st_ino
    return found


def comparable(result):
    """All but times, and the addresses of objects in what pytest shows of a failure."""
    document = result.model_dump(mode="json", exclude={"duration", "phases"})
    for test in document["tests"]:
        del test["duration_ms"]
        test["failure_message"] = re.sub("0x[0-9a-f]+", "0x", test["failure_message"] or "")
    return document


class Ledger:
    """What was finished at the end of each start, and that the next one left it alone."""

    def __init__(self, folders, cache, names, witness):
        self.folders, self.cache, self.names, self.witness = folders, cache, names, witness
        self.done, self.kept, self.begun = {}, {}, 0

    def check(self):
        delivered = {f"{path.parents[2].name}/{path.parent.name}" for path in self.done}
        begun = self.witness.heard()
        assert len(begun) == len(set(begun))
        assert set(begun) & (delivered | {self.names[digest] for digest in self.kept}) == set()
        self.begun += len(begun)
        done, kept = stamps(self.folders), stored(self.cache)
        assert {path: done.get(path) for path in self.done} == self.done
        assert {digest: kept.get(digest) for digest in self.kept} == self.kept
        assert set(results(self.folders)) <= {self.names[digest] for digest in kept}
        self.done, self.kept = done, kept


@pytest.mark.timeout(600)
def test_twenty_kills(sums, fresh_cache, start, left_over, monkeypatch, tmp_path):
    seed = int(os.environ.get(SEED) or random.SystemRandom().getrandbits(32))
    print(f"{SEED}={seed} does the same again")
    chance, file = random.Random(seed), tmp_path / "witness"
    monkeypatch.setenv("WITNESS", str(file))

    def begin(cache, folders):
        return start(cache, *folders, "-j", WORKERS, program=(sys.executable, "-c", COUNTED))

    calm = make_runs(sums, "calm")
    evaluator = begin(fresh_cache("calm-cache"), calm)
    assert (evaluator.end(), len(stamps(calm))) == (1, RUNS * 3), evaluator.said
    assert most_at_a_time(path.parent for path in stamps(calm)) == WORKERS
    expected = results(calm)
    names = {result.provenance.digests.submission: name for name, result in expected.items()}
    witness = Witness(file, names)
    assert sorted(witness.heard()) == sorted(expected) == sorted(names.values())

    folders, cache, told, pids = make_runs(sums, "killed"), fresh_cache("cache"), "", []
    ledger = Ledger(folders, cache, names, witness)
    # How many results are there when it is killed, or a moment later; enough are left to do for the last start.
    for moment in sorted(chance.randrange(RUNS * 3 - 10) for _ in range(KILLS)):
        evaluator = begin(cache, folders)
        pids.append(evaluator.pid)
        new = max(0, moment - len(ledger.done))
        evaluator.until("] ", new) if new else evaluator.until("to evaluate", chance.randrange(2))
        assert not evaluator.ends_within(chance.uniform(0, 0.6)), evaluator.said
        evaluator.process.kill()
        assert evaluator.end() == -9
        told += evaluator.said
        ledger.check()

    last = begin(cache, folders)
    assert last.end() == 1
    ledger.check()

    found = results(folders)
    assert {name: comparable(found[name]) for name in found} == {name: comparable(expected[name]) for name in expected}
    assert ledger.begun <= RUNS * 3 + KILLS * WORKERS  # no kill cost more than what was running
    ended = re.findall(r"(?m)^\[.*\] (?:NOT )?PASSED (\S+) (?!.*\(stored\))", told + last.said)
    assert len(ended) == len(set(ended))
    for folder in folders:
        assert [line.state for line in read_lines(folder / "checkpoint_results.jsonl")] == ["evaluated"] * 3
    assert left_over(cache, *pids, last.pid) == []

    assert begin(cache, folders).end() == 1
    assert witness.heard() == []
