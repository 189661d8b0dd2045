"""Files that are cut short, flipped or gone: of the cache, and of what a run has written."""

from __future__ import annotations

import contextlib
import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation import CorrectnessResults
from tests.faults import checks, repeated_work
from tests.faults.baseline import RESULT
from tests.faults.campaign_folder import own
from tests.faults.ending import NO_VERDICT, ending, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.campaign_folder import CampaignFolder
    from tests.faults.ending import Ending
    from tests.faults.plan import Fault

PARTS = ("tests", "tools", "subjects", "results", "uv/archive-v0")
"""The last: the wheels, and the judge's own environments that are made of them."""
EVIDENCE = ("stream.jsonl", "ctrf-report.json", "pytest-report.json")
SUMMARIES = ("checkpoint_results.jsonl", "summary.json")
REMEMBERED = ("index", "inputs", "origin.json", "lock")


def damage(path: Path, chance: random.Random) -> str:
    """What was done to it."""
    how = chance.choice(["cut short", "flipped", "gone"])
    own(path)
    with contextlib.suppress(FileNotFoundError):
        content = bytearray(path.read_bytes())
        if how == "gone" or not content:
            path.unlink()
        elif how == "cut short":
            os.truncate(path, chance.randrange(len(content)))
        else:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
    return how


def of_cache(campaign: CampaignFolder, fault: Fault) -> Ending:
    """Of what is made once, or of the stored results."""
    chance = random.Random(fault.chance)
    evaluator = None
    if fault.kind == "cache-during":
        evaluator = campaign.start(whole=fault.whole)
        until(campaign, fault, evaluator)
    parts = [campaign.cache.root / part for part in PARTS]
    files = [sorted(kept_in(part)) for part in parts]
    path = chance.choice(chance.choice([found for found in files if found]))
    how = damage(path, chance)
    campaign.spoilt.add(path)
    evaluator = evaluator or campaign.start(whole=fault.whole)
    return _noted(
        ending(campaign, fault, evaluator, NO_VERDICT), f"({path.relative_to(campaign.cache.root)} was {how})"
    )


def _noted(found: Ending, note: str) -> Ending:
    return replace(found, said=f"{found.said}\n{note}")


def kept_in(part: Path) -> Iterator[Path]:
    """Files of entries; builds that are under way, and locks, are not kept. What goes meanwhile is left out."""
    for folder, folders, names in os.walk(part):
        if Path(folder) == part:
            folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink() and not name.endswith(".lock"):
                yield path


def of_results(campaign: CampaignFolder, fault: Fault) -> Ending:
    """A damaged evaluation.json counts as no result; the command says so, and makes it again. `verify` names another
    verdict.

    What it says of versions and messages is believed: no verdict follows from it.
    """
    chance = random.Random(fault.chance)
    path = chance.choice(_finished(campaign))
    whole = decided(CorrectnessResults.load(path))
    how = damage(path, chance)
    campaign.touched.add(path)
    campaign.damaged.add(path)
    breaks = []
    if path.exists() and not _loads(path):
        words = campaign.baseline.eval_words(campaign.folder / "problems", *campaign.runs, more=["--dry-run"])
        said = campaign.calm(*words[len(campaign.baseline.program) :])[1]
        if str(path) not in said.replace("\n", ""):
            breaks.append(f"a damaged {path} is not named in the plan:\n{said}")
    evaluator = campaign.start(whole=True)
    found = ending(campaign, fault, evaluator)
    if not _loads(path):
        breaks.append(f"a damaged {path.parent.name}/{RESULT} ({how}) was not made again")
    elif list(checks.wrong(campaign, RESULT, CorrectnessResults.load(path))):
        status, said = campaign.calm("verify", str(path.parent))
        if status == 0 and decided(CorrectnessResults.load(path)) != whole:
            breaks.append(f"a damaged {path.parent.name}/{RESULT} ({how}) is believed, and verify has no objection")
        path.unlink()
    else:
        campaign.damaged.discard(path)
    return _noted(replace(found, breaks=tuple(breaks)), f"({path} was {how})")


def decided(result: CorrectnessResults) -> object:
    """What a verdict is made of."""
    tests = [(test.file_path, test.id, test.status, test.group_type) for test in result.tests]
    return tests, result.passed, result.infrastructure_failure_reason


def of_raw(campaign: CampaignFolder, fault: Fault) -> Ending:
    """A raw report that is damaged does not change a verdict; `verify` names one that is another account of the tests.

    What else is in there (times, versions, messages that the result has from elsewhere) nothing follows from.
    """
    chance = random.Random(fault.chance)
    result = chance.choice(_finished(campaign))
    path = result.parent / ".scbench" / chance.choice(EVIDENCE)
    whole = path.read_bytes()
    how = damage(path, chance)
    campaign.touched.add(result)
    status, said = campaign.calm("verify", str(result.parent))
    breaks = []
    left = path.read_bytes() if path.exists() else b""
    if status == 0 and (how != "flipped" or account(path.name, left) != account(path.name, whole)):
        breaks.append(f"{path.name} is {how}, and verify has no objection:\n{said}")
    if checks.broke(said):
        breaks.append(f"verify breaks on {path.name}, which is {how}:\n{said}")
    result.unlink()
    evaluator = campaign.start(whole=True)
    found = ending(campaign, fault, evaluator)
    return _noted(replace(found, breaks=tuple(breaks)), f"({path} was {how})")


def account(name: str, content: bytes) -> list[tuple[str, str]] | None:
    """Every test and what became of it, as a raw report has it; None where it cannot be read."""
    try:
        if name == "stream.jsonl":
            lines = [json.loads(line) for line in content.splitlines()]
            return [(line["nodeid"], line["status"]) for line in lines if line["kind"] == "result"]
        document = json.loads(content)
        if name == "ctrf-report.json":
            return [(test["name"], test["status"]) for test in document["results"]["tests"]]
        return [(test["nodeid"], test["outcome"]) for test in document["tests"]]
    except (ValueError, LookupError, TypeError):
        return None


def of_summary(campaign: CampaignFolder, fault: Fault) -> Ending:
    chance = random.Random(fault.chance)
    _finished(campaign)
    run = chance.choice(campaign.runs)
    names = SUMMARIES if fault.kind == "summary" else [f".slop-code/{name}" for name in REMEMBERED]
    path = run / chance.choice(names)
    how = damage(path, chance) if path.exists() else "not there"
    return _noted(ending(campaign, fault, campaign.start(whole=True)), f"({path} was {how})")


def _finished(campaign: CampaignFolder) -> list[Path]:
    """Results with a verdict; where there is none yet, the run is brought to its end."""
    if not repeated_work.stamps(campaign):
        campaign.start(whole=True).end()
    repeated_work.note(campaign)
    return sorted(campaign.before)


def _loads(path: Path) -> bool:
    try:
        CorrectnessResults.load(path)
    except ResultError:
        return False
    return True
