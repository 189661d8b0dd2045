"""Killed at any moment and started again, a run loses nothing and repeats nothing."""

from __future__ import annotations

import random
import re
import socket

import pytest

from slop_code.evaluation import CorrectnessResults
from slop_code.runs.lines import read_lines
from slop_code.runs.parcel import results_in
from slop_code.runs.store import Store

RUNS = 20
KILLS = 20
WORKERS = 2
TELLS = """
import os, socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as home:
    home.sendto({name!r}.encode(), ("127.0.0.1", int(os.environ["WITNESS"])))
"""
"""Each call of a submission says whose it is: what was evaluated is known without asking the evaluator."""


class Witness:
    def __init__(self, home):
        self._home = home

    def heard(self):
        """The names of those that ran since the last time."""
        names = set()
        while True:
            try:
                names.add(self._home.recv(1000, socket.MSG_DONTWAIT).decode())
            except BlockingIOError:
                return names


@pytest.fixture
def home():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        yield listening


def make_runs(sums, group, port):
    """Sixty submissions, each another one; some are wrong, some crash."""
    chance, folders = random.Random(1), []
    for number in range(RUNS):
        mains = {}
        for checkpoint in sums.checkpoints:
            name = f"{number}/{checkpoint}"
            kind = chance.choice(["good", "good", "good", "wrong", "crashes"])
            mains[checkpoint] = sums.main(name, kind, TELLS.format(name=name))
        environment = {"network": "full", "environment": {"env": {"WITNESS": str(port)}}}
        folders.append(sums.run(f"{group}/{number}", mains=mains, environment=environment))
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
        ran = self.witness.heard()
        assert ran & (delivered | {self.names[digest] for digest in self.kept}) == set()
        self.begun += len(ran)
        done, kept = stamps(self.folders), stored(self.cache)
        assert {path: done.get(path) for path in self.done} == self.done
        assert {digest: kept.get(digest) for digest in self.kept} == self.kept
        assert set(results(self.folders)) <= {self.names[digest] for digest in kept}
        self.done, self.kept = done, kept


@pytest.mark.timeout(900)
def test_twenty_kills(sums, fresh_cache, start, evaluated, left_over, home):
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    chance, witness, port = random.Random(seed), Witness(home), home.getsockname()[1]

    calm = make_runs(sums, "calm", port)
    status, said = evaluated(fresh_cache("calm-cache"), *calm, "-j", WORKERS)
    assert (status, len(stamps(calm))) == (1, RUNS * 3), said
    expected = results(calm)
    names = {result.provenance.digests.submission: name for name, result in expected.items()}
    assert witness.heard() == set(expected) == set(names.values())

    folders, cache, told, pids = make_runs(sums, "killed", port), fresh_cache("cache"), "", []
    ledger = Ledger(folders, cache, names, witness)
    # How many results are there when it is killed, or a moment later; enough are left to do for the last start.
    for moment in sorted(chance.randrange(RUNS * 3 - 10) for _ in range(KILLS)):
        evaluator = start(cache, *folders, "-j", WORKERS)
        pids.append(evaluator.pid)
        new = max(0, moment - len(ledger.done))
        evaluator.until("] ", new) if new else evaluator.until("to evaluate", chance.randrange(2))
        assert not evaluator.ends_within(chance.uniform(0, 0.6)), evaluator.said
        evaluator.process.kill()
        assert evaluator.end() == -9
        told += evaluator.said
        ledger.check()

    last = start(cache, *folders, "-j", WORKERS)
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

    assert evaluated(cache, *folders)[0] == 1
    assert witness.heard() == set()
