"""The harness can fail: evaluators that do what none may do are named by it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections import Counter

import pytest

from slop_code.evaluation import CorrectnessResults
from tests.faults import checks, damage
from tests.faults.ground import RESULT, Ground, comparable, digest_of
from tests.faults.harness import perform
from tests.faults.plan import DOCKER_KINDS, HOST_KINDS, PER_CAMPAIGN, Fault, plan
from tests.faults.site import Site
from tests.written_runs import write_run

KILL = Fault(0, "kill", whole=True, moment=1.0, chance=1)
PLANTED = """
import os, shutil, signal, subprocess, sys
place = sys.argv[-1] + "/sums/checkpoint_1/"
{deed}
os.kill(os.getpid(), signal.SIGKILL)
"""
RIGHT = 'shutil.copy(sys.argv[0] + ".right", place + "new"); os.replace(place + "new", place + "evaluation.json")'


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """The harness's look at one fault over an evaluator that does this and is killed then."""
    monkeypatch.setattr(checks, "GONE_S", 0.1)
    made = []

    def run(deed: str, *, finished: bool = False, fault: Fault = KILL) -> list[str]:
        script = tmp_path / "planted.py"
        script.write_text(PLANTED.format(deed=deed))
        site = Site(Ground(tmp_path, program=(sys.executable, str(script)), run_s=60, single_s=60), tmp_path / "site")
        made.append(site)
        (snapshot, *_) = site.snapshots()
        for name, marks in {"right": "+", "failing": "-"}.items():
            write_run(tmp_path / name, {"sums": [marks]}, submission=digest_of(snapshot))
            (tmp_path / name / "sums/checkpoint_1" / RESULT).rename(f"{script}.{name}")
        (tmp_path / "planted.py.digest").write_text(digest_of(snapshot))
        right = CorrectnessResults.load(tmp_path / "planted.py.right")
        site.ground.expected[site.made(snapshot)] = comparable(right)
        if finished:
            right.save(snapshot.parent / RESULT)
        return perform(site, fault)[1]

    yield run
    for site in made:
        for process in checks.concerned(site.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize(("deed", "finished"), [("pass", False), ("pass", True), (RIGHT, False)])
def test_nothing_is_broken(planted, deed, finished):
    assert planted(deed, finished=finished) == []


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ('open(place + "evaluation.json", "w").write("{\\"problem")', "not whole"),
        ('shutil.copy(sys.argv[0] + ".failing", place + "evaluation.json")', "another verdict than it earned"),
        (
            'subprocess.Popen(["sh", "-c", "sleep 60", os.environ["TMPDIR"] + "/"], start_new_session=True)',
            "is left: sh -c sleep 60",
        ),
        ("sys.exit(7)", "exit status 7"),
        ("raise KeyError", "a traceback"),
        ("sys.exit(3)", "exit status 3"),
    ],
)
def test_what_is_broken_is_named(planted, deed, words):
    assert any(words in text for text in planted(deed))


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (RIGHT, "was done again"),
        ('os.unlink(place + "evaluation.json")', "was lost"),
        ('open(os.environ["FAULTS_WITNESS"], "w").write(open(sys.argv[0] + ".digest").read())', "was begun again"),
    ],
)
def test_what_was_finished_is_left_alone(planted, deed, words):
    assert any(words in text for text in planted(deed, finished=True))


def test_the_same_seed_is_the_same_plan():
    assert plan(7, 50, HOST_KINDS) == plan(7, 50, HOST_KINDS) != plan(8, 50, HOST_KINDS)


@pytest.mark.parametrize("kinds", [HOST_KINDS, DOCKER_KINDS])
def test_every_kind_comes_equally_often(kinds):
    found = plan(3, 5 * len(kinds), kinds)
    assert Counter(fault.kind for one in found for fault in one.faults) == dict.fromkeys(kinds, 5)
    assert {len(one.faults) for one in found[:-1]} == {PER_CAMPAIGN}
    assert all(0 <= fault.moment < 1 for one in found for fault in one.faults)


@pytest.mark.parametrize("chance", range(9))
def test_damage_leaves_the_file_that_was_linked(tmp_path, chance):
    (tmp_path / "shared").write_text("shared")
    os.link(tmp_path / "shared", tmp_path / "own")
    damage.damage(tmp_path / "own", random.Random(chance))
    assert (tmp_path / "shared").read_text() == "shared"
    assert not (tmp_path / "own").exists() or (tmp_path / "own").read_text() != "shared"
