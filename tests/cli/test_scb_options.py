"""Flags that SlopCodeBench users type: each is parsed like the flag of slop-code that it stands for."""

from __future__ import annotations

import pytest

from slop_code.cli.main import parse, run

FLAGS = [
    ("eval RUN --env-config FILE", "eval RUN -e FILE"),
    ("eval RUN -e FILE", "eval RUN --environment FILE"),
    ("eval RUN --problem a --problem b", "eval RUN --problem=a --problem=b"),
    ("eval RUN --pass-policy core-cases", "eval RUN --pass-policy=core-cases"),
    ("eval RUN --pass-policy strict", "eval RUN --pass-policy=strict"),
    ("eval RUN -proc 4", "eval RUN -j 4"),
    ("eval RUN -proc=4", "eval RUN -j 4"),
    ("eval RUN --num-workers 4", "eval RUN -j4"),
    ("eval RUN --overwrite", "eval --overwrite RUN"),
    ("eval RUN --live-progress", "eval --live-progress RUN"),
    ("eval RUN --no-live-progress", "eval --no-live-progress RUN"),
    ("eval RUN --save-dir OUT", "eval RUN -o OUT"),
    ("eval-problem DIR -p NAME", "eval-problem DIR --problem NAME"),
    ("eval-problem DIR --problem-name NAME", "eval-problem DIR -p NAME"),
    ("eval-problem DIR -pNAME", "eval-problem DIR -p NAME"),
    ("eval-problem DIR -p NAME -proc 2", "eval-problem DIR -p NAME -j 2"),
    ("eval-problem DIR --env-config FILE", "eval-problem DIR -e FILE"),
    ("eval-problem DIR --snapshot-dir NAME", "eval-problem DIR --snapshot-dir=NAME"),
    ("eval-problem DIR --save-dir OUT", "eval-problem DIR -o OUT"),
    ("eval-snapshot DIR -p P -c 1 -e FILE -o OUT --json", "eval-snapshot DIR -o OUT -e FILE -c 1 -p P --json"),
    ("eval-snapshot DIR -p P -c 1 --save-dir OUT", "eval-snapshot DIR -p P -c 1 -o OUT"),
    ("eval-snapshot DIR --problem-name P --checkpoint 1", "eval-snapshot DIR -p P -c 1"),
    ("eval-snapshot DIR -p P -c 1 --env-config FILE", "eval-snapshot DIR -p P -c 1 -e FILE"),
    ("regrade RUN -proc 4 --save-dir OUT --env-config FILE", "regrade RUN -j 4 -o OUT -e FILE"),
    ("metrics RUN -proc 4 --env-config FILE", "metrics RUN -j 4 -e FILE"),
    ("-v eval RUN", "eval RUN -v"),
    ("--debug eval RUN", "eval RUN -v"),
    ("--quiet eval RUN", "-q eval RUN"),
    ("--overwrite eval RUN", "eval RUN --overwrite"),
    ("--overwrite eval-problem DIR", "eval-problem DIR --overwrite"),
    ("-p PROBLEMS eval RUN", "eval RUN --problems-dir PROBLEMS"),
    ("--problem-path PROBLEMS eval RUN", "eval RUN --problems-dir PROBLEMS"),
    ("-p PROBLEMS eval-snapshot DIR -p P -c 1", "eval-snapshot DIR -p P -c 1 --problems-dir PROBLEMS"),
    ("-p PROBLEMS eval RUN --problems-dir OTHER", "eval RUN --problems-dir OTHER"),
    ("--snapshot-dir-name code eval RUN", "eval RUN --snapshot-dir code"),
    ("--snapshot-dir-name code eval-problem DIR", "eval-problem DIR --snapshot-dir code"),
    ("--snapshot-dir-name code eval RUN --snapshot-dir other", "eval RUN --snapshot-dir other"),
    ("--snapshot-dir-name code eval RUN --snapshot-dir snapshot", "eval RUN --snapshot-dir snapshot"),
    ("--snapshot-dir-name code eval-problem DIR --snapshot-dir snapshot", "eval-problem DIR"),
    ("--snapshot-dir-name code regrade RUN --snapshot-dir snapshot", "regrade RUN"),
    ("--seed 7 eval RUN", "eval RUN"),
    ("--overwrite -p PROBLEMS --snapshot-dir-name code report RUN", "report RUN"),
]


@pytest.mark.parametrize(("theirs", "ours"), FLAGS, ids=[theirs for theirs, _ in FLAGS])
def test_a_flag_is_parsed_like_our_own(theirs, ours):
    assert parse(theirs.split()) == parse(ours.split())


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("eval RUN -proc 4", "num_workers", 4),
        ("-q eval RUN", "quiet", True),
        ("eval RUN", "quiet", False),
        ("--debug eval RUN", "verbose", True),
        ("--overwrite eval RUN", "overwrite", True),
        ("--snapshot-dir-name code eval RUN", "snapshot_dir", "code"),
        ("eval RUN", "snapshot_dir", "snapshot"),
        ("eval RUN --exit-zero", "exit_zero", True),
    ],
)
def test_a_flag_has_its_value(words, name, value):
    assert getattr(parse(words.split()), name) == value


def test_nothing_of_the_aliases_is_left_in_the_arguments():
    assert not [name for name in vars(parse(["eval", "RUN"])) if name.startswith("before")]


def test_seed_says_that_it_has_no_effect(capsys):
    parse(["--seed", "7", "eval", "RUN"])
    assert capsys.readouterr().err == "· --seed has no effect: no verdict depends on random numbers\n"


@pytest.mark.parametrize("words", ["eval RUN -proc 0", "eval RUN -proc many", "--seed x eval RUN", "eval RUN -pro 2"])
def test_a_wrong_value_is_wrong_use(words, capsys):
    assert run(words.split()) == 2
    assert "error: " in capsys.readouterr().err
