"""Problems as tasks of Harbor: what agents may see, and nothing of the tests."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from slop_code import UsageError
from slop_code.bridges.harbor_task import export_harbor_task
from slop_code.cli.main import run
from slop_code.evaluation.config import ProblemConfig

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[2] / "examples" / "problems"
SOLUTION_LINE = next(
    line.strip()
    for line in (EXAMPLES / "larder/solutions/checkpoint_3/shopping.py").read_text().splitlines()
    if len(line.strip()) > 60 and not line.strip().startswith(('"', "#", "from"))
)


@pytest.fixture
def larder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "larder", tmp_path / "larder"))


def export(problem: Path, target: Path, image: str = "python:3.12") -> Path:
    export_harbor_task(ProblemConfig.from_yaml(problem), target, image)
    return target


def add_asset(problem: Path, path: str) -> None:
    config = yaml.safe_load((problem / "config.yaml").read_text())
    config["static_assets"]["more"] = {"path": path}
    (problem / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def test_a_task_has_a_step_for_each_checkpoint_with_its_specification(larder, tmp_path):
    task = export(larder, tmp_path / "task")
    config = tomllib.loads((task / "task.toml").read_text())
    assert [step["name"] for step in config["steps"]] == ["checkpoint_1", "checkpoint_2", "checkpoint_3"]
    for step in config["steps"]:
        text = (task / "steps" / step["name"] / "instruction.md").read_text()
        assert text.startswith((larder / f"{step['name']}.md").read_text().strip())
    assert config["metadata"]["slop_code"] == {"problem": "larder", "version": "1", "workspace": "/workspace"}
    assert config["multi_step_reward_strategy"] == "final"


def test_a_task_has_the_static_assets_and_says_where_they_are(larder, tmp_path):
    task = export(larder, tmp_path / "task", "registry.example:5000/python:1@sha256:00")
    asset = (task / "environment/assets/units").read_bytes()
    assert asset == (larder / "tests/assets/units").read_bytes()
    dockerfile = (task / "environment/Dockerfile").read_text().splitlines()
    assert dockerfile[0] == "FROM registry.example:5000/python:1@sha256:00"
    assert 'ENV SCBENCH_ASSET_UNITS="/assets/units"' in dockerfile


@pytest.mark.parametrize("name", ["corkboard", "hitcount", "larder", "rollcall"])
def test_an_exported_example_has_no_file_but_these(name, tmp_path):
    task = export(EXAMPLES / name, tmp_path / "task")
    files = {path.relative_to(task).as_posix() for path in task.rglob("*") if path.is_file()}
    steps = {f"steps/{path.stem}/instruction.md" for path in (EXAMPLES / name).glob("checkpoint_*.md")}
    assets = {"environment/assets/units"} if name == "larder" else set()
    assert files == {"task.toml", "environment/Dockerfile", "tests/test.sh", *steps, *assets}


@pytest.mark.parametrize(
    ("asset", "shown"),
    [
        ("tests", "tests/conftest.py"),
        ("tests/test_checkpoint_3.py", "tests/test_checkpoint_3.py"),
        ("solutions/checkpoint_1", "solutions/checkpoint_1/"),
        ("copy", "tests/test_checkpoint_2.py"),
        ("expected.txt", "tests/data/expected/shop_all.txt"),
    ],
)
def test_an_asset_with_a_test_a_solution_or_an_expected_output_is_refused(larder, tmp_path, asset, shown):
    (larder / "copy").mkdir()
    test = (larder / "tests/test_checkpoint_2.py").read_text()
    (larder / "copy/notes.txt").write_text(f"notes\n{test}\nmore notes\n")
    shutil.copy(larder / "tests/data/expected/shop_all.txt", larder / "expected.txt")
    add_asset(larder, asset)
    with pytest.raises(UsageError, match=f"the task would show what is tested: .*{shown}"):
        export(larder, tmp_path / "task")
    assert {path.name for path in tmp_path.iterdir()} == {"larder"}, "nothing is written"


def test_a_specification_with_a_line_of_a_solution_is_refused(larder, tmp_path):
    with (larder / "checkpoint_1.md").open("a") as file:
        file.write(f"\nHint:\n\n    {SOLUTION_LINE}\n")
    with pytest.raises(UsageError, match=r"steps/checkpoint_1/instruction.md has a line of solutions/checkpoint_"):
        export(larder, tmp_path / "task")
    assert not (tmp_path / "task").exists()


def test_a_specification_may_quote_an_expected_output(larder, tmp_path):
    with (larder / "checkpoint_2.md").open("a") as file:
        file.write("\n```\n" + (larder / "tests/data/expected/shop_all.txt").read_text() + "```\n")
    export(larder, tmp_path / "task")


def test_data_of_the_tests_that_the_problem_declares_as_an_asset_is_exported(larder, tmp_path):
    add_asset(larder, "tests/data/recipes")
    task = export(larder, tmp_path / "task")
    assert (task / "environment/assets/more").is_dir()


def test_a_solution_may_have_a_copy_of_an_asset(larder, tmp_path):
    shutil.copy(larder / "tests/assets/units", larder / "solutions/checkpoint_3/units.txt")
    export(larder, tmp_path / "task")


def test_an_export_replaces_nothing(larder, tmp_path, capsys):
    target = tmp_path / "task"
    argv = ["export-task", str(larder), "--format", "harbor", "-o", str(target)]
    assert run(argv) == 0
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    assert run(argv) == 2
    assert "not empty, and nothing is replaced; give a new or an empty folder with -o" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before


def test_an_export_that_fails_leaves_nothing_and_names_its_folder(larder, tmp_path, monkeypatch, capsys):
    def refuse(source, _target):
        raise OSError(28, "No space left on device", str(source))

    monkeypatch.setattr(os, "rename", refuse)
    target = tmp_path / "new/task"
    assert run(["export-task", str(larder), "--format", "harbor", "-o", str(target)]) == 3
    assert f"{target}: No space left on device" in capsys.readouterr().err
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("image", ["python:3.12\nRUN rm -rf /", "", "a b", "-x"])
def test_a_base_image_is_the_name_of_an_image(larder, tmp_path, image):
    with pytest.raises(UsageError, match="--base-image"):
        export(larder, tmp_path / "task", image)


def test_an_asset_whose_name_means_something_in_a_dockerfile_is_refused(larder, tmp_path):
    config = yaml.safe_load((larder / "config.yaml").read_text())
    config["static_assets"] = {"units $HOME": {"path": "tests/assets/units"}}
    (larder / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(UsageError, match="a name that a Dockerfile cannot have"):
        export(larder, tmp_path / "task")


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (None, "the specification cannot be read: No such file or directory"),
        (b"\xff", "the specification cannot be read: it is no text in UTF-8"),
        (b" \n", "empty"),
    ],
)
def test_a_checkpoint_without_a_specification_is_no_step(larder, tmp_path, content, fact):
    path = larder / "checkpoint_2.md"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(UsageError) as raised:
        export(larder, tmp_path / "task")
    step = "a task needs the specification of every checkpoint: write it there"
    assert str(raised.value) == f"{path}: {fact}; {step}"
    assert not (tmp_path / "task").exists()


def test_a_text_of_the_problem_stays_one_in_the_task(larder, tmp_path):
    config = yaml.safe_load((larder / "config.yaml").read_text())
    config["description"] = 'Says "x"\n[verifier]\x7f\ttimeout_sec = 1 \\ ü'
    (larder / "config.yaml").write_text(yaml.safe_dump(config))
    loaded = tomllib.loads((export(larder, tmp_path / "task") / "task.toml").read_text())
    assert loaded["task"]["description"] == config["description"]
