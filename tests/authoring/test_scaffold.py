"""What `problems new` writes is a sound problem, whatever it was asked for."""

from __future__ import annotations

import ast
import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from slop_code.authoring.bench import Effort, Workbench, environment_for
from slop_code.authoring.check import STEPS, check_step
from slop_code.authoring.mutants.choose import Budget
from slop_code.authoring.scaffold import (
    KINDS,
    LANGUAGES,
    MOST_CHECKPOINTS,
    Blueprint,
    files_of,
    has_templates,
    write_problem,
)
from slop_code.errors import UsageError
from slop_code.evaluation import ProblemConfig
from slop_code.execution.environment import load_environment
from slop_code.execution.sandbox import PATH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMBINATIONS = [(kind, language) for kind in KINDS for language in LANGUAGES if has_templates(kind, language)]
ALL = pytest.mark.parametrize(("kind", "language"), COMBINATIONS)


def test_what_can_be_combined():
    assert COMBINATIONS == [
        ("cli", "python"), ("cli", "shell"), ("cli", "javascript"), ("http", "python"), ("http", "javascript"),
    ]  # fmt: skip


@ALL
@pytest.mark.parametrize("count", range(1, MOST_CHECKPOINTS + 1))
def test_every_checkpoint_has_its_files(kind, language, count):
    files = files_of(Blueprint("tally", kind, count, language))
    entry = f"main.{LANGUAGES[language].suffix}"
    for number in range(1, count + 1):
        name = f"checkpoint_{number}"
        assert {f"{name}.md", f"tests/test_{name}.py", f"solutions/{name}/{entry}"} <= set(files)
        marks = set(re.findall(r"pytest\.mark\.(\w+)", files[f"tests/test_{name}.py"]))
        assert {"functionality", "error"} <= marks
        assert ("regression" in marks) == (number == 2)
    assert not any(f"checkpoint_{count + 1}" in path for path in files)
    assert ".gitignore" in files
    assert ("environment.yaml" in files) == (language != "python")
    references = [files[f"solutions/checkpoint_{number}/{entry}"] for number in range(1, count + 1)]
    assert references == sorted(references, key=len)
    assert len(set(references)) == count


@ALL
def test_nothing_of_the_templates_is_left(kind, language):
    for path, text in files_of(Blueprint("tally", kind, 9, language)).items():
        assert not re.search(r"@@|@\w+@", text), path
        assert text.endswith("\n")
        assert not re.search(r"[ \t]$", text, flags=re.M), path
        if path.endswith(".py"):
            ast.parse(text, path)


@ALL
def test_it_loads(kind, language, tmp_path):
    folder = write_problem(Blueprint("tally", kind, 9, language, "Ada"), tmp_path)
    problem = ProblemConfig.from_yaml(folder)
    assert (problem.name, problem.author, list(problem.warnings)) == ("tally", "Ada", [])
    spec = environment_for(problem, None)
    assert not spec.warnings
    assert all((folder / "solutions" / name / spec.entry("main")[-1]).is_file() for name in problem.checkpoints)
    if language == "python":
        assert spec == load_environment("local")


@pytest.mark.parametrize("text", ["yes", "1", "1e3", "null", "x" * 100, "a.b", "A-b_c"])
def test_names_are_names(text, tmp_path):
    assert ProblemConfig.from_yaml(write_problem(Blueprint(text), tmp_path)).name == text


@pytest.mark.parametrize("text", ["", ".", "..", ".hidden", "-x", "a/b", "a b", "é", "a\n", "x" * 101, "\x1b[31m"])
def test_names_that_are_none(text):
    with pytest.raises(UsageError, match="is no name for a problem"):
        Blueprint(text)


@pytest.mark.parametrize("text", ["Ada Lovelace", "yes", "# Ada", "Ada: 'x' \"y\"", "é世\U0001f600", "- a", "x" * 500])
def test_authors_are_kept(text, tmp_path):
    problem = ProblemConfig.from_yaml(write_problem(Blueprint("tally", author=text), tmp_path))
    assert problem.author == text


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"kind": "gui"}, "no kind 'gui'; there are cli, http"),
        ({"language": "cobol"}, "no language 'cobol'; there are python, shell, javascript"),
        ({"kind": "http", "language": "shell"}, "choose python or javascript"),
        ({"checkpoints": 0}, "from 1 to 9"),
        ({"checkpoints": 10}, "from 1 to 9"),
        ({"author": "a\nb"}, "cannot be printed"),
        ({"author": "\udcff"}, "cannot be printed"),
    ],
)
def test_what_cannot_be_made(keys, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        Blueprint("tally", **keys)


def occupied(target: Path, how: str) -> None:
    if how == "folder":
        target.mkdir()
    elif how == "file":
        target.touch()
    else:
        target.symlink_to("nowhere")


@pytest.mark.parametrize("how", ["folder", "file", "link"])
def test_nothing_is_overwritten(how, tmp_path):
    occupied(tmp_path / "tally", how)
    with pytest.raises(UsageError, match="there is something already"):
        write_problem(Blueprint("tally"), tmp_path)
    assert os.listdir(tmp_path) == ["tally"]


def test_a_problem_is_whole_or_not_there(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(UsageError, match="cannot be written there: No space left on device"):
        write_problem(Blueprint("tally"), tmp_path)
    assert os.listdir(tmp_path) == []


def test_where_no_folder_can_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written there"):
        write_problem(Blueprint("tally"), tmp_path / "file")


def need_program(language: str) -> None:
    """Skips where a machine has no such thing; where every check counts that is a failure."""
    program = LANGUAGES[language].program
    if language == "python" or shutil.which(program, path=PATH):
        return
    missing = f"no {program} where submissions find programs; Debian's package is {LANGUAGES[language].package}"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)


def findings(bench: Workbench, steps: Sequence[str]) -> list[str]:
    reports = [check_step(bench, name) for name in steps]
    assert [(report.broken, report.blocked) for report in reports] == [(None, None)] * len(steps)
    return [
        f"{one.place} {one.graveness} {one.rule.id}: {one.message}"
        for report in reports
        for one in report.outcome.findings
    ]


@ALL
def test_its_last_reference_passes_all_its_tests(kind, language, tmp_path, cache, need_bubblewrap):
    """One evaluation of the largest problem there is: the tests of all checkpoints run at the last one."""
    need_bubblewrap()
    need_program(language)
    problem = ProblemConfig.from_yaml(write_problem(Blueprint("tally", kind, MOST_CHECKPOINTS, language), tmp_path))
    bench = Workbench(problem, environment_for(problem, None))
    assert findings(bench, ["layout"]) == []
    results = bench.reference(problem.checkpoint(MOST_CHECKPOINTS))
    assert [test.id for test in results.tests if test.status != "passed"] == []
    assert {test.checkpoint for test in results.tests} == set(problem.checkpoints)
    assert not results.infrastructure_failure


@pytest.mark.timeout(600)
def test_it_is_sound_by_every_step(tmp_path, cache, need_bubblewrap):
    need_bubblewrap()
    problem = ProblemConfig.from_yaml(write_problem(Blueprint("tally", checkpoints=1), tmp_path))
    effort = Effort(repeat=1, budget=Budget(mutants=1))
    assert findings(Workbench(problem, environment_for(problem, None), effort=effort), STEPS) == []
