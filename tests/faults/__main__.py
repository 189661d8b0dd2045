"""`python -m tests.faults --faults 500 --seed 7`: faults at random moments, and whether anything is broken by them."""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults import daemon
from tests.faults.harness import Record, prepared_baseline, run_campaign
from tests.faults.plan import DISKS, DOCKER_KINDS, HOST_KINDS, PER_CAMPAIGN, Campaign, plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.baseline import Baseline

APART = "FAULTS_APART"
"""Set once this process has its mounts for itself."""
COLUMNS = ("finished", "stopped", "no verdict", "refused", "broken")


def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    apart = mounts_apart(argv)
    kinds, missing = available(options, disks=apart)
    for reason in missing:
        print(f"left out: {reason}", flush=True)
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    campaigns = [one for one in plan(seed, options.faults, kinds) if options.campaign in (None, one.number)]
    print(f"seed {seed}: {sum(len(one.faults) for one in campaigns)} faults in {options.sandbox}", flush=True)
    began = time.monotonic()
    with prepared_baseline(options.sandbox) as baseline:
        again = repeat(options, seed)
        records = perform_all(baseline, campaigns, options, again, disks=apart)
    took = time.monotonic() - began
    print(table(records))
    broken = [record for record in records if record.breaks]
    print(f"seed {seed}: {len(records)} faults in {took:.0f} s, {len(broken)} broke the property", flush=True)
    if options.json:
        document = {
            "seed": seed,
            "sandbox": options.sandbox,
            "seconds": took,
            "faults": [asdict(one) for one in records],
        }
        Path(options.json).write_text(json.dumps(document, indent=1))
    return 1 if broken else 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=500, help="how many (default: 500)")
    parser.add_argument("--seed", type=int, help="which ones, and when (default: by chance)")
    kinds = list(dict.fromkeys([*HOST_KINDS, *DOCKER_KINDS]))
    parser.add_argument("--kinds", nargs="+", metavar="KIND", choices=kinds, help=f"of {', '.join(kinds)}")
    parser.add_argument("--sandbox", choices=("bubblewrap", "none", "docker"), default="bubblewrap")
    parser.add_argument(
        "--campaign", type=int, metavar="N", help=f"only these {PER_CAMPAIGN}, as they come with the seed"
    )
    parser.add_argument("-j", "--jobs", type=int, default=2, help="campaigns side by side (default: 2)")
    parser.add_argument("--json", metavar="FILE", help="write every fault and what became of it")
    return parser.parse_args(argv)


def mounts_apart(argv: Sequence[str]) -> bool:
    """Start again with mounts that nobody else sees and that end with us; False where that cannot be had."""
    if os.environ.get(APART):
        return os.environ[APART] == "yes"
    unshare = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    can = shutil.which("unshare") and subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL).returncode == 0
    if not can:
        return False
    os.environ[APART] = "yes"
    os.execvp(unshare[0], [*unshare, sys.executable, "-m", "tests.faults", *argv])
    return None


def available(options: argparse.Namespace, *, disks: bool) -> tuple[list[str], list[str]]:
    """The kinds that can be performed here, and why others cannot."""
    wanted = list(DOCKER_KINDS if options.sandbox == "docker" else HOST_KINDS)
    wanted = [kind for kind in wanted if options.kinds is None or kind in options.kinds]
    missing: dict[str, str] = {}
    if not disks:
        missing.update(dict.fromkeys(DISKS, "no mounts of its own can be had here"))
    if "daemon-killed" in wanted and daemon.private_folder() is None:
        missing["daemon-killed"] = "the daemon was not started for this alone"
    found = [kind for kind in wanted if kind not in missing]
    if not found:
        raise SystemExit(f"none of these kinds can be performed in {options.sandbox}")
    return found, [f"{kind}, as {missing[kind]}" for kind in wanted if kind in missing]


def repeat(options: argparse.Namespace, seed: int) -> str:
    """What performs one campaign again; its number is still to come."""
    kinds = ["--kinds", *options.kinds] if options.kinds else []
    words = ["python", "-m", "tests.faults", "--faults", str(options.faults), "--seed", str(seed)]
    return shlex.join([*words, "--sandbox", options.sandbox, *kinds, "--campaign"])


def perform_all(
    baseline: Baseline, campaigns: Sequence[Campaign], options: argparse.Namespace, again: str, *, disks: bool
) -> list[Record]:
    records: list[Record] = []

    def perform(campaign: Campaign) -> None:
        for record in run_campaign(baseline, campaign, disks=disks and baseline.sandbox != "docker"):
            records.append(record)
            fault = record.fault
            where = f"{fault.kind} over a {fault.over} at {fault.moment:.2f}"
            print(
                f"[{len(records)}] {campaign.number}.{fault.number} {where}: {record.outcome}, {record.seconds:.1f} s",
                flush=True,
            )
            for text in record.breaks:
                print(f"BROKEN: {text}", flush=True)
            if record.breaks:
                print(f"again: {again} {campaign.number}", flush=True)

    with ThreadPoolExecutor(1 if baseline.sandbox == "docker" else options.jobs) as pool:
        for future in [pool.submit(perform, campaign) for campaign in campaigns]:
            future.result()
    return records


def table(records: Sequence[Record]) -> str:
    counts: dict[str, Counter[str]] = {}
    for record in records:
        counts.setdefault(f"{record.fault.kind} ({record.fault.over})", Counter())[record.outcome] += 1
    lines = [f"{'fault':28}{'count':>7}" + "".join(f"{name:>12}" for name in COLUMNS)]
    for name, found in sorted(counts.items()):
        lines.append(f"{name:28}{found.total():7}" + "".join(f"{found[column] or '':>12}" for column in COLUMNS))
    total = sum(counts.values(), Counter())
    lines.append(f"{'all':28}{total.total():7}" + "".join(f"{total[column] or '':>12}" for column in COLUMNS))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
