"""(d) A run that is up to date: every snapshot is checked against its result, and the summary is written again.

The runs are generated: small snapshots, and results with the right digests. `slop-code merge` makes their index. Time
and memory must not grow with the number of tests.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

import yaml

from benchmarks.measuring import ours
from benchmarks.table import Part, rows
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.report import CorrectnessResults, Digests, Provenance, TestResult
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.runs.discover import discover
from slop_code.runs.folders.run_lock import STATE_DIR
from slop_code.runs.result_cache_key import ExpectedDigests
from slop_code.runs.result_index import INDEX_FILE, _stamp, with_digest
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.measuring import Spent
    from benchmarks.setting import Bench

TITLE = "a run with nothing left to evaluate"
CHECKPOINTS = 5
FEW = 10


def measure(bench: Bench) -> Part:
    shapes = [(count, FEW) for count in bench.size((10, 100, 1000), (10, 100), (10,))]
    most, many = shapes[-1][0], bench.size(1000, 100, 20)
    shapes.append((most, many))
    runs = {}
    for count, tests in shapes:
        bench.print_step(f"writing a run of {count} checkpoints with {tests} tests in each")
        runs[f"{count:,} checkpoints of {tests:,} tests"] = written(bench, count, tests)
    spent: dict[str, list[Spent]] = {name: [] for name in runs}
    for _ in range(bench.size(3, 2, 1)):
        for name, look in runs.items():
            spent[name].append(look())
    times = {name: [each.seconds for each in rounds] for name, rounds in spent.items()}
    peaks = {f"{name}, memory": [each.mebibytes for each in rounds] for name, rounds in spent.items()}
    first, least = next(iter(times)), next(iter(peaks))
    return Part("d", TITLE, (*rows(times, against=first), *rows(peaks, unit="MiB", against=least)))


def written(bench: Bench, count: int, tests: int) -> functools.partial[Spent]:
    work = bench.folder("done")
    write_run(work, count)
    write_results(work, FEW)
    ours("merge", work / "run", "--problems-dir", work / "problems", "--json")
    if tests != FEW:
        write_results(work, tests)
        move_index(work / "run")
    return functools.partial(ours, "eval", work / "run", "--problems-dir", work / "problems")


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
    """The tests are the same in all results, and serialised once."""
    expected, text = ExpectedDigests(), ""
    for submission in discover([work / "run"], problems_dir=work / "problems")[0].submissions:
        digests = expected.digests(submission)
        document = result(submission.problem.name, submission.checkpoint.name, digests, FEW).model_dump(mode="json")
        many = {name: {**document[name], "Core": tests} for name in ("pass_counts", "total_counts")}
        text = text or json.dumps(result("", "", digests, tests).model_dump(mode="json")["tests"])
        whole = json.dumps({**document, **many, "tests": "@"}).replace('"@"', text)
        if submission.output is not None:
            (submission.output / RESULT_FILE).write_text(whole)


def move_index(run: Path) -> None:
    """Reuse the index of results with few tests: indexing those with many would take most of the time."""
    lines = [json.loads(line.partition(" ")[2]) for line in (run / STATE_DIR / INDEX_FILE).read_text().splitlines()]
    stamps = {line["stamp"]: _stamp(run / line["path"]) for line in lines}
    for line in lines:
        line["stamp"] = stamps[line["stamp"]]
        if line["compared"]:
            line["compared"]["earlier"] = stamps[line["compared"]["earlier"]]
    (run / STATE_DIR / INDEX_FILE).write_text("".join(with_digest(json.dumps(line) + "\n") for line in lines))
