"""Output of `problems ls` and `problems show`."""

from __future__ import annotations

import json
import uuid

import pytest

from slop_code._yaml import UnknownKey
from slop_code.authoring.check.workbench import Workbench
from slop_code.authoring.problem_folders import environment_for
from slop_code.authoring.problem_overview import (
    CheckpointOverview,
    ProblemOverview,
    UnloadableProblem,
    asset_of,
    by_group,
    checkpoint_overview,
    overview,
    overviews,
)
from slop_code.authoring.reference_times import ReferenceTimes, parse, store_reference_times
from slop_code.evaluation import CheckpointConfig, GroupType, MarkerConfig, ProblemConfig
from slop_code.evaluation.config import CheckpointState, Difficulty
from slop_code.evaluation.roster import Roster, RosterEntry
from slop_code.execution.cache import Cache
from slop_code.execution.environment import load_environment
from slop_code.reporting.problem_lines import as_json, listed_line, next_commands, problem_lines
from slop_code.runs.result_cache import ResultCache
from tests.factories import case, result

HOSTILE = "\x1b]0;owned\x07\n[red]\u202e"


def silent(_: str) -> None:
    pass


def checkpoint(name="checkpoint_1", state=CheckpointState.DRAFT, session_timeout=None, **keys):
    config = CheckpointConfig(order=1, timeout=10.0).model_copy(
        update={"state": state, "session_timeout": session_timeout}
    )
    config._name = name
    return CheckpointOverview(config, **{"specification": 1234, "solution": True, **keys})


def problem_view(path, *checkpoints, config=None, environment="local", unknown_keys=(), **keys):
    plain = {"name": "tally", "version": "1", "description": "Sums.", "difficulty": Difficulty.EASY}
    unset = ProblemConfig.model_construct(tags=[], entry_file="main", **{**plain, **(config or {})})
    unset._file, unset._unknown_keys = path / "config.yaml", unknown_keys
    spec = load_environment("local").model_copy(update={"name": environment})
    return ProblemOverview(unset.at(path), spec, checkpoints, **keys)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["Draft"], "Draft"),
        (["Verified", "Core Tests", "Full Tests"], "Core Tests"),
        (["Verified", "Verified"], "Verified"),
        (["Verified", None], None),
    ],
)
def test_a_problem_is_as_far_as_its_least_checkpoint(states, expected, tmp_path):
    assert (
        problem_view(tmp_path, *(checkpoint(state=state and CheckpointState(state)) for state in states)).state
        == expected
    )


def test_tests_count_in_their_group(authored):
    problem = ProblemConfig.from_yaml(authored({"config.yaml": CONFIG}))
    entries = [
        ("test_checkpoint_1.py::test_a", ()),
        ("test_checkpoint_1.py::test_b", ("error",)),
        ("test_checkpoint_2.py::test_c", ("error",)),
        ("sub/test_checkpoint_2_more.py::test_d", ("wide",)),
        ("test_checkpoint_2.py::test_e", ()),
        ("test_checkpoint_2.py::test_f", ()),
        ("test_checkpoint_2.py::test_g", ("quarantined",)),
    ]
    roster = Roster(tuple(RosterEntry(name, markers) for name, markers in entries))
    counts = by_group(roster, problem, "checkpoint_2")
    assert counts == {"Core": 2, "Functionality": 1, "Error": 1, "Regression": 2}


CONFIG = """\
name: shout
version: 1.2
description: Prints its arguments in capitals.
tags: [cli]
entry_file: main
timeout: 10
markers:
  wide: {group: functionality}
checkpoints:
  checkpoint_1: {order: 1, state: Full Tests, session_timeout: 60}
  checkpoint_2: {order: 2, timeout: 3}
"""


def test_what_the_files_tell(authored):
    problem = ProblemConfig.from_yaml(authored({"config.yaml": CONFIG}))
    first, second = (checkpoint_overview(problem, config) for config in problem.checkpoints.values())
    assert (first.specification, first.solution) == ((problem.path / "checkpoint_1.md").stat().st_size, True)
    assert (second.specification, second.solution) == (None, False)


def test_an_asset_is_a_file_or_a_folder(tmp_path):
    (tmp_path / "words" / "deep").mkdir(parents=True)
    (tmp_path / "words" / "a.txt").write_bytes(b"12345")
    (tmp_path / "words" / "deep" / "b.txt").write_bytes(b"123")
    one = asset_of("x", tmp_path, tmp_path / "words" / "a.txt")
    assert (one.path, one.files, one.bytes) == ("words/a.txt", 1, 5)
    both = asset_of("y", tmp_path, tmp_path / "words")
    assert (both.path, both.files, both.bytes) == ("words", 2, 8)


def test_a_line_for_each_problem(tmp_path):
    counts = {"Core": 2, "Functionality": 0, "Error": 1, "Regression": 9}
    found = problem_view(tmp_path / "tally", checkpoint(), checkpoint(tests=counts))
    expected = "tally: version 1, Easy, 2 checkpoints, Draft, 12 tests (2 core, 1 error, 9 regression)"
    assert listed_line(found) == expected
    broken = checkpoint(state=None, error="no test was found\nfurther")
    troubled = problem_view(tmp_path / "tally", broken, config={"difficulty": None})
    assert listed_line(troubled) == "tally: version 1, 1 checkpoint, tests not listed: no test was found"
    assert listed_line(UnloadableProblem(tmp_path / "x", "config.yaml: odd\nmore")) == "x: broken: config.yaml: odd"


@pytest.mark.parametrize(
    ("name", "folder", "expected"),
    [("tally", "problems/tally", "tally: "), ("tally", "problems/copy", "tally in problems/copy: ")],
)
def test_problems_of_one_name_differ_by_their_folders(name, folder, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert listed_line(problem_view(tmp_path / folder, checkpoint(), config={"name": name})).startswith(
        f"{expected}version 1,"
    )


def test_a_problem_in_words(tmp_path):
    measured = ReferenceTimes(seconds=1.5, tests={"a.py::x": 0.25, "a.py::y": 0.5})
    found = problem_view(
        tmp_path,
        checkpoint(tests={"Core": 1, "Error": 0}, measured=measured),
        checkpoint("checkpoint_2", None, specification=None, solution=False, session_timeout=90.0, error="odd"),
        dependencies={"httpx>=1": "1.2", "other": None},
        quarantined=("a.py::x",),
        unknown_keys=(UnknownKey("odd", near="oddly"),),
        config={"markers": {"wide": MarkerConfig(group=GroupType.ERROR)}, "author": "Ada"},
    )
    assert [text for text, _ in problem_lines(found)] == [
        "tally, version 1: Sums.",
        f"folder: {tmp_path}",
        "Easy, by Ada, main.py in the environment local",
        "checkpoint_1 (Draft)",
        "  order 1, timeout 10 s, specification of 1.2 KB",
        "  1 test: 1 core",
        "  reference: 1.50 s, slowest:",
        "    0.50 s  a.py::y",
        "    0.25 s  a.py::x",
        "checkpoint_2",
        "  order 1, timeout 10 s, session timeout 90 s, no specification",
        "  tests not listed: odd",
        "  reference: none",
        "test dependency httpx>=1: 1.2",
        "test dependency other: not known",
        "marker wide: Error",
        "quarantined: a.py::x",
        f"warning: {tmp_path}/config.yaml: unknown key odd (ignored); did you mean 'oddly'?",
    ]


def test_no_name_reaches_a_terminal_as_a_command(tmp_path):
    found = problem_view(
        tmp_path / HOSTILE,
        checkpoint(HOSTILE, measured=ReferenceTimes(seconds=1, tests={HOSTILE: 1.0}), error=HOSTILE),
        config={
            "version": HOSTILE,
            "description": HOSTILE,
            "author": HOSTILE,
            "markers": {HOSTILE: MarkerConfig(group=GroupType.ERROR)},
        },
        environment=HOSTILE,
        quarantined=(HOSTILE,),
        unknown_keys=(UnknownKey(HOSTILE),),
        dependencies={HOSTILE: HOSTILE},
    )
    lines = [text for text, _ in problem_lines(found)]
    lines += [listed_line(found), listed_line(UnloadableProblem(tmp_path / HOSTILE, HOSTILE))]
    lines += next_commands(tmp_path / HOSTILE, named=True).values()
    assert all(line.isprintable() for line in lines)


def results_of(problem, tests, **fields):
    tests = [case(name, duration_ms=taken, file_path="t.py") for name, taken in tests.items()]
    return result(tests, **{"problem_name": problem, "duration": 9.0, "phases": {"tests": 1.5}, **fields})


@pytest.mark.parametrize(
    "keys",
    [{"deselected": 1}, {"infrastructure_failure": True, "infrastructure_failure_reason": "x"}],
    ids=["part", "no"],
)
def test_what_is_no_whole_run_is_not_remembered(keys, tmp_path):
    cache = Cache(tmp_path)
    store_reference_times(cache, results_of("a", {"x": 10.0}, **keys))
    assert ResultCache(cache).info().entries == 0


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"seconds": 1}',
        b'{"seconds": "x", "tests": {}}',
        b'{"seconds": NaN, "tests": {}}',
        b'{"seconds": 1, "tests": []}',
    ],
    ids=range(7),
)
def test_what_is_damaged_is_not_known(kept):
    assert parse(kept) is None


def test_what_is_kept_is_read_again():
    assert parse(b'{"seconds": 1, "tests": {"a": 2}}') == ReferenceTimes(seconds=1.0, tests={"a": 2.0})


def test_problems_are_looked_at_without_evaluating(authored, tmp_path, cache, need_bubblewrap):
    need_bubblewrap()
    folder = authored()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.yaml").write_text("name: 1\n")
    bad, good = overviews([broken, folder], cache, silent)
    assert isinstance(bad, UnloadableProblem)
    assert as_json(bad)["name"] == "broken"
    assert good.checkpoints[0].tests == {"Core": 1, "Functionality": 1, "Error": 1, "Regression": 0}
    (folder / "tests" / "test_checkpoint_1.py").write_text("import nothing_of_this_name\n")
    [broken] = overviews([folder], cache, silent)
    assert "nothing_of_this_name" in broken.error
    assert broken.error in [checkpoint["error"] for checkpoint in as_json(broken)["checkpoints"]]


def test_the_reference_is_measured_until_something_changes(authored, cache, need_bubblewrap):
    need_bubblewrap()
    problem = ProblemConfig.from_yaml(authored())
    solution = problem.path / "solutions" / "checkpoint_1" / "main.py"
    solution.write_text(f"# never measured: {uuid.uuid4()}\n{solution.read_text()}")
    spec = environment_for(problem, None)
    assert overview(problem, spec, cache, silent).checkpoints[0].measured is None
    Workbench(problem, spec).reference(problem.checkpoint(1))
    found = overview(problem, spec, cache, silent).checkpoints[0].measured
    assert {name.partition("::")[2] for name in found.tests} == {"test_one_word", "test_several_words", "test_no_words"}
    document = json.loads(json.dumps(as_json(overview(problem, spec, cache, silent))))
    assert len(document["checkpoints"][0]["reference"]["slowest"]) == 3
    solution.write_text(f"# {uuid.uuid4()}\n")
    assert overview(problem, spec, cache, silent).checkpoints[0].measured is None
