"""Run folders as the SlopCodeBench runner leaves them, with problems that give the same statuses when evaluated here.

`write_scb_run(folder)` writes three problems with seven checkpoints. Every figure follows from `PROBLEMS`: a test is
broken at the checkpoints that `ScbTest.broken` names. A submission prints its argument, and something else for what is
broken, so that `slop-code eval` finds the statuses of `expected_statuses`.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

GROUPS = ("Core", "Functionality", "Regression", "Error")
MARKERS = {None: "Core", "functionality": "Functionality", "error": "Error"}
TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
AGENT = {"type": "example_agent", "version": "2.0.51", "binary": "example", "cost_limits": {"cost_limit": 20.0}}
MODEL = {"name": "example-model", "provider": "example"}
PROMPT, THINKING = "configs/prompts/just-solve.jinja", "high"
CATALOG = {"version": "v1.0", "commit": "0123456789abcdef0123456789abcdef01234567"}
FAILURE = "AssertionError: assert 'wrong\\n' == '{word}\\n'"
SKIP_REASON = "not on this machine"
NO_STATS = {"mean": None, "stddev": None, "min": None, "max": None, "median": None, "count": 0}

Status = Literal["passed", "failed", "skipped", "error"]
Row = dict[str, Any]


@dataclass(frozen=True)
class ScbTest:
    word: str
    """The test is `test_<word>`, and runs the submission with this word."""
    marker: Literal["functionality", "error"] | None = None
    broken: tuple[int, ...] = ()
    """Numbers of the checkpoints at which the submission answers wrongly."""
    kind: Literal["plain", "skip", "xfail", "fixture"] = "plain"
    """`fixture`: a broken answer is an error in set-up instead of a failure."""

    def status(self, number: int) -> Status:
        if self.kind in ("skip", "xfail"):
            return "skipped"
        if number in self.broken:
            return "error" if self.kind == "fixture" else "failed"
        return "passed"


@dataclass(frozen=True)
class ScbProblem:
    name: str
    checkpoints: tuple[tuple[ScbTest, ...], ...]
    """The tests that each checkpoint adds."""

    def tests_at(self, number: int) -> list[tuple[int, ScbTest]]:
        """All tests that run at a checkpoint, each with the number of the checkpoint that added it."""
        return [(home, test) for home in range(1, number + 1) for test in self.checkpoints[home - 1]]


PROBLEMS = (
    ScbProblem(
        "calendar",
        (
            (ScbTest("adds"), ScbTest("lists", "functionality"), ScbTest("refuses", "error")),
            (ScbTest("moves"), ScbTest("renames", "functionality")),
        ),
    ),
    ScbProblem(
        "ledger",
        (
            (ScbTest("books", broken=(3,)), ScbTest("totals", "functionality", (1, 2, 3)), ScbTest("rejects", "error")),
            (ScbTest("transfers"), ScbTest("imports", "functionality", kind="skip")),
            (ScbTest("closes", broken=(3,)), ScbTest("audits", "error", broken=(3,), kind="fixture")),
        ),
    ),
    ScbProblem(
        "router",
        (
            (ScbTest("routes"), ScbTest("matches", "functionality", kind="xfail"), ScbTest("aborts", "error", (1,))),
            (ScbTest("redirects"), ScbTest("caches", "functionality", kind="skip")),
        ),
    ),
)  # fmt: skip


def write_scb_run(
    folder: Path,
    *,
    problems_dir: Path | None = None,
    prefix: str = ".evaluation_tests/",
    failed: Collection[str] = (),
    unevaluated: Collection[str] = (),
) -> Path:
    """Writes a run of `PROBLEMS` in their format, and returns its folder.

    `problems_dir`: writes the matching problems there too, so that `slop-code eval` can evaluate the run.
    `prefix`: folder of the test files in the node ids of report.json.
    `failed`, `unevaluated`: checkpoints such as "ledger/checkpoint_2" that are an infrastructure failure, or that have
    a snapshot and a line with the state "error" but no evaluation.
    """
    rows = []
    for problem in PROBLEMS:
        if problems_dir is not None:
            write_problem(problems_dir, problem)
        for number in range(1, len(problem.checkpoints) + 1):
            label = f"{problem.name}/checkpoint_{number}"
            row = _row(problem, number, ran=label not in {*failed, *unevaluated})
            rows.append(row)
            _write_agent_files(folder / label, problem, number, row)
            if label not in unevaluated:
                _write_evaluation(folder / label, problem, number, prefix, failed=label in failed)
    config = {
        "agent": AGENT, "model": MODEL, "thinking": THINKING, "prompt": PROMPT, "pass_policy": "all-non-error-cases",
        "problems": [problem.name for problem in PROBLEMS], "one_shot": False,
    }  # fmt: skip
    environment = {"type": "local", "name": "local", "commands": {"entry_file": "{entry_file}.py", "command": "python"}}
    _write(folder / "config.yaml", yaml.safe_dump(config))
    _write(folder / "environment.yaml", yaml.safe_dump(environment))
    _write_json(folder / "problem_catalog.json", CATALOG)
    _write(folder / "checkpoint_results.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    _write_json(folder / "result.json", _run_result(rows))
    return folder


def expected_statuses(problem: str, number: int) -> dict[str, Status]:
    """Statuses at a checkpoint, by `file::id`."""
    config = next(item for item in PROBLEMS if item.name == problem)
    return {f"{_file(home)}::test_{test.word}": test.status(number) for home, test in config.tests_at(number)}


def write_problem(problems_dir: Path, problem: ScbProblem) -> None:
    names = [f"checkpoint_{number}" for number in range(1, len(problem.checkpoints) + 1)]
    config = {
        "name": problem.name, "version": 1, "description": f"Prints the words of a {problem.name}.", "tags": ["cli"],
        "entry_file": "main.py", "timeout": 200,
        "checkpoints": {name: {"version": 1, "order": order} for order, name in enumerate(names, start=1)},
    }  # fmt: skip
    home = problems_dir / problem.name
    _write(home / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    _write(home / "tests/conftest.py", _CONFTEST)
    for number, (name, tests) in enumerate(zip(names, problem.checkpoints, strict=True), start=1):
        _write(home / f"{name}.md", f"# {name}\n\nPrint each word: {', '.join(test.word for test in tests)}.\n")
        _write(home / f"tests/{_file(number)}", "import pytest\n" + "".join(map(_source, tests)))


_CONFTEST = """\
import shlex
import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--entrypoint", required=True)
    parser.addoption("--checkpoint", required=True)


@pytest.fixture(scope="session")
def run(request):
    entrypoint = shlex.split(request.config.getoption("--entrypoint"))
    return lambda word: subprocess.run([*entrypoint, word], capture_output=True, text=True).stdout
"""


def _source(test: ScbTest) -> str:
    marks = [f"@pytest.mark.{test.marker}\n"] if test.marker else []
    marks += [f"@pytest.mark.skip(reason={SKIP_REASON!r})\n"] if test.kind == "skip" else []
    marks += ["@pytest.mark.xfail\n"] if test.kind == "xfail" else []
    asserted = f'    assert run("{test.word}") == "{"never" if test.kind == "xfail" else test.word}\\n"\n'
    if test.kind == "fixture":
        fixture = f"\n\n@pytest.fixture\ndef {test.word}(run):\n{asserted}"
        return f"{fixture}\n\n{''.join(marks)}def test_{test.word}({test.word}):\n    pass\n"
    return f"\n\n{''.join(marks)}def test_{test.word}(run):\n{asserted}"


def _file(number: int) -> str:
    return f"test_checkpoint_{number}.py"


def _group(home: int, test: ScbTest, number: int) -> str:
    return MARKERS[test.marker] if home == number else "Regression"


def _counts(problem: ScbProblem, number: int, counts: Callable[[Status], bool]) -> dict[str, int]:
    groups = [_group(home, test, number) for home, test in problem.tests_at(number) if counts(test.status(number))]
    return {group: groups.count(group) for group in GROUPS}


def _passed(problem: ScbProblem, number: int) -> dict[str, int]:
    return _counts(problem, number, lambda status: status == "passed")


def _total(problem: ScbProblem, number: int) -> dict[str, int]:
    """Skipped tests are left out."""
    return _counts(problem, number, lambda status: status != "skipped")


def _write_agent_files(home: Path, problem: ScbProblem, number: int, row: Row) -> None:
    broken = sorted(test.word for _, test in problem.tests_at(number) if number in test.broken)
    source = f"import sys\n\nBROKEN = {broken!r}\n\nprint('wrong' if sys.argv[1] in BROKEN else sys.argv[1])\n"
    _write(home / "snapshot/main.py", source)
    _write(home / "prompt.txt", f"Implement checkpoint_{number} of {problem.name}.\n")
    _write(home / "checkpoint.yaml", yaml.safe_dump({"name": f"checkpoint_{number}", "order": number, "version": 1}))
    tokens = {name: row[name] for name in TOKENS}
    _write_json(
        home / "inference_result.json",
        {
            "started": row["started"], "completed": row["ended"], "elapsed": row["duration"], "had_error": False,
            "error_message": None, "snapshot_dir": "snapshot", "artifacts_dir": "agent",
            "checkpoint_path": f"outputs/{problem.name}/checkpoint_{number}",
            "usage": {"cost": row["cost"], "steps": row["steps"], "net_tokens": tokens, "current_tokens": tokens},
        },
    )  # fmt: skip


def _write_evaluation(home: Path, problem: ScbProblem, number: int, prefix: str, *, failed: bool) -> None:
    tests = [] if failed else problem.tests_at(number)
    listed: dict[str, dict[str, list[str]]] = {}
    for origin, test in tests:
        key = f"checkpoint_{origin}-{_group(origin, test, number)}"
        lists = listed.setdefault(key, {"passed": [], "failed": [], "skipped": []})
        status = test.status(number)
        lists["failed" if status == "error" else status].append(f"test_{test.word}")
    zeros = dict.fromkeys(GROUPS, 0)
    exit_code = 2 if failed else int(any(test.status(number) in ("failed", "error") for _, test in tests))
    names = [f"{_file(origin)}::test_{test.word}" for origin, test in tests]
    _write_json(
        home / "evaluation.json",
        {
            "schema_version": 1, "problem_name": problem.name, "problem_version": 1,
            "checkpoint_name": f"checkpoint_{number}", "checkpoint_version": 1, "duration": 1.5 + number,
            "entrypoint": "python main.py", "tests": listed,
            "pass_counts": zeros if failed else _passed(problem, number),
            "total_counts": zeros if failed else _total(problem, number),
            "pytest_exit_code": exit_code, "pytest_collected": len(tests),
            "test_collection_hash": hashlib.sha256("\n".join(names).encode()).hexdigest(),
            "infrastructure_failure": failed,
        },
    )  # fmt: skip
    entries = [_report_entry(f"{prefix}{_file(origin)}", test, number) for origin, test in tests]
    outcomes = [entry["outcome"] for entry in entries]
    summary = {name: outcomes.count(name) for name in sorted(set(outcomes))}
    report = {
        "created": 1790000000.0 + number, "duration": 1.5 + number, "exitcode": exit_code, "root": "/workspace",
        "environment": {}, "summary": {**summary, "total": len(tests), "collected": len(tests)}, "tests": entries,
    }  # fmt: skip
    _write_json(home / "evaluation/report.json", report)
    _write(home / "evaluation/stdout.txt", f"collected {len(tests)} items\n")
    _write(home / "evaluation/stderr.txt", "ERROR: usage error\n" if failed else "")


def _report_entry(file: str, test: ScbTest, number: int) -> Row:
    """One test as pytest-json-report writes it."""
    outcome = {"skip": "skipped", "xfail": "xfailed"}.get(test.kind, test.status(number))
    passed: Row = {"duration": 0.001, "outcome": "passed"}
    stages = {"setup": passed, "call": {"duration": 0.01, "outcome": "passed"}, "teardown": passed}
    message = FAILURE.format(word="never" if test.kind == "xfail" else test.word)
    crash = {"path": f"/workspace/{file}", "lineno": 7, "message": message}
    bad = {"crash": crash, "longrepr": f">       assert run(...)\nE       {message}\n\n{file}:7: AssertionError"}
    if outcome == "skipped":
        skip = f"('/workspace/{file}', 7, 'Skipped: {SKIP_REASON}')"
        stages = {"setup": {"duration": 0.0001, "outcome": "skipped", "longrepr": skip}, "teardown": passed}
    elif outcome == "xfailed":
        stages["call"] = {"duration": 0.01, "outcome": "skipped", **bad}
    elif outcome == "failed":
        stages["call"] = {"duration": 0.01, "outcome": "failed", **bad}
    elif outcome == "error":
        stages = {"setup": {"duration": 0.01, "outcome": "failed", **bad}, "teardown": passed}
    marks = [test.marker or "", test.kind if test.kind in ("skip", "xfail") else ""]
    keywords = [f"test_{test.word}", *filter(None, marks), "pytestmark", file.rsplit("/", 1)[-1], ""]
    return {"nodeid": f"{file}::test_{test.word}", "lineno": 6, "outcome": outcome, "keywords": keywords, **stages}


def _rate(passed: int, total: int) -> float | None:
    return passed / total if total else None


def _row(problem: ScbProblem, number: int, *, ran: bool) -> Row:
    """A line of checkpoint_results.jsonl; a checkpoint that did not run has no tests in it."""
    zeros = dict.fromkeys(GROUPS, 0)
    passed, total = (_passed(problem, number), _total(problem, number)) if ran else (zeros, zeros)
    all_passed, all_total = sum(passed.values()), sum(total.values())
    own_passed, own_total = all_passed - passed["Regression"], all_total - total["Regression"]
    size = 10 * number + len(problem.name)
    day = f"2026-08-0{number}T10"
    return {
        "problem": problem.name, "version": 1, "checkpoint": f"checkpoint_{number}",
        "path": f"{problem.name}/checkpoint_{number}", "idx": number, "state": "ran" if ran else "error",
        "is_first": number == 1, "is_last": number == len(problem.checkpoints),
        "strict_pass_rate": _rate(all_passed, all_total), "isolated_pass_rate": _rate(own_passed, own_total),
        "core_pass_rate": _rate(passed["Core"], total["Core"]),
        "total_tests": all_total, "passed_tests": all_passed,
        **{f"{group.lower()}_{name}": counts[group] for group in ("Core", "Functionality", "Error", "Regression")
           for name, counts in (("total", total), ("passed", passed))},
        "started": f"{day}:00:00+00:00", "ended": f"{day}:0{number}:30+00:00", "duration": 60.0 * number + 30,
        "cost": 0.25 * number + len(problem.name) / 100, "steps": 10 * number + 1,
        "cache_read": 5000 * number, "cache_write": 700 * number, "input": 120 * number, "output": 900 * number + 7,
        "reasoning": 40 * number,
        "loc": size, "sloc": size - 4, "files": 1, "functions": number, "classes": 0, "statements": size - 6,
        "cc_max": number + 1, "cc_mean": 1.0 + number / 2, "cc_high_count": 0, "clone_lines": 0, "cloned_pct": 0.0,
        "lint_errors": number, "lint_per_loc": number / size, "verbosity_flagged_pct": 2.0 * number,
        "lines_added": 10, "lines_removed": number - 1, "delta.loc": None if number == 1 else 10.0,
        "delta.churn_ratio": None if number == 1 else 0.5, "mass.cc": 3.0 * number,
    }  # fmt: skip


def stats(values: Sequence[float]) -> Row:
    """STATS of the facts sheet, with the standard deviation of a sample (0 for one value)."""
    if not values:
        return NO_STATS
    return {
        "mean": statistics.fmean(values), "stddev": statistics.stdev(values) if len(values) > 1 else 0.0,
        "min": min(values), "max": max(values), "median": statistics.median(values), "count": len(values),
    }  # fmt: skip


def _run_result(rows: Sequence[Row]) -> Row:
    """result.json. Means over problems are means of each problem's own mean over its checkpoints."""
    problems = [
        [row for row in rows if row["problem"] == name] for name in dict.fromkeys(row["problem"] for row in rows)
    ]
    sums = {
        name: [sum(row[name] for row in own) for own in problems] for name in ("cost", "duration", "steps", *TOKENS)
    }
    values = {name: [row[name] for row in rows] for name in sums}
    each = {name: {"checkpoint": stats(values[name]), "problem": stats(sums[name])} for name in sums}
    solved = {kind: [row[f"{kind}_pass_rate"] == 1 for row in rows] for kind in ("strict", "isolated", "core")}
    finished = sum(own[-1]["strict_pass_rate"] == 1 for own in problems)
    partial = sum(any(row["strict_pass_rate"] == 1 for row in own) for own in problems)

    def percent(count: int, of: Sequence[Any]) -> float:
        return 100 * count / len(of)

    return {
        "model": MODEL["name"], "thinking": THINKING, "prompt": PROMPT, "agent_type": AGENT["type"],
        "agent_version": AGENT["version"], "num_problems": len(problems), "num_checkpoints": len(rows),
        "expected_checkpoints": len(rows), "costs": {**each["cost"], "total": sum(values["cost"])},
        "time": each["duration"], "steps": each["steps"],
        "tokens": {
            **{name: sum(values[name]) for name in TOKENS},
            "problem": {name: statistics.fmean(sums[name]) for name in TOKENS},
            "checkpoint": {name: statistics.fmean(values[name]) for name in TOKENS},
        },
        "checkpoints_solved": sum(solved["strict"]), "checkpoints_iso_solved": sum(solved["isolated"]),
        "checkpoints_core_solved": sum(solved["core"]), "problem_solved": finished, "problem_partial": partial,
        "pct_checkpoints_solved": percent(sum(solved["strict"]), rows),
        "pct_checkpoints_iso_solved": percent(sum(solved["isolated"]), rows),
        "pct_checkpoints_core_solved": percent(sum(solved["core"]), rows),
        "pct_problems_solved": percent(finished, problems), "pct_problems_partial": percent(partial, problems),
        "pass_rates": {
            "problem": {name: _mean(_mean_rate(own, name) for own in problems) for name in _RATES},
            "checkpoint": {name: _mean_rate(rows, name) for name in _RATES},
        },
        "cc": {
            "high_count": stats([row["cc_high_count"] for row in rows]), "high_mean": NO_STATS,
            "max": stats([row["cc_max"] for row in rows]),
        },
        "ratios": {"rubric": NO_STATS, "lint": stats([row["lint_per_loc"] for row in rows]), "violation_pct": NO_STATS},
        "verbosity": NO_STATS, "erosion": NO_STATS,
    }  # fmt: skip


_RATES = ("core", "total", "error", "functionality", "regression")


def _mean_rate(rows: Sequence[Row], name: str) -> float | None:
    keys = ("passed_tests", "total_tests") if name == "total" else (f"{name}_passed", f"{name}_total")
    return _mean(_rate(row[keys[0]], row[keys[1]]) for row in rows)


def _mean(rates: Any) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return statistics.fmean(known) if known else None


def _write_json(path: Path, document: Any) -> None:
    _write(path, json.dumps(document, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
