import pytest

from slop_code.authoring.problem_folders import problem_folders
from slop_code.errors import UsageError


@pytest.fixture
def base(tmp_path, monkeypatch):
    """Problems in `problems` and in `mine`, and a folder without any."""
    for name in ("problems/a", "problems/b", "mine/c", "empty"):
        (tmp_path / name).mkdir(parents=True)
        if name != "empty":
            (tmp_path / name / "config.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCBENCH_PROBLEMS_DIR", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "folder", "found"),
    [
        ([], None, ["problems/a", "problems/b"]),
        ([], "mine", ["mine/c"]),
        (["a"], None, ["problems/a"]),
        (["c"], "mine", ["mine/c"]),
        (["mine/c", "problems"], None, ["mine/c", "problems/a", "problems/b"]),
        (["problems", "b"], None, ["problems/a", "problems/b"]),
    ],
    ids=["all", "all of another", "name", "name in another", "path and folder", "twice"],
)
def test_problems_are_found_by_name_and_by_folder(base, given, folder, found):
    assert [str(path) for path in problem_folders(given, folder and base.relative_to(base) / folder)] == found


def test_the_current_folder_is_the_problem_inside_of_one(base, monkeypatch):
    monkeypatch.chdir(base / "mine/c")
    assert [str(path) for path in problem_folders([], None)] == ["."]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["empty"], "^empty has no config.yaml$"),
        (["z"], "no problem 'z' in problems: there are a, b; give"),
        (["./z"], "z: no such folder"),
        (["mine/c/config.yaml"], "mine/c/config.yaml: a file; give the folder of the problem"),
    ],
    ids=["empty", "name", "path", "file"],
)
def test_an_argument_without_a_problem_is_a_usage_error(base, given, said):
    with pytest.raises(UsageError, match=said):
        problem_folders(given, None)


def test_an_empty_problems_folder_is_a_usage_error(base):
    with pytest.raises(UsageError, match=r"has no problem, and the current folder has no config.yaml; give"):
        problem_folders([], base / "empty")
