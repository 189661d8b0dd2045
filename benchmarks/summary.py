"""What it takes to know a finished run again: the index, every line, the summary.

For each number of tests a run of so many checkpoints is written: links to one result. One problem of it is read, what
the index then knows of it is said of all, and a process of its own makes lines and summary of it. Its time and its
memory must not follow the number of tests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.report import CorrectnessResults, Digests, Provenance, TestResult
from slop_code.runs.folder import OWN
from slop_code.runs.index import INDEX, Index
from slop_code.runs.lines import CheckpointLine, write_lines
from slop_code.runs.summary import summarise

CHECKPOINTS = 5


def result(tests: int) -> CorrectnessResults:
    return CorrectnessResults(
        problem_name="problem",
        checkpoint_name="checkpoint",
        duration=1.0,
        tests=[
            TestResult(
                id=f"test_behaviour[{number}]",
                checkpoint="checkpoint",
                group_type=GroupType.CORE,
                status="failed" if number % 7 == 0 else "passed",
                duration_ms=1.0,
                file_path="test_checkpoint.py",
                markers=[],
                failure_message="expected: 1\nfound: 2" if number % 7 == 0 else None,
            )
            for number in range(tests)
        ],
        pytest_exit_code=1,
        isolation={},
        phases={"tests": 1.0},
        provenance=Provenance(
            digests=Digests(submission="a" * 64, tests="b" * 64, config="c" * 64, environment="d" * 64),
            test_dependencies={},
            python="3.12.1",
            platform="linux",
            slop_code="0.1.0",
            command=[],
            pytest_args=[],
        ),
        evidence="json-report",
    )


def results_of(folder: Path, count: int) -> list[Path]:
    places = [(number // CHECKPOINTS, number % CHECKPOINTS + 1) for number in range(count)]
    return [folder / f"problem_{problem}" / f"checkpoint_{order}" / "evaluation.json" for problem, order in places]


def write_run(folder: Path, count: int, tests: int) -> None:
    first, *others = results_of(folder, count)
    result(tests).save(first)
    for path in others:
        path.parent.mkdir(parents=True)
        path.hardlink_to(first)


def know(folder: Path, count: int) -> None:
    """As the end of a run does it: every fact, then every line, then the summary."""
    index = Index.load(folder)
    paths = results_of(folder, count)
    facts = [index.facts(path) for path in paths]
    lines = []
    for number, (path, known) in enumerate(zip(paths, facts, strict=True)):
        assert known is not None
        order = number % CHECKPOINTS + 1
        earlier = index.regressions(path, paths[number - 1], f"checkpoint_{order - 1}") if order > 1 else None
        problem, checkpoint = path.parts[-3:-1]
        lines.append(
            CheckpointLine(
                **dict(known), run="run", problem=problem, checkpoint=checkpoint, order=order, regressions=earlier
            )
        )
    write_lines(folder / "checkpoint_results.jsonl", lines)
    summarise(lines, []).save(folder / "summary.json")
    index.save()


def spread(folder: Path, count: int) -> None:
    """The index of one problem, for all: their results are the same files."""
    path = folder / OWN / INDEX
    known = path.read_text()
    problems = range(-(-count // CHECKPOINTS))
    path.write_text("".join(known.replace("problem_0/", f"problem_{number}/") for number in problems))


def measure(folder: Path, count: int) -> dict[str, float]:
    """In a fresh process, without the time that Python takes to start and to import."""
    argv = [sys.executable, __file__, "--know", str(folder), "--checkpoints", str(count)]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def peak_mib() -> float:
    """Of this program alone: what getrusage says goes back to the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def know_and_tell(folder: Path, count: int) -> None:
    imported = peak_mib()
    began, began_cpu = time.perf_counter(), time.process_time()
    know(folder, count)
    taken, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    print(json.dumps({"seconds": taken, "cpu": cpu, "imported": imported, "peak": peak_mib()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=1000, help="results in the run (default: 1000)")
    parser.add_argument("--tests", type=int, nargs="+", default=[10, 10_000], help="tests in each (default: 10 10000)")
    parser.add_argument("--know", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    count = arguments.checkpoints
    if arguments.know:
        know_and_tell(arguments.know, count)
        return
    print(f"{'results':>8}{'tests in each':>15}{'index':>7}{'seconds':>9}{'CPU':>7}{'peak MiB':>10}{'imports':>9}")
    for tests in arguments.tests:
        with tempfile.TemporaryDirectory(prefix="slop-code-bench-") as name:
            folder = Path(name)
            write_run(folder, count, tests)
            for number, index in ((CHECKPOINTS, "no"), (count, "yes")):
                found = measure(folder, number)
                figures = f"{found['seconds']:9.2f}{found['cpu']:7.2f}{found['peak']:10.0f}{found['imported']:9.0f}"
                print(f"{number:8}{tests:15}{index:>7}{figures}", flush=True)
                if index == "no":
                    spread(folder, count)


if __name__ == "__main__":
    main()
