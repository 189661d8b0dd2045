"""A short soak in every sandbox, and one that has to find what is unstable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SANDBOXES
from tests.stability.cases import MISSING, SMALL, Case, all_cases, chosen
from tests.stability.soak import as_json, exit_status, main, soak, summary, table

COUNTS = """
from pathlib import Path

COUNTER = Path({counter!r})


def test_steady(run):
    assert run().returncode == 0


def test_every_third_time(run):
    number = int(COUNTER.read_text())
    COUNTER.write_text(str(number + 1))
    assert number % 3 != 2
"""


@pytest.mark.long
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_smallest_example_is_stable(cache, tmp_path, need, sandbox):
    need(sandbox)
    cases = chosen(all_cases(tmp_path), "hitcount-2-before")
    rows = soak(cases, [sandbox], {"idle": 1, "load": 1}, cache=cache)
    assert summary(rows) == "STABLE: 2 evaluations, every verdict equal, 0 tests repeated"
    assert [(row.condition, row.times, row.notes) for row in rows] == [("idle", 1, set()), ("load", 1, set())]


@pytest.mark.long
def test_what_is_unstable_is_named(cache, make_problem, make_submission, tmp_path):
    """The third evaluation differs: a test that was passed is not, and with it a group, policies and the exit code."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    problem = make_problem({"test_checkpoint_1.py": COUNTS.format(counter=str(counter))})
    case = Case("planted", problem, "checkpoint_1", make_submission({"main.py": ""}))
    messages: list[str] = []
    rows = soak([case], ["none"], {"idle": 3}, cache=cache, tell=messages.append)
    said = summary(rows)
    assert said.startswith("NOT STABLE: 1 of 1 rows of 3 evaluations")
    assert "evaluation 3: test test_checkpoint_1.py::test_every_third_time: passed, Core → failed, Core" in said
    assert "evaluation 3: group Core: 2 of 2 → 1 of 2" in said
    assert "evaluation 3: policy all-cases: passed → not passed" in said
    assert "test_steady" not in said
    assert "again: python -m tests.stability.soak --cases planted --sandbox none --condition idle --times 3" in said
    assert any(text.startswith("planted, none, idle: evaluation 3") for text in messages)
    assert exit_status(rows) == 1
    written = json.loads(as_json(rows, 1.0))
    assert not written["stable"]
    assert written["rows"][0]["times"] == 3
    assert "planted" in table(rows)


@pytest.mark.long
def test_what_cannot_be_evaluated_is_not_stable(cache, make_problem, make_submission, tmp_path):
    problem = make_problem({"test_checkpoint_1.py": "import none_such"})
    case = Case("planted", problem, "checkpoint_1", make_submission({"main.py": ""}))
    rows = soak([case], ["none"], {"idle": 2}, cache=cache)
    assert (exit_status(rows), rows[0].unjudged) == (3, 2)
    assert "evaluation 2: no verdict: " in summary(rows)
    assert not json.loads(as_json(rows, 1.0))["stable"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_sandbox_that_is_missing_is_named(monkeypatch, capsys, tmp_path, sandbox):
    monkeypatch.setitem(MISSING, sandbox, lambda: "none here")
    assert main(["--sandbox", sandbox, "--cases", "none-such", "--json", str(tmp_path / "found.json")]) == 3
    assert capsys.readouterr().err == f"{sandbox}: none here\n"


def test_no_rounds_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--times", "0"])
    assert "--times: expected at least 1, found 0" in capsys.readouterr().err


def test_there_is_a_case_for_every_checkpoint_of_every_example():
    cases = all_cases(Path("nothing"))
    names = {case.name for case in cases}
    assert len(names) == len(cases)
    for case in cases:
        stem, _, kind = case.name.rpartition("-")
        assert kind == case.kind or kind not in ("reference", "empty")
        assert {f"{stem}-reference", f"{stem}-empty"} <= names
        assert stem.endswith("-1") or f"{stem}-before" in names
    assert {name.partition("-")[0] for name in SMALL} == {case.problem.name for case in cases}
    assert [case.name for case in chosen(cases, "small")] == list(SMALL)
    with pytest.raises(KeyError, match="none-such"):
        chosen(cases, "none-such")
