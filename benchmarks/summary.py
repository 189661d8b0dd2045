"""What it takes to look at a finished run again: `slop-code eval` where everything is up to date.

A run is written as an evaluation would leave it: small snapshots, results whose digests are right. `slop-code merge`
makes its index; then the command is measured as a process of its own, which checks every snapshot against its result
and writes the summary anew. Its time and its memory must not follow the number of tests.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.provenance import evaluation_version
from slop_code.evaluation.report import CorrectnessResults, Digests, Provenance, TestResult
from slop_code.runs.discover import RESULT, discover
from slop_code.runs.folder import OWN
from slop_code.runs.index import INDEX, _stamp, sealed
from slop_code.runs.plan import Expected

CHECKPOINTS = 5
FEW = 10
ROUNDS = 5


def result(problem: str, checkpoint: str, digests: Digests, tests: int) -> CorrectnessResults:
    return CorrectnessResults(
        problem_name=problem,
        checkpoint_name=checkpoint,
        duration=1.0,
        tests=[
            TestResult(
                id=f"test_behaviour[{number}]",
                checkpoint="checkpoint_1",
                group_type=GroupType.CORE,
                status="passed",
                duration_ms=1.0,
                file_path="test_checkpoint_1.py",
                markers=[],
            )
            for number in range(tests)
        ],
        pytest_exit_code=0,
        isolation={},
        phases={"tests": 1.0},
        provenance=Provenance(
            digests=digests,
            evaluation_version=evaluation_version(),
            test_dependencies={},
            python="3.12.1",
            platform="linux",
            slop_code="0.1.0",
            command=[],
            pytest_args=[],
        ),
        evidence="json-report",
    )


def write_run(work: Path, count: int) -> None:
    names = [f"checkpoint_{number}" for number in range(1, CHECKPOINTS + 1)]
    for number in range(count // CHECKPOINTS):
        problem = work / f"problems/problem_{number}"
        config = {"name": problem.name, "version": 1, "description": "", "tags": [], "entry_file": "main.py"}
        (problem / "tests").mkdir(parents=True)
        (problem / "config.yaml").write_text(yaml.safe_dump({**config, "checkpoints": {name: {} for name in names}}))
        for name in names:
            (problem / f"tests/test_{name}.py").write_text("def test_one():\n    pass\n")
            snapshot = work / f"run/{problem.name}/{name}/snapshot"
            snapshot.mkdir(parents=True)
            (snapshot / "main.py").write_text(f"print({number}, {name!r})\n")


def write_results(work: Path, tests: int) -> None:
    """The tests are the same in all, and written out once."""
    expected, text = Expected(), ""
    for submission in discover([work / "run"], problems_dir=work / "problems")[0].submissions:
        digests = expected.digests(submission)
        document = result(submission.problem.name, submission.checkpoint.name, digests, FEW).model_dump(mode="json")
        many = {name: {**document[name], "Core": tests} for name in ("pass_counts", "total_counts")}
        text = text or json.dumps(result("", "", digests, tests).model_dump(mode="json")["tests"])
        whole = json.dumps({**document, **many, "tests": "@"}).replace('"@"', text)
        (submission.output / RESULT).write_text(whole)


def move_index(run: Path) -> None:
    """The index of the few tests, said of the many: reading so much once would take most of the time."""
    lines = [json.loads(line.partition(" ")[2]) for line in (run / OWN / INDEX).read_text().splitlines()]
    stamps = {line["stamp"]: _stamp(run / line["path"]) for line in lines}
    for line in lines:
        line["stamp"] = stamps[line["stamp"]]
        if line["compared"]:
            line["compared"]["earlier"] = stamps[line["compared"]["earlier"]]
    (run / OWN / INDEX).write_text("".join(sealed(json.dumps(line) + "\n") for line in lines))


def command(work: Path, name: str) -> None:
    argv = [sys.executable, "-m", "slop_code", name, str(work / "run"), "--problems-dir", str(work / "problems")]
    environment = {**os.environ, "SCBENCH_CACHE_DIR": str(work / "cache")}
    subprocess.run([*argv, "--json"], env=environment, check=True, stdout=subprocess.DEVNULL)


def measured(work: Path) -> tuple[float, float]:
    """Seconds, and the peak in MiB of a command that a process of its own started: that of ours would count, too."""
    code = (
        "import json, resource, subprocess, sys, time; began = time.perf_counter();"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); taken = time.perf_counter() - began;"
        "print(json.dumps([taken, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]))"
    )
    argv = [sys.executable, "-m", "slop_code", "eval", str(work / "run"), "--problems-dir", str(work / "problems")]
    environment = {**os.environ, "SCBENCH_CACHE_DIR": str(work / "cache")}
    found = subprocess.check_output([sys.executable, "-c", code, *argv], env=environment, stderr=subprocess.DEVNULL)
    seconds, peak = json.loads(found)
    return seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=1000, help="in the run (default: 1000)")
    parser.add_argument("--tests", type=int, nargs="+", default=[FEW, 10_000], help="in each (default: 10 10000)")
    parser.add_argument("--json", type=Path, help="where the figures go as JSON")
    arguments = parser.parse_args()
    found = {}
    print(f"a finished run is looked at again, median of {ROUNDS}")
    print(f"{'checkpoints':>12}{'tests in each':>15}{'seconds':>9}{'peak MiB':>10}")
    with tempfile.TemporaryDirectory(prefix="slop-code-bench-") as name:
        work = Path(name)
        write_run(work, arguments.checkpoints)
        write_results(work, FEW)
        command(work, "merge")
        for tests in arguments.tests:
            write_results(work, tests)
            move_index(work / "run")
            rounds = [measured(work) for _ in range(ROUNDS)]
            seconds, peak = (statistics.median(values) for values in zip(*rounds, strict=True))
            found[tests] = {"seconds": seconds, "peak_mib": peak}
            print(f"{arguments.checkpoints:12}{tests:15}{seconds:9.2f}{peak:10.0f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"checkpoints": arguments.checkpoints, "tests": found}, indent=2))


if __name__ == "__main__":
    main()
