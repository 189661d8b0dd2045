"""`slop-code compare` as a user meets it."""

import pytest

from slop_code.cli.main import run
from slop_code.comparison.records import Comparison
from tests.factories import write_run


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Run folders beside each other. Tests only read them, and write beside them."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "base", {"words": ["+-"]})
    write_run(folder / "better", {"words": ["++"]})
    write_run(folder / "worse", {"words": ["--"]})
    write_run(folder / "broken", {"words": ["!"]})
    write_run(folder / "long", {"words": ["+", "+"]})
    write_run(folder / "half", {"words": ["+", "!"]})
    write_run(folder / "short", {"words": ["+"]})
    write_run(folder / "bad", {"words": ["-", "!"]})
    write_run(folder / "elsewhere", {"sums": ["++"]})
    write_run(folder / "again", {"words": ["--"]}, submission=str(folder / "base"))
    return folder


@pytest.fixture
def runs(written, monkeypatch):
    monkeypatch.chdir(written)
    return written


@pytest.mark.parametrize(
    ("sides", "status"),
    [
        ("base better", 0),
        ("better base", 1),
        ("base worse", 1),
        ("base again", 0),  # chance is no loss
        ("base better worse", 1),
        ("base broken", 3),
        ("base better broken", 3),
        ("long half", 3),
        ("long short", 3),
        ("half long", 0),
        ("long bad", 1),  # what was lost is known
        ("base worse broken", 1),
        ("base elsewhere", 2),
        ("base nowhere", 2),
        ("base base", 2),
        ("base", 2),
    ],
)
def test_the_exit_status_says_whether_something_was_lost(runs, capsys, sides, status):
    assert run(["compare", *sides.split()]) == status
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert bool(said.err) == (status == 2)


def test_the_policy_decides_about_checkpoints(runs, capsys):
    run(["compare", "base", "better", "--pass-policy", "any"])
    assert capsys.readouterr().out.splitlines()[-1].startswith("better passes as many checkpoints as base (any)")


def test_new_tests_can_make_a_checkpoint_lost(runs):
    write_run(runs / "more", {"words": ["+--"]})
    write_run(runs / "whole", {"words": ["+"]})
    assert run(["compare", "whole", "more"]) == 1


def test_json_output_loads_as_a_comparison(runs, capsys):
    assert run(["compare", "base", "worse", "--json"]) == 1
    document = Comparison.model_validate_json(capsys.readouterr().out, strict=True)
    assert document.pairs[0].changed_tests["lost"] == 1


def test_a_page_is_written_to_the_named_file(runs, capsys):
    assert run(["compare", "base", "better", "-o", "out.html"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "written: out.html"
    assert (runs / "out.html").read_text().startswith("<!doctype html>")


def test_a_page_never_overwrites_a_file_of_somebody_else(runs, capsys):
    (runs / "mine.html").write_text("mine")
    assert run(["compare", "base", "better", "-o", "mine.html"]) == 2
    assert (runs / "mine.html").read_text() == "mine"
    assert run(["compare", "base", "nowhere", "-o", "mine.html"]) == 2  # that is said before anything is read
    assert capsys.readouterr().err.count("mine.html: exists") == 2
