"""Ends of messages about unknown words."""

import pytest

from slop_code._suggestions import MAX_COMPARED, SHOWN_NAMES, did_you_mean, near_or_known, nearest

COMMANDS = ("eval", "eval-problem", "eval-snapshot", "report", "show")


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("evla", COMMANDS, "eval"),
        ("Report", COMMANDS, "report"),
        ("eval-snapshots", COMMANDS, "eval-snapshot"),
        ("nonsense", COMMANDS, None),
        ("", COMMANDS, None),
        ("eval", (), None),
        ("chekpoint_1", ("checkpoint_1", "checkpoint_2"), "checkpoint_1"),
        ("checkpoint_9", ("checkpoint_1",), None),
        ("checkpoint_x", ("checkpoint_1", "checkpoint_2"), None),
        ("e" * (MAX_COMPARED + 1), ("e" * MAX_COMPARED,), None),
        ("e" * MAX_COMPARED, ("e" * (MAX_COMPARED + 1),), None),
    ],
)
def test_nearest(word, known, near):
    assert nearest(word, known) == near


@pytest.mark.parametrize(
    ("word", "known", "ending"),
    [
        ("evla", COMMANDS, "; did you mean 'eval'?"),
        ("odd", COMMANDS, "; there are eval, eval-problem, eval-snapshot, report, show"),
        ("odd", (), "; there are none"),
        ("odd", ("local",), "; there is local"),
        ("lardr\x1b[2J", ("larder\x1b[2J",), "; did you mean 'larder\\x1b[2J'?"),
        (
            "odd",
            [f"x{n}" for n in range(SHOWN_NAMES + 3)],
            f"; there are {', '.join(f'x{n}' for n in range(20))} and 3 more",
        ),
    ],
)
def test_near_or_known(word, known, ending):
    assert near_or_known(word, known) == ending


def test_no_word_is_its_own_correction():
    assert did_you_mean("eval", ["eval"]) == ""
