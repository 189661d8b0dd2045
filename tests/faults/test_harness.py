"""The harness can fail: evaluators that do what none may do are named by it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from slop_code.evaluation import CorrectnessResults
from slop_code.runs.result_archive import pack_result
from slop_code.runs.result_cache import ResultCache
from tests.factories import write_run
from tests.faults import checks
from tests.faults.baseline import RESULT, Baseline, comparable, digest_of
from tests.faults.campaign_folder import CampaignFolder
from tests.faults.harness import perform
from tests.faults.plan import DOCKER_KINDS, HOST_KINDS, PER_CAMPAIGN, SIGNALS, Fault, plan
from tests.process_checks import processes_in

ROOT = Path(__file__).parents[2]
KILL = Fault(0, "kill", whole=True, moment=1.0, chance=1)
PLANTED = """
import os, shutil, signal, subprocess, sys
place = sys.argv[-1] + "/sums/checkpoint_1/"
{deed}
os.kill(os.getpid(), signal.SIGKILL)
"""
KEY = "ab" * 32
BEGIN = 'open(os.environ["FAULTS_RECORD"], "a").write("".join(f"begun 1 0 {{one}}\\n" for one in {begun}))'
DIGEST = 'open(sys.argv[0] + ".digest").read()'
ENTRY = f'entry = os.environ["SCBENCH_CACHE_DIR"] + "/results/{KEY[:2]}/{KEY}"; '
TELL = 'print("[1/3] PASSED 0/sums/checkpoint_1 1/1 0.5 s", flush=True); '
RIGHT = 'shutil.copy(sys.argv[0] + ".right", place + "new"); os.replace(place + "new", place + "evaluation.json")'


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """The harness's look at one fault over an evaluator that does this and is killed then.

    The first submission is `finished` before, or its result only `stored`.
    """
    monkeypatch.setattr(checks, "GONE_S", 0.1)
    made = []

    def run(deed: str, *, finished: bool = False, stored: bool = False, fault: Fault = KILL) -> list[str]:
        script = tmp_path / "planted.py"
        script.write_text(PLANTED.format(deed=deed))
        campaign = CampaignFolder(
            Baseline(tmp_path, program=(sys.executable, str(script)), run_s=60, single_s=60), tmp_path / "site"
        )
        made.append(campaign)
        (snapshot, *_) = campaign.snapshots()
        for name, marks in {"right": "+", "failing": "-"}.items():
            write_run(tmp_path / name, {"sums": [marks]}, submission=digest_of(snapshot))
            (tmp_path / name / "sums/checkpoint_1" / RESULT).rename(f"{script}.{name}")
        (tmp_path / "planted.py.digest").write_text(digest_of(snapshot))
        right = CorrectnessResults.load(tmp_path / "planted.py.right")
        campaign.baseline.expected[campaign.submission_kind(snapshot)] = comparable(right)
        campaign.baseline.tests["checkpoint_1"] = right.provenance.digests.tests
        if finished:
            right.save(snapshot.parent / RESULT)
        if stored:
            right.save(tmp_path / "archive" / RESULT)
            ResultCache(campaign.cache).put(KEY, pack_result(tmp_path / "archive"))
        return perform(campaign, fault)[1]

    yield run
    for campaign in made:
        for process in processes_in(campaign.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize(
    ("deed", "before"),
    [
        ("pass", {}),
        ("pass", {"finished": True, "stored": True}),
        (RIGHT, {"stored": True}),
        (TELL + RIGHT, {}),
        (BEGIN.format(begun=f"[{DIGEST}, 'other']"), {}),
    ],
    ids=["nothing", "left alone", "delivered", "told", "begun"],
)
def test_an_invariant_that_holds_is_not_reported(planted, deed, before):
    assert planted(deed, **before) == []


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ('open(place + "evaluation.json", "w").write("{\\"problem")', "not whole"),
        ('shutil.copy(sys.argv[0] + ".failing", place + "evaluation.json")', "another verdict than it earned"),
        (
            # Two commands: some shells replace themselves by the last one, and with them the folder's name.
            # Its line shows that it is the shell: a process that is being started has no words yet.
            'words = ["sh", "-c", "echo; sleep 60; :", os.environ["TMPDIR"] + "/"]\n'
            "subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True).stdout.readline()",
            "is left: sh -c echo; sleep 60; :",
        ),
        ("sys.exit(7)", "exit status 7"),
        ("raise KeyError", "a traceback"),
        ("sys.exit(3)", "exit status 3"),
        (BEGIN.format(begun=f"[{DIGEST}] * 3"), "was begun 3 times in one start"),
        (BEGIN.format(begun="'abc'"), "3 evaluations were begun and are lost"),
        (TELL * 2, "0/sums/checkpoint_1 was printed 2 times"),
    ],
)
def test_what_is_broken_is_named(planted, deed, words):
    found = planted(deed)
    assert any(words in text for text in found), found


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (RIGHT, "was done again"),
        ('os.unlink(place + "evaluation.json")', "was lost"),
        (BEGIN.format(begun=f"[{DIGEST}]"), "0/sums/checkpoint_1 was finished, and was begun again"),
        (TELL, "0/sums/checkpoint_1 was finished, and was printed again"),
    ],
)
def test_what_was_finished_is_left_alone(planted, deed, words):
    found = planted(deed, finished=True)
    assert any(words in text for text in found), found


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (BEGIN.format(begun=f"[{DIGEST}]"), "one that was stored was finished, and was begun again"),
        (ENTRY + 'shutil.copy(entry, entry + "0"); os.replace(entry + "0", entry)', "was written again"),
        (ENTRY + "os.unlink(entry)", "was lost"),
    ],
)
def test_what_was_stored_is_left_alone(planted, deed, words):
    assert any(words in text for text in planted(deed, stored=True))


def test_the_same_seed_is_the_same_plan():
    assert plan(7, 50, HOST_KINDS) == plan(7, 50, HOST_KINDS) != plan(8, 50, HOST_KINDS)


ON_HOST, IN_DOCKER = "--faults 40", "--sandbox docker --faults 3"


@pytest.mark.parametrize(
    ("kinds", "commands"),
    [
        ((), [ON_HOST, IN_DOCKER]),
        (("kill", "disk-run"), [f"{ON_HOST} --kinds kill disk-run", f"{IN_DOCKER} --kinds kill"]),
        (("disk-run",), [f"{ON_HOST} --kinds disk-run"]),
        (("daemon-hidden",), [f"{IN_DOCKER} --kinds daemon-hidden"]),
        (HOST_KINDS, [f"{ON_HOST} --kinds {' '.join(HOST_KINDS)}", f"{IN_DOCKER} --kinds {' '.join(SIGNALS)}"]),
        (DOCKER_KINDS, [f"{ON_HOST} --kinds {' '.join(SIGNALS)}", f"{IN_DOCKER} --kinds {' '.join(DOCKER_KINDS)}"]),
    ],
    ids=["all", "both", "host", "docker", "every host", "every docker"],
)
def test_make_asks_each_sandbox_for_the_kinds_that_it_has(kinds, commands):
    made = ["make", "-n", "faults", "FAULTS=40", "SEED=7", f"KINDS={' '.join(kinds)}"]
    said = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    words = " -m tests.faults --seed 7 "
    assert [line.partition(words)[2] for line in said.splitlines() if words in line] == commands


@pytest.mark.parametrize("kinds", [HOST_KINDS, DOCKER_KINDS])
def test_every_kind_comes_equally_often(kinds):
    found = plan(3, 5 * len(kinds), kinds)
    assert Counter(fault.kind for one in found for fault in one.faults) == dict.fromkeys(kinds, 5)
    assert {len(one.faults) for one in found[:-1]} == {PER_CAMPAIGN}
    assert all(0 <= fault.moment < 1 for one in found for fault in one.faults)
