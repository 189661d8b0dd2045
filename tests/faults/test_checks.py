"""Checks of the harness between the faults: left-overs, lines, damage."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from slop_code.evaluation import CorrectnessResults
from slop_code.evaluation.report import TestAttempt
from slop_code.evaluation.usage.resources import Usage
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine
from tests.factories import write_run
from tests.faults import checks, damage
from tests.faults.baseline import PROBLEM, RESULT, Baseline, comparable
from tests.faults.campaign_folder import CampaignFolder
from tests.faults.plan import Fault

if TYPE_CHECKING:
    from pathlib import Path

KEY = "ab" * 32
REPORTS = {
    "stream.jsonl": '{"kind":"result","nodeid":"a","status":"passed"}',
    "ctrf-report.json": '{"results":{"tests":[{"name":"a","status":"passed"}]}}',
    "pytest-report.json": '{"tests":[{"nodeid":"a","outcome":"passed"}]}',
}
"""Without anything that a bit of could change and nothing else."""


MEASURED = Usage(**dict.fromkeys(Usage.model_fields, 1))


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"duration_ms": 7.0}, True),
        ({"usage": MEASURED}, True),
        ({"attempts": True}, True),
        ({"status": "failed"}, False),
        ({"failure_message": "other"}, False),
    ],
)
def test_verdicts_are_compared_without_measurements(tmp_path, changed, same):
    write_run(tmp_path, {"sums": ["+"]})
    results = CorrectnessResults.load(tmp_path / "sums/checkpoint_1" / RESULT)
    (test, *others) = results.tests
    if "attempts" in changed:
        changed = {"attempts": [TestAttempt.of(test)]}
    other = results.model_copy(update={"tests": [test.model_copy(update=changed), *others]})
    assert (comparable(other) == comparable(results)) is same


@pytest.mark.parametrize("name", ["uv/.tmpX", f"results/ab/.{KEY}.0", f"results/ab/.{KEY}.lock"])
@pytest.mark.parametrize("old", [True, False])
def test_only_new_temporary_files_may_be_left(tmp_path, name, old):
    campaign = finished_campaign(tmp_path)
    path = campaign.cache.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    if old:
        os.utime(path, (1, 1))
    found = list(checks.left_over(campaign))
    assert [text.partition(":")[0] for text in found] == (["an old temporary file"] if old else [])
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cache/sessions/filler", "a session: filler"),
        ("cache/tests/.tmp", "an unfinished build"),
        ("tmp/x", "in the temporary folder: x"),
        ("runs/0/0/x", "in 0: x"),
    ],
)
def test_what_is_left_over_is_named(tmp_path, name, words):
    campaign = finished_campaign(tmp_path)
    (campaign.folder / name).mkdir(parents=True)
    assert any(words in text for text in checks.left_over(campaign))


def finished_campaign(folder: Path) -> CampaignFolder:
    campaign = CampaignFolder(Baseline(folder), folder / "site")
    for folder in (campaign.runs[0], campaign.runs[0] / PROBLEM):
        (folder / ".slop-code").mkdir()
    assert list(checks.left_over(campaign)) == []
    return campaign


@pytest.mark.parametrize(
    ("lines_of", "right"),
    [("123", True), ("12", False), ("1233", False), ("122", False)],
)
def test_each_checkpoint_has_one_line(tmp_path, lines_of, right):
    campaign = CampaignFolder(Baseline(tmp_path), tmp_path / "site")
    write_run(tmp_path / "made", {"sums": ["+"] * 3})
    lines = {}
    for number in "123":
        results = CorrectnessResults.load(tmp_path / f"made/sums/checkpoint_{number}" / RESULT)
        keys = {"run": "0", "problem": "sums", "checkpoint": f"checkpoint_{number}", "order": int(number)}
        lines[number] = CheckpointLine(**keys, **CheckpointFacts.of(results).model_dump()).model_dump_json() + "\n"
    (campaign.runs[0] / "checkpoint_results.jsonl").write_text("".join(lines[number] for number in lines_of))
    assert (list(checks.wrong_lines(campaign)) == []) is right


@pytest.mark.parametrize("chance", range(9))
def test_damage_leaves_the_file_that_was_linked(tmp_path, chance):
    (tmp_path / "shared").write_text("shared")
    os.link(tmp_path / "shared", tmp_path / "own")
    damage.damage(tmp_path / "own", random.Random(chance))
    assert (tmp_path / "shared").read_text() == "shared"
    assert not (tmp_path / "own").exists() or (tmp_path / "own").read_text() != "shared"


@pytest.mark.parametrize("chance", range(9))
@pytest.mark.parametrize("objects", [True, False])
def test_a_verify_that_does_not_object_is_named(tmp_path, chance, objects):
    campaign = CampaignFolder(Baseline(tmp_path, program=("false" if objects else "true",)), tmp_path / "site")
    (snapshot, *_) = campaign.snapshots()
    (snapshot.parent / ".scbench").mkdir()
    for name, content in REPORTS.items():
        (snapshot.parent / ".scbench" / name).write_text(content)
    write_run(tmp_path / "made", {"sums": ["+"]})
    (tmp_path / "made/sums/checkpoint_1" / RESULT).rename(snapshot.parent / RESULT)
    found = damage.of_raw(campaign, Fault(0, "raw", whole=True, moment=0.5, chance=chance))
    assert ["verify has no objection" in text for text in found.breaks] == ([] if objects else [True])
