"""`slop-code leaderboard` over results that were made by hand."""

import json

import pytest

from tests.leaderboard_runs import write_agent_run


@pytest.fixture
def runs(tmp_path):
    for name, marks, cost in (("aurora", ["+", "+"], 2), ("basalt", ["+", "-"], 1)):
        write_agent_run(tmp_path / "runs" / name, {"words": marks}, config={"model": name}, usage={"cost": cost})
    return tmp_path / "runs"


def names(text):
    return [row["name"] for row in json.loads(text)["rows"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["aurora", "basalt"]),
        (["--sort", "cost"], ["basalt", "aurora"]),
        (["--pass-policy", "core == 0"], ["basalt", "aurora"]),
        (["--pass-policy", "core == 0", "--sort", "strict_share"], ["aurora", "basalt"]),
        (["--pass-policy", "core == 0", "--sort", "passed core == 0"], ["basalt", "aurora"]),
    ],
)
def test_rows_are_sorted_by_policy_or_column(options, expected, runs, slop_code):
    status, printed, _ = slop_code("leaderboard", runs, "--format", "json", *options)
    assert (status, names(printed)) == (0, expected)


@pytest.mark.parametrize("name", ["table", "csv", "json", "markdown"])
def test_a_file_has_what_is_printed(name, runs, slop_code, tmp_path):
    file = tmp_path / "made" / "leaderboard"
    assert slop_code("leaderboard", runs, "--format", name, "-o", file) == (0, f"written: {file}\n", "")
    status, printed, _ = slop_code("leaderboard", runs, "--format", name)
    assert (status, printed.replace("\r\n", "\n")) == (0, file.read_text(encoding="utf-8").replace("\r\n", "\n"))


def test_an_unknown_column_is_wrong_use(runs, slop_code):
    status, printed, message = slop_code("leaderboard", runs, "--sort", "stars\x1b")
    assert (status, printed) == (2, "")
    assert message.startswith("slop-code: --sort stars\\x1b: no such column; there are name, model,")


def test_a_result_is_never_replaced(runs, slop_code):
    result = runs / "aurora/words/checkpoint_1/evaluation.json"
    before = result.read_bytes()
    status, _, message = slop_code("leaderboard", runs, "-o", result)
    assert (status, result.read_bytes()) == (2, before)
    assert "a file name of runs or of the results themselves" in message


def test_a_result_that_cannot_be_read_is_missing(runs, slop_code):
    (runs / "aurora/words/checkpoint_2/evaluation.json").write_text("{", encoding="utf-8")
    status, printed, message = slop_code("leaderboard", runs, "--format", "json")
    rows = {row["name"]: row["totals"] for row in json.loads(printed)["rows"]}
    assert (status, rows["aurora"]["checkpoints"]["not_evaluated"]) == (3, 1)
    assert rows["aurora"]["rates"]["strict"]["share"] == 0.5
    assert "unreadable result" in message
