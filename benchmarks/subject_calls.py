"""(b) One call of the submission against a bare process; a test in the judge's box starts both in turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import BenchError
from benchmarks.table import Part, Row
from slop_code.evaluation import ProblemConfig, PytestRunner

if TYPE_CHECKING:
    from benchmarks.setting import Bench

TITLE = "one call of the submission (`true`)"
CALLS = Path(__file__).resolve().parent / "calls"
COMMAND = {"command": "true", "entry_file": "{entry_file}"}


def measure(bench: Bench) -> Part:
    measured: list[Row] = []
    rounds = bench.size(3, 1, 1)
    taken = {name: [calls(bench, name) for _ in range(rounds)] for name in bench.sandboxes}
    for name, values in taken.items():
        base = f"{name}: a bare process in the judge's box"
        measured.append(Row(base, "ms", tuple(value["bare"] for value in values)))
        measured.append(Row(f"{name}: a call", "ms", tuple(value["launcher"] for value in values), base))
    return Part("b", TITLE, tuple(measured), bench.missing)


def calls(bench: Bench, sandbox: str) -> dict[str, float]:
    """Medians of many calls, in milliseconds."""
    problem, out = ProblemConfig.from_yaml(CALLS), bench.folder("calls")
    count = {"env": {"BENCH_CALLS": str(bench.size(300, 100, 5))}}
    spec = bench.environment(sandbox, commands=COMMAND, environment=count)
    results = PytestRunner(problem, problem.checkpoint(1), spec, CALLS / "submission", output_dir=out).run(["-s"])
    if not results.passed["all-cases"]:
        raise BenchError(results.infrastructure_failure_reason or f"{sandbox}: the calls did not succeed")
    log = (out / ".scbench/pytest.log").read_text()
    medians: dict[str, float] = json.loads(log.split("CALLS ")[1].splitlines()[0])
    return medians
