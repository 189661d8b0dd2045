"""Options that name a file or a folder to write: missing folders are made, and the command names what it wrote."""

import pytest

from tests.factories import cases
from tests.reporting.html_runs import store


@pytest.fixture
def here(tmp_path, monkeypatch):
    store(tmp_path / "a", [cases("+-")])
    store(tmp_path / "b", [cases("++")])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["report", "a"], "new/folder/report.html"),
        (["compare", "a", "b"], "new/folder/compare.html"),
        (["leaderboard", "a", "b", "--format", "csv"], "new/folder/board.csv"),
        (["export", "a", "--format", "junit"], "new/folder/results.xml"),
        (["export", "a", "--format", "scb"], "new/folder"),
    ],
    ids=["report", "compare", "leaderboard", "export-file", "export-folder"],
)
def test_missing_folders_are_made_and_the_path_is_named(here, slop_code, words, output):
    status, out, _ = slop_code(*words, "-o", output)
    assert (status, (here / output).exists()) == (0, True)
    assert out.splitlines()[-1].startswith(f"written: {output}")


@pytest.mark.parametrize("words", [["report", "a"], ["compare", "a", "b"], ["export", "a", "--format", "csv"]])
def test_a_path_below_a_file_is_refused(here, slop_code, words):
    (here / "file").touch()
    status, out, err = slop_code(*words, "-o", "file/output")
    assert (status, out) == (2, "")
    assert "file is not a folder; give another path with -o" in err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["report", "a", "-o"], "-o"),
        (["eval", "a", "--overwrite", "--report"], "--report"),
        (["problems", "check", "p", "--step", "layout", "--sarif"], "--sarif"),
    ],
)
def test_a_path_whose_folder_cannot_be_made_is_refused_at_the_start(world, here, slop_code, monkeypatch, words, option):
    world.problem(name="p", count=1)
    world.run("a", snapshots={"p": ["a"]})
    monkeypatch.setenv("SCBENCH_PROBLEMS_DIR", str(world.problems))
    status, out, err = slop_code(*words, "/proc/x/report.html")
    assert (status, out) == (2, "")
    assert err == (
        "slop-code: /proc/x/report.html: nothing can be written in /proc: No such file or directory; "
        f"give another path with {option}\n"
    )


def test_a_mirrored_tree_is_made_and_named(world, slop_code, monkeypatch):
    world.problem(count=1)
    world.run(snapshots={"words": ["a"]})
    (run,) = world.discover(output=world.folder / "new/folder")
    world.finish(run.submissions[0], "+")
    monkeypatch.setenv("SCBENCH_CACHE_DIR", str(world.folder / "cache"))
    output = world.folder / "new/folder"
    status, _, err = slop_code("eval", run.input_folder, "--problems-dir", world.problems, "-o", output)
    assert (status, err.splitlines()[-1]) == (0, f"· written: {output}")
