"""Files that `problems new` writes, and their soundness."""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from slop_code.authoring.check.steps import STEPS, check_step
from slop_code.authoring.check.strength.mutant import MutantBudget
from slop_code.authoring.check.workbench import Effort, Workbench
from slop_code.authoring.new.scaffold import KINDS, Blueprint, files_of, write_problem
from slop_code.authoring.problem_folders import environment_for
from slop_code.errors import UsageError
from slop_code.evaluation.config import AssetConfig, CheckpointConfig, MarkerConfig, ProblemConfig
from slop_code.execution.environment import load_environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ALL = pytest.mark.parametrize("kind", KINDS)


@ALL
def test_every_checkpoint_has_its_files(kind):
    files = files_of(Blueprint("tally", kind))
    for number in (1, 2):
        name = f"checkpoint_{number}"
        assert {f"{name}.md", f"tests/test_{name}.py", f"solutions/{name}/main.py"} <= set(files)
        marks = set(re.findall(r"pytest\.mark\.(\w+)", files[f"tests/test_{name}.py"]))
        assert {"functionality", "error"} <= marks
        assert ("regression" in marks) == (number == 2)
    assert ".gitignore" in files
    assert len(files["solutions/checkpoint_1/main.py"]) < len(files["solutions/checkpoint_2/main.py"])


@ALL
def test_nothing_of_the_templates_is_left(kind):
    for path, text in files_of(Blueprint("tally", kind)).items():
        assert not re.search(r"@\w+@", text), path
        assert text.endswith("\n")
        assert not re.search(r"[ \t]$", text, flags=re.M), path
        if path.endswith(".py"):
            ast.parse(text, path)


@ALL
def test_a_new_problem_loads_without_warnings(kind, tmp_path):
    folder = write_problem(Blueprint("tally", kind, "Ada"), tmp_path)
    problem = ProblemConfig.from_yaml(folder)
    assert (problem.name, problem.author, list(problem.warnings)) == ("tally", "Ada", [])
    assert list(problem.checkpoints) == ["checkpoint_1", "checkpoint_2"]
    assert environment_for(problem, None) == load_environment("local")


COMMENTED_KEY = re.compile(r"( *)# ([a-z_]+): ")


def commented_keys(config: str) -> list[str]:
    return [line for line in config.splitlines() if COMMENTED_KEY.match(line)]


def uncommented(config: str, *lines: str) -> str:
    return "".join(
        (COMMENTED_KEY.sub(r"\1\2: ", line) if line in lines else line) + "\n" for line in config.splitlines()
    )


def load_config(text: str, folder: Path) -> ProblemConfig:
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return ProblemConfig.from_yaml(folder)


@ALL
def test_each_commented_key_loads_when_it_is_uncommented(kind, tmp_path):
    folder = write_problem(Blueprint("tally", kind), tmp_path)
    config = (folder / "config.yaml").read_text(encoding="utf-8")
    plain = load_config(config, folder)
    keys = commented_keys(config)
    assert keys
    for line in keys:
        indent, key = COMMENTED_KEY.match(line).groups()
        loaded = load_config(uncommented(config, line), folder)
        with_key, without_key = (one.checkpoint(2) if indent else one for one in (loaded, plain))
        assert (key in with_key.model_fields_set, list(loaded.warnings)) == (True, []), line
        assert getattr(with_key, key) != getattr(without_key, key), line
        assert line.strip().count(" # ") == 1, f"no comment that explains the key: {line}"


@ALL
def test_the_configuration_shows_every_key_of_the_models(kind):
    config = files_of(Blueprint("tally", kind))["config.yaml"]
    keys = yaml.safe_load(uncommented(config, *commented_keys(config)))
    assert set(keys) == set(ProblemConfig.model_fields)
    assert set(keys["checkpoints"]["checkpoint_2"]) == set(CheckpointConfig.model_fields)
    assert [set(marker) for marker in keys["markers"].values()] == [set(MarkerConfig.model_fields)]
    assert [set(asset) for asset in keys["static_assets"].values()] == [set(AssetConfig.model_fields)]


@pytest.mark.parametrize("text", ["yes", "1", "1e3", "null", "x" * 100, "a.b", "A-b_c"])
def test_a_valid_name_is_kept(text, tmp_path):
    assert ProblemConfig.from_yaml(write_problem(Blueprint(text), tmp_path)).name == text


@pytest.mark.parametrize("text", ["", ".", "..", ".hidden", "-x", "a/b", "a b", "é", "a\n", "x" * 101, "\x1b[31m"])
def test_an_invalid_name_is_refused(text):
    with pytest.raises(UsageError, match="cannot be the name of a problem"):
        Blueprint(text)


@pytest.mark.parametrize("text", ["Ada Lovelace", "yes", "# Ada", "Ada: 'x' \"y\"", "é世\U0001f600", "- a", "x" * 500])
def test_the_author_is_written_as_given(text, tmp_path):
    problem = ProblemConfig.from_yaml(write_problem(Blueprint("tally", author=text), tmp_path))
    assert problem.author == text


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"kind": "gui"}, "no kind 'gui'; choose cli or http"),
        ({"author": "a\nb"}, "cannot be printed"),
        ({"author": "\udcff"}, "cannot be printed"),
    ],
)
def test_an_invalid_choice_is_refused(keys, message):
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
def test_an_existing_path_is_never_overwritten(how, tmp_path):
    occupied(tmp_path / "tally", how)
    with pytest.raises(UsageError, match="exists already"):
        write_problem(Blueprint("tally"), tmp_path)
    assert os.listdir(tmp_path) == ["tally"]


def test_a_problem_is_whole_or_not_there(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(UsageError, match="cannot write the problem there: No space left on device"):
        write_problem(Blueprint("tally"), tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_parent_that_is_a_file_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write the problem there"):
        write_problem(Blueprint("tally"), tmp_path / "file")


def findings(bench: Workbench, steps: Sequence[str]) -> list[str]:
    reports = [check_step(bench, name) for name in steps]
    assert [(report.broken, report.blocked) for report in reports] == [(None, None)] * len(steps)
    return [
        f"{one.location} {one.severity} {one.rule.id}: {one.message}"
        for report in reports
        for one in report.outcome.findings
    ]


@ALL
def test_its_last_reference_passes_all_its_tests(kind, tmp_path, cache, need_bubblewrap):
    """One evaluation runs all tests: those of both checkpoints run at the second."""
    need_bubblewrap()
    problem = ProblemConfig.from_yaml(write_problem(Blueprint("tally", kind), tmp_path))
    bench = Workbench(problem, environment_for(problem, None))
    assert findings(bench, ["layout"]) == []
    results = bench.reference(problem.checkpoint(2))
    assert [test.id for test in results.tests if test.status != "passed"] == []
    assert {test.checkpoint for test in results.tests} == set(problem.checkpoints)
    assert not results.infrastructure_failure


@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_is_sound_by_every_step(tmp_path, cache, need_bubblewrap):
    need_bubblewrap()
    problem = ProblemConfig.from_yaml(write_problem(Blueprint("tally"), tmp_path))
    effort = Effort(repeat=1, budget=MutantBudget(mutants=1))
    first = [problem.checkpoint(1)]
    assert findings(Workbench(problem, environment_for(problem, None), checkpoints=first, effort=effort), STEPS) == []
