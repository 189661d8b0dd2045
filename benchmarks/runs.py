"""What whole runs cost: `make bench`.

Figures of one session on one machine; compare the ratios, not the seconds of two sessions. Every round has
submissions of its own, so that nothing comes from the store.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from slop_code.evaluation import CorrectnessResults, ProblemConfig, PytestRunner
from slop_code.execution.spec import load_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples/problems"
CONFTEST = ROOT / "tests/problems/sums/tests/conftest.py"
TINY_CHECKPOINTS = 10
TESTS = 120
GOAL = 0.6

MEASURED = """
import sys
from slop_code.cli.main import run

status = run(sys.argv[1:])
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
sys.exit(status)
"""
"""The command, and then the most kilobytes that its process held."""

MAIN = "import sys\nprint(*sys.argv[1:])\n"
TINY = "def test_says_it(run):\n    assert run('word').stdout == 'word\\n'\n"
MANY = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_says_it(run, number):
    for word in ("one", "two", "three"):
        assert run(word, str(number)).stdout == f"{{word}} {{number}}\\n"{wrong}
"""
"""Each calls the submission a few times, as those of the examples do."""

SALTS = itertools.count(time.time_ns())


@dataclass(frozen=True)
class Spent:
    seconds: float
    megabytes: float


def evaluate(folders: Sequence[Path], problems: Path, workers: int) -> Spent:
    """A `slop-code eval` from its start to its end; a run that is not wholly evaluated counts for nothing."""
    arguments = ["eval", *map(str, folders), "--problems-dir", str(problems), "-j", str(workers)]
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"slop-code eval exited with {done.returncode}\n{done.stderr}")
    return Spent(seconds, int(done.stdout.splitlines()[-1]) / 1024)


def write_problem(folder: Path, tests: Mapping[str, str], **keys: object) -> Path:
    names = [Path(name).stem.removeprefix("test_") for name in tests]
    settings = {
        "name": folder.name, "version": 1, "description": "Says what it is given.", "tags": [], "entry_file": "main.py",
        "checkpoints": {
            name: {"order": order, "include_prior_tests": False} for order, name in enumerate(names, start=1)
        },
        **keys,
    }  # fmt: skip
    (folder / "tests").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    shutil.copy(CONFTEST, folder / "tests")
    for name, text in tests.items():
        (folder / "tests" / name).write_text(text)
    return folder


def tiny_runs(folder: Path, count: int) -> list[Path]:
    """So many checkpoints, in runs of ten."""
    runs = [folder / str(number) for number in range(count // TINY_CHECKPOINTS)]
    for run, number in itertools.product(runs, range(1, TINY_CHECKPOINTS + 1)):
        snapshot = run / "tiny" / f"checkpoint_{number}" / "snapshot"
        snapshot.mkdir(parents=True)
        (snapshot / "main.py").write_text(f"{MAIN}# {next(SALTS)}\n")
    return runs


def larder_runs(folder: Path, count: int) -> list[Path]:
    runs = [folder / str(number) for number in range(count // 3)]
    for run, number in itertools.product(runs, (1, 2, 3)):
        snapshot = run / "larder" / f"checkpoint_{number}" / "snapshot"
        shutil.copytree(EXAMPLES / "larder/solutions" / f"checkpoint_{number}", snapshot)
        (snapshot / "notes.txt").write_text(f"{next(SALTS)}\n")
    return runs


def worker_table(work: Path, checkpoints: int, rounds: int) -> dict[str, float]:
    """The same checkpoints with one worker and with two, in turns."""
    evaluate(larder_runs(work / "warm", 3), EXAMPLES, 1)
    times: dict[int, list[float]] = {1: [], 2: []}
    for number, workers in itertools.product(range(rounds), times):
        runs = larder_runs(work / f"{number} with {workers}", checkpoints)
        times[workers].append(evaluate(runs, EXAMPLES, workers).seconds)
    one, two = (statistics.median(found) for found in times.values())
    return {"checkpoints": checkpoints, "one": one, "two": two, "ratio": two / one}


def size_table(work: Path, most: int, rounds: int) -> dict[str, dict[str, float]]:
    """What a checkpoint costs in a small run and in a large one, and what it costs to find that all is done."""
    names = [f"test_checkpoint_{number}.py" for number in range(1, TINY_CHECKPOINTS + 1)]
    problems = write_problem(work / "problems/tiny", dict.fromkeys(names, TINY)).parent
    evaluate(tiny_runs(work / "warm", 10), problems, 2)
    small = [tiny_runs(work / f"small {number}", 10) for number in range(rounds)]
    large = tiny_runs(work / "large", most)
    found = {}
    for count, sets in ((10, small), (most, [large])):
        spent = [evaluate(runs, problems, 2) for runs in sets]
        found[str(count)] = {
            "each": statistics.median(one.seconds for one in spent) / count,
            "megabytes": max(one.megabytes for one in spent),
        }
    for count in dict.fromkeys((10, most // 10, most)):
        again = [evaluate(large[: count // TINY_CHECKPOINTS], problems, 2) for _ in range(rounds)]
        found.setdefault(str(count), {}).update(
            again=statistics.median(one.seconds for one in again), again_megabytes=max(one.megabytes for one in again)
        )
    return found


def pair_table(work: Path, rounds: int) -> dict[str, float]:
    """One checkpoint of many independent tests with one pair of boxes and with two; the results have to be equal."""
    tests = {"test_checkpoint_1.py": MANY.format(count=TESTS, wrong=" + ' ' * (number % 17 == 0)")}
    submission = work / "submission"
    submission.mkdir(parents=True)
    (submission / "main.py").write_text(MAIN)
    runners = {}
    for pairs in (1, 2):
        folder = write_problem(work / f"pairs{pairs}", tests, parallel=pairs, parallel_by="test")
        problem = ProblemConfig.from_yaml(folder)
        runners[pairs] = PytestRunner(problem, problem.checkpoint(1), load_environment("local"), submission)
        runners[pairs].run()
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        statuses = []
        for pairs, runner in runners.items():
            began = time.perf_counter()
            statuses.append(statuses_of(runner.run()))
            times[pairs].append(time.perf_counter() - began)
        if statuses[0] != statuses[1]:
            raise SystemExit("with two pairs the results are others")
    one, two = (statistics.median(found) for found in times.values())
    return {"tests": TESTS, "one": one, "two": two, "ratio": two / one}


def statuses_of(results: CorrectnessResults) -> list[tuple[str, str, str]]:
    if results.infrastructure_failure or len(results.tests) != TESTS:
        raise SystemExit(results.infrastructure_failure_reason or f"{len(results.tests)} tests")
    return [(test.file_path, test.id, test.status) for test in results.tests]


def show_ratio(label: str, found: Mapping[str, float]) -> None:
    figures = f"{found['one']:9.2f}{found['two']:9.2f}{found['ratio']:8.3f}"
    print(f"{label:44}{figures}  (goal: {GOAL} on two cores)", flush=True)


def show_sizes(sizes: Mapping[str, Mapping[str, float]]) -> None:
    print(f"\n{'tiny checkpoints, two workers':32}{'ms each':>10}{'MB':>8}{'again, s':>10}{'MB':>8}")
    for count, found in sorted(sizes.items(), key=lambda item: int(item[0])):
        each = f"{found['each'] * 1000:10.1f}{found['megabytes']:8.0f}" if "each" in found else f"{'':18}"
        print(f"{count:32}{each}{found['again']:10.2f}{found['again_megabytes']:8.0f}")
    small, *_, large = (found["each"] for found in sizes.values() if "each" in found)
    print(f"{'the largest against the smallest':32}{large / small:10.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer checkpoints and rounds: a look, not a measurement")
    parser.add_argument("--json", type=Path, help="where the figures go as JSON")
    arguments = parser.parse_args()
    checkpoints, most, rounds = (6, 100, 1) if arguments.quick else (24, 1000, 3)
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
    )
    print(f"machine: {machine}, median of {rounds}\n")
    print(f"{'':44}{'one':>9}{'two':>9}{'ratio':>8}", flush=True)
    with tempfile.TemporaryDirectory(prefix="slop-code-bench-") as folder:
        pairs = pair_table(Path(folder) / "pairs", rounds)
        show_ratio(f"{TESTS} tests of a checkpoint, pairs, seconds", pairs)
        workers = worker_table(Path(folder) / "workers", checkpoints, rounds)
        show_ratio(f"{checkpoints} checkpoints of larder, workers, seconds", workers)
        sizes = size_table(Path(folder) / "sizes", most, rounds)
        show_sizes(sizes)
    if arguments.json:
        figures = {"machine": machine, "workers": workers, "sizes": sizes, "pairs": pairs}
        arguments.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
