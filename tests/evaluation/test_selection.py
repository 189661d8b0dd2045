from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slop_code.errors import ConfigError, UsageError
from slop_code.evaluation.selection import checkpoint_files, checkpoint_of, checkpoints_to_run, select

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["checkpoint_1", "checkpoint_2", "checkpoint_10"]


def folder_with(problem: Path, *names: str) -> Path:
    folder = problem / "tests"
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


@pytest.mark.parametrize(
    ("file_name", "names", "expected"),
    [
        ("test_checkpoint_1.py", NAMES, "checkpoint_1"),
        ("test_checkpoint_10.py", NAMES, "checkpoint_10"),
        ("test_checkpoint_1_errors.py", NAMES, "checkpoint_1"),
        ("test_checkpoint_10_errors.py", NAMES, "checkpoint_10"),
        ("test_checkpoint_1_0.py", NAMES, "checkpoint_1"),
        ("test_checkpoint_100.py", NAMES, None),
        ("test_checkpoint_1errors.py", NAMES, None),
        ("test_checkpoint_1.txt", NAMES, None),
        ("test_checkpoint_1.pyc", NAMES, None),
        ("checkpoint_1.py", NAMES, None),
        ("checkpoint_1_test.py", NAMES, None),
        ("conftest.py", NAMES, None),
        ("test_a_b.py", ["a", "a_b"], "a_b"),
        ("test_a_b.py", ["a_b", "a"], "a_b"),
        ("test_a_c.py", ["a", "a_b"], "a"),
        ("test_a.b.py", ["a", "a.b"], "a.b"),
        ("test_a.py", [], None),
    ],
)
def test_the_checkpoint_of_a_file(file_name, names, expected):
    assert checkpoint_of(file_name, names) == expected


@pytest.mark.parametrize(
    ("current", "include_prior", "expected"),
    [
        ("checkpoint_1", True, ["checkpoint_1"]),
        ("checkpoint_2", True, ["checkpoint_1", "checkpoint_2"]),
        ("checkpoint_2", False, ["checkpoint_2"]),
        ("checkpoint_10", True, NAMES),
        ("checkpoint_10", False, ["checkpoint_10"]),
    ],
)
def test_the_checkpoints_that_run(current, include_prior, expected):
    assert checkpoints_to_run(NAMES, current, include_prior=include_prior) == expected


def test_a_checkpoint_that_is_not_configured():
    with pytest.raises(UsageError, match="no checkpoint 'x'; there are checkpoint_1"):
        checkpoints_to_run(NAMES, "x", include_prior=True)


def selected(root, names, current, include_prior=True):
    return select(root, names, checkpoint_files(root, names, current, include_prior))


FILES = [
    "__init__.py",
    "__pycache__/conftest.cpython-312.pyc",
    ".pytest_cache/README.md",
    "conftest.py",
    "data/checkpoint_2/case.json",
    "data/stale.pyc",
    "deep/test_checkpoint_1_deep.py",
    "deep/test_checkpoint_10.py",
    "deep/test_helpers.py",
    "helpers.py",
    "test_checkpoint_1.py",
    "test_checkpoint_10.py",
    "test_checkpoint_2.py",
    "test_checkpoint_2_more.py",
    "test_everything.py",
]
HELPERS = [
    "__init__.py",
    "conftest.py",
    "data/checkpoint_2/case.json",
    "deep/test_helpers.py",
    "helpers.py",
    "test_everything.py",
]


@pytest.mark.parametrize(
    ("current", "include_prior", "run"),
    [
        ("checkpoint_1", True, ["deep/test_checkpoint_1_deep.py", "test_checkpoint_1.py"]),
        (
            "checkpoint_2",
            True,
            [
                "deep/test_checkpoint_1_deep.py",
                "test_checkpoint_1.py",
                "test_checkpoint_2.py",
                "test_checkpoint_2_more.py",
            ],
        ),
        ("checkpoint_2", False, ["test_checkpoint_2.py", "test_checkpoint_2_more.py"]),
        ("checkpoint_10", False, ["deep/test_checkpoint_10.py", "test_checkpoint_10.py"]),
    ],
)
def test_test_files_are_selected_by_checkpoint(tmp_path, current, include_prior, run):
    root = folder_with(tmp_path, *FILES)
    selection = selected(root, NAMES, current, include_prior)
    assert selection.root == root
    assert list(selection.run) == run
    assert sorted(map(str, selection.files)) == sorted(HELPERS + run)
    assert list(selection.files) == sorted(selection.files)
    deep = ["deep/test_helpers.py"] if any(name.startswith("deep/") for name in run) else []
    assert list(selection.unattributed) == [*deep, "test_everything.py"]


def test_run_follows_the_order_of_the_checkpoints(tmp_path):
    root = folder_with(tmp_path, "test_a.py", "test_b.py")
    assert selected(root, ["b", "a"], "a").run == ("test_b.py", "test_a.py")


def test_the_files_of_a_checkpoint_begin_with_its_own_tests(tmp_path):
    root = folder_with(tmp_path, "conftest.py", *(f"test_checkpoint_{number}.py" for number in (1, 2, 3)))
    names = [f"checkpoint_{number}" for number in (1, 2, 3)]
    assert checkpoint_files(root, names, "checkpoint_3", True) == [
        "test_checkpoint_3.py",
        "test_checkpoint_1.py",
        "test_checkpoint_2.py",
        "conftest.py",
    ]
    assert checkpoint_files(root, names, "checkpoint_2", False) == ["test_checkpoint_2.py", "conftest.py"]


@pytest.mark.parametrize("names", [(), ("conftest.py", "test_checkpoint_10.py")])
def test_no_tests_for_the_checkpoint(tmp_path, names):
    folder = folder_with(tmp_path, *names)
    with pytest.raises(ConfigError) as caught:
        checkpoint_files(folder, NAMES, "checkpoint_1", True)
    assert str(caught.value) == f"{tmp_path}: no tests for 'checkpoint_1'; expected tests/test_checkpoint_1.py"


def test_a_file_of_another_checkpoint_may_be_meant(tmp_path):
    folder = folder_with(tmp_path, "conftest.py", "test_checkpoint_2.py")
    with pytest.raises(ConfigError, match=r"expected tests/test_checkpont_2.py; did you mean 'checkpoint_2'\?$"):
        checkpoint_files(folder, ["checkpoint_1", "checkpont_2"], "checkpont_2", True)


def test_links_inside_the_problem_are_followed(tmp_path):
    root = folder_with(tmp_path, "test_a.py")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "case.json").touch()
    (root / "data").symlink_to("../shared")
    (root / "test_a_linked.py").symlink_to("test_a.py")
    selection = selected(root, ["a"], "a")
    assert list(map(str, selection.files)) == ["data/case.json", "test_a.py", "test_a_linked.py"]
    assert selection.run == ("test_a.py", "test_a_linked.py")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("../../outside", "a link that leaves"),
        ("/etc/hostname", "a link that leaves"),
        ("gone", "leads nowhere"),
        ("link", "leads nowhere"),
        (".", "a link to a folder that it lies in"),
        ("../tests", "a link to a folder that it lies in"),
    ],
)
def test_links_that_are_refused(tmp_path, target, message):
    (tmp_path / "outside").touch()
    root = folder_with(tmp_path / "problem", "test_a.py")
    (root / "link").symlink_to(target)
    with pytest.raises(ConfigError, match=message):
        selected(root, ["a"], "a")
