"""Tables and lines of a comparison."""

import io

import pytest
from rich.console import Console

from slop_code.comparison.diff import compare_sides
from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.compare_table import (
    SHOWN_CHECKPOINTS,
    SHOWN_REASONS,
    SHOWN_TESTS,
    format_p_value,
    show_comparison,
)
from tests.factories import write_run

HOSTILE = "\x1b]0;owned\x07[red]\r\nFAKE\u202e"
ESCAPED = "\\x1b]0;owned\\x07[red]\\r\\nFAKE\\u202e"


def shown(*folders, verbose=False, terminal=False, width=100):
    console = Console(file=io.StringIO(), width=width, highlight=False, force_terminal=terminal, color_system=None)
    show_comparison(compare_sides(folders, PassPolicy.ALL_CASES, samples=True)[0], console, verbose=verbose)
    return console.file.getvalue().splitlines()


def test_changed_checkpoints_of_two_runs_are_listed(tmp_path):
    base = write_run(tmp_path / "base", {"words": ["++", "+-", "+", "+"], "old": ["+"]})
    other = write_run(tmp_path / "other", {"words": ["+-", "++", "+s+", "!"]})
    assert shown(base, other) == [
        "base (1 run) -> other (1 run)",
        "checkpoint words/checkpoint_1: PASSED -> NOT PASSED, lost 1",
        "checkpoint words/checkpoint_2: NOT PASSED -> PASSED, gained 1",
        "checkpoint words/checkpoint_3: PASSED -> NOT PASSED, added 2",
        "checkpoint words/checkpoint_4: PASSED -> NO VERDICT",
        "lost words/checkpoint_1 test_checkpoint_1.py::test_1: passed -> failed",
        "gained words/checkpoint_2 test_checkpoint_1.py::test_1: failed -> passed",
        "not compared, only in base: old",
        "no verdict other/words/checkpoint_4: killed: E   assert 1 == 2",
        "no p-value: base and other are one run each: how far runs differ by chance is not known; "
        "compare folders of two runs or more",
        "other passes 1 checkpoint fewer than base (all-cases): "
        "gained 1 test, lost 1, added 2 (each once per checkpoint); no verdict in other: words/checkpoint_4",
    ]
    assert "added words/checkpoint_3 test_checkpoint_1.py::test_1: not there -> skipped" in shown(
        base, other, verbose=True
    )


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (["+", "+"], ["+", "+"], "b passes as many checkpoints as a (all-cases): no test differs"),
        (["-", "-"], ["+", "+"], "b passes 2 checkpoints more than a (all-cases): gained 2 tests, lost 0 "
         "(each once per checkpoint)"),
        (["-"], ["+"], "b passes 1 checkpoint more than a (all-cases): gained 1 test, lost 0"),
        (["+", "!"], ["-", "+"], "b passes 1 checkpoint fewer than a (all-cases): gained 0 tests, lost 1; "
         "no verdict in a: words/checkpoint_2"),
        (["+", "+"], ["+", "!"], "b passes as many checkpoints as a (all-cases): no test differs; "
         "no verdict in b: words/checkpoint_2"),
        (["+", "+"], ["+"], "b passes as many checkpoints as a (all-cases): no test differs; "
         "no verdict in b: words/checkpoint_2"),
        (["+"] * 7, ["+", *"!!!!!!"], "b passes as many checkpoints as a (all-cases): no test differs; "
         "no verdict in b: words/checkpoint_2, words/checkpoint_3, words/checkpoint_4 and 3 more"),
        (["-e"], ["-s"], "b passes as many checkpoints as a (all-cases): no test differs"),
        (["!"], ["+"], "NOTHING COMPARED: no checkpoint has a verdict on both sides"),
    ],
)  # fmt: skip
def test_the_last_line_is_the_verdict(tmp_path, before, after, verdict):
    folders = [write_run(tmp_path / name, {"words": marks}) for name, marks in (("a", before), ("b", after))]
    assert shown(*folders)[-1] == verdict


def test_a_status_that_differs_for_the_same_submission_is_flaky(tmp_path):
    folders = [
        write_run(tmp_path / name, {"words": [mark]}, submission="same") for name, mark in (("a", "+"), ("b", "-"))
    ]
    said = shown(*folders)
    assert said[1] == "checkpoint words/checkpoint_1: PASSED -> NOT PASSED, flaky 1"
    assert said[-1].endswith("gained 0 tests, lost 0, flaky 1")


def test_another_judge_is_named(tmp_path):
    folders = [
        write_run(tmp_path / name, {"words": [mark]}, submission="same") for name, mark in (("a", "+"), ("b", "-"))
    ]
    path = folders[1] / "words/checkpoint_1/evaluation.json"
    path.write_text(path.read_text().replace('"python": "3.12.1"', '"python": "4"'))
    said = shown(*folders)
    assert "rejudged: the same submissions, but these differ: the Python of the tests" in said
    assert said[-1].endswith("gained 0 tests, lost 0, rejudged 1")


def test_several_runs_have_shares_and_p(tmp_path):
    for side, marks in (("a", "--"), ("b", "++-")):
        for number, mark in enumerate(marks):
            write_run(tmp_path / side / f"run_{number}", {"words": [mark, "+"]})
    assert shown(tmp_path / "a", tmp_path / "b") == [
        "a (2 runs) -> b (3 runs)",
        "checkpoint words/checkpoint_1: 0/2 -> 2/3, gained 1, p 0.8 (Holm)",
        "checkpoint words/checkpoint_2: 2/2 -> 3/3, p 1 (Holm)",
        "gained words/checkpoint_1 test_checkpoint_1.py::test_0: 0/2 passed -> 2/3 passed",
        "checkpoints: a 50.0%, b 83.3% of 2 checkpoints, p = 0.4 (permutation test over all 10 arrangements)",
        "problems solved: a 0.0%, b 66.7% of 1 problem, p = 0.4 (permutation test over all 10 arrangements)",
        "with 2 and 3 runs no p below 0.1 is possible; checkpoints have Fisher's p, corrected by Holm",
        "b passes 83.3% of checkpoints, a 50.0% (all-cases): gained 1 test, lost 0",
    ]


@pytest.mark.e2e
def test_random_arrangements_name_their_seed(tmp_path):
    for side, mark in (("a", "-"), ("b", "+")):
        for number in range(9):
            write_run(tmp_path / side / f"run_{number}", {"words": [mark]})
    (said,) = [line for line in shown(tmp_path / "a", tmp_path / "b") if line.startswith("checkpoints:")]
    assert said.endswith("p < 0.0001 (permutation test over 20000 arrangements at random, seed 0)")


@pytest.mark.e2e
def test_many_checkpoints_have_a_row_for_each_problem(tmp_path):
    count = SHOWN_CHECKPOINTS + 1
    base = write_run(tmp_path / "base", {"words": ["+"] * count})
    other = write_run(tmp_path / "other", {"words": ["-"] * count})
    said = shown(base, other)
    assert said[1] == f"problem words: 100% -> 0.0%, lost {count}"
    assert [line.split()[0] for line in said[2:]] == [*["lost"] * SHOWN_TESTS, "...", "no", "other"]
    assert said[2 + SHOWN_TESTS] == f"... and {count - SHOWN_TESTS} more lost; -v shows all"
    assert sum(line.startswith("lost ") for line in shown(base, other, verbose=True)) == count


@pytest.mark.e2e
def test_reasons_have_an_end(tmp_path):
    base = write_run(tmp_path / "base", {"words": ["!"] * 20})
    said = shown(base, write_run(tmp_path / "other", {"words": ["+"] * 20}))
    assert sum(line.startswith("no verdict") for line in said) == SHOWN_REASONS
    assert f"... and {20 - SHOWN_REASONS} more without a verdict; -v shows all" in said


def test_a_table_on_a_terminal(tmp_path):
    base = write_run(tmp_path / "base", {"words": ["++", "+-"]})
    said = shown(base, write_run(tmp_path / "other", {"words": ["+-", "++"]}), terminal=True, width=70)
    assert said[1].split() == ["checkpoint", "base", "other", "lost", "gained"]
    assert said[3:5] == ["words", "  checkpoint_1 PASSED     NOT PASSED    1      -"]
    assert max(map(len, said[:6])) <= 70


def test_a_narrow_table_keeps_names_and_lost_tests(tmp_path):
    folders = [tmp_path / f"a-rather-long-name-of-{name}" for name in ("base", "other")]
    for folder, marks in zip(folders, ("++", "+-s"), strict=True):
        write_run(folder, {"words": [marks]})
    wide, narrow, none = (shown(*folders, terminal=True, width=width) for width in (78, 77, 71))
    assert wide[1].split() == ["checkpoint", "…r-long-name-of-base", "…-long-name-of-other", "lost", "gained", "added"]
    assert narrow[1].split() == wide[1].split()[:-1]
    assert none[1] == "checkpoint words/checkpoint_1: PASSED -> NOT PASSED, lost 1, added 1"


def test_the_largest_difference_comes_first_and_what_was_lost_before_what_was_gained(tmp_path):
    runs = {"a": ["+++-", "+++-", "+++-"], "b": ["++-+", "-+-+", "-+-+"]}
    for side, found in runs.items():
        for number, marks in enumerate(found):
            write_run(tmp_path / side / f"run_{number}", {"words": [marks]})
    said = shown(tmp_path / "a", tmp_path / "b")
    assert [line.split(":")[0] + line.split("::")[1][:6] for line in said if "::" in line] == [
        "lost words/checkpoint_1 test_checkpoint_1.pytest_2",
        "lost words/checkpoint_1 test_checkpoint_1.pytest_0",
        "gained words/checkpoint_1 test_checkpoint_1.pytest_3",
    ]


@pytest.mark.parametrize("terminal", [False, True])
def test_control_characters_in_names_are_escaped(tmp_path, terminal):
    names = [HOSTILE]
    base = write_run(tmp_path / "base", {"words": ["+", "!"]}, names=names, text=HOSTILE)
    other = write_run(tmp_path / "other", {"words": ["-", "+"]}, names=names, text=HOSTILE)
    said = "\n".join(shown(base, other, terminal=terminal, verbose=True, width=300))
    assert f"test_checkpoint_1.py::{ESCAPED}: passed -> failed" in said
    assert said.replace("\x1b[0m", "").replace("\x1b[1m", "").replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("p", "figures"), [(1.0, "1"), (1 / 3, "0.33"), (2 / 70, "0.029"), (0.00011, "0.00011"), (0.00009, "< 0.0001")]
)
def test_p_values_have_few_digits(p, figures):
    assert format_p_value(p) == figures
