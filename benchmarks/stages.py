"""(h) Time of one warm evaluation by stage, beside the same stages of bare pytest.

A conftest of the tests records the clock at each stage of pytest; all processes of a machine read the same clock. The
start of a process is known to a hundredth of a second; the median of several rounds is finer.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from benchmarks.bare import Bare, prepared_venv
from benchmarks.measuring import run
from benchmarks.one_checkpoint import last, solution
from benchmarks.table import Part, Row
from benchmarks.tiny import example
from slop_code.evaluation import ProblemConfig

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.setting import Bench

TITLE = "where the time of one warm `slop-code eval-snapshot` goes, bubblewrap"
NOTES = """

import json as _json, os as _os, sys as _sys, time as _time

_NOTED = {"conftest": _time.clock_gettime(_time.CLOCK_BOOTTIME)}


def _note(name):
    _NOTED[name] = _time.clock_gettime(_time.CLOCK_BOOTTIME)


def pytest_collection(session):
    _note("collection")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    _note("tests")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before those that write reports
def pytest_sessionfinish(session):
    _note("end")
    return (yield)


def pytest_unconfigure():
    _note("unconfigure")
    with open("/proc/self/stat") as stat:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
    _NOTED["interpreter"] = ticks / _os.sysconf("SC_CLK_TCK")
    print("\\nNOTED " + _json.dumps(_NOTED), file=_sys.__stdout__, flush=True)
"""
OURS = """
import json, os, time
now = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
noted = {"interpreter": now()}
import slop_code.cli.main, slop_code.cli.eval.eval_snapshot_action
from slop_code.__main__ import run_command
from slop_code.execution.session import Session
noted["imported"] = now()
judge = Session.judge

def watched(*arguments, **options):
    noted["judge"] = now()
    judged = judge(*arguments, **options)
    noted["judged"] = now()
    return judged

Session.judge = watched
status = run_command()
noted["done"] = now()
print("\\nNOTED " + json.dumps(noted), flush=True)
os._exit(status)
"""


def measure(bench: Bench) -> Part:
    folder = bench.folder("stages") / "problem"
    shutil.copytree(example(bench).path, folder)
    with (folder / "tests/conftest.py").open("a") as conftest:
        conftest.write(NOTES)
    problem, venv = ProblemConfig.from_yaml(folder), prepared_venv(bench)
    side = Bare.of(bench.folder("bare"), problem, last(problem), solution(problem))
    times: dict[str, list[float]] = defaultdict(list)
    for number in range(-bench.size(1, 1, 0), bench.size(7, 2, 1)):
        stages = {**stages_of_bare(side, venv), **stages_of_ours(bench, problem)}
        for name, taken in stages.items() if number >= 0 else ():
            times[name].append(1000 * taken)
    pairs = {name: f"bare pytest: {name}" for name in times}
    bases = {name: base if base in times else None for name, base in pairs.items()}
    return Part("h", TITLE, tuple(Row(name, "ms", tuple(values), bases[name]) for name, values in times.items()))


def stages_of_bare(side: Bare, venv: Path) -> dict[str, float]:
    began = clock()
    noted = noted_in(side.run(venv))
    ended = clock()
    stages = {
        **pytest_stages(noted, began),
        "pytest's process ends": ended - noted["unconfigure"],
        "all": ended - began,
    }
    return {f"bare pytest: {name}": taken for name, taken in stages.items()}


def stages_of_ours(bench: Bench, problem: ProblemConfig) -> dict[str, float]:
    out, began = bench.folder("out"), clock()
    words = [str(solution(problem)), "-p", str(problem.path), "-c", last(problem).name, "-o", str(out)]
    ours = noted_in(run([sys.executable, "-c", OURS, "eval-snapshot", *words]))
    ended = clock()
    phases = json.loads((out / "evaluation.json").read_text())["phases"]
    judge = noted_in((out / ".scbench/pytest.log").read_text())
    before = ours["judge"] - ours["imported"] - phases["prepare"] - phases["setup"]
    return {
        "our interpreter starts": ours["interpreter"] - began,
        "our imports": ours["imported"] - ours["interpreter"],
        "the command and the problem are read": before,
        "prepare: find and check what is cached": phases["prepare"],
        "set-up: find the submission's environment": phases["setup"],
        "the boxes open, uvx starts": judge["interpreter"] - ours["judge"],
        **pytest_stages(judge, judge["interpreter"]),
        "pytest's process ends, the boxes are gone": ours["judged"] - judge["unconfigure"],
        "parse: read and store the reports": phases["parse"],
        "grade, write evaluation.json, print": ours["done"] - ours["judged"] - phases["parse"],
        "our process ends": ended - ours["done"],
        "all": ended - began,
    }


def pytest_stages(noted: Mapping[str, float], began: float) -> dict[str, float]:
    points = [began, *(noted[name] for name in ("conftest", "collection", "tests", "end", "unconfigure"))]
    names = ("pytest starts: imports, plugins", "pytest configures", "collection", "the tests", "reports")
    return {name: last - first for name, first, last in zip(names, points, points[1:], strict=False)}


def noted_in(printed: str) -> dict[str, Any]:
    noted: dict[str, Any] = json.loads(printed.rpartition("NOTED ")[2].splitlines()[0])
    return noted


def clock() -> float:
    """The same clock for all processes of the machine, in any box."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
