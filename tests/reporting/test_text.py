"""Escaping, truncation, numbers and durations."""

import subprocess

import pytest

from slop_code.reporting.text import (
    LINE_WIDTH,
    TEXT_BYTES,
    file_safe,
    format_clock,
    format_percent,
    one_line,
    shell_word,
    truncate,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a", "a"), ("a\nb\tc", "a\\nb\\tc"), ("x" * (LINE_WIDTH + 2), "x" * LINE_WIDTH + " [... 2 characters]")],
)
def test_a_text_is_printed_in_one_line(text, shown):
    assert one_line(text) == shown


def test_long_text_is_truncated():
    assert (truncate("abc", 3), truncate("abcd", 3)) == ("abc", "abc [... 1 characters]")
    assert len(file_safe("x" * 10 * TEXT_BYTES)) <= TEXT_BYTES


@pytest.mark.e2e
@pytest.mark.parametrize(
    "text",
    ["", "plain", "a b", "it's", "$HOME `x`", "\x1b[31m\x07", "a\nb\tc", "back\\slash'\x7f", "ü\u202e\U000e0001"],
)
def test_a_shell_reads_the_word_back(text):
    word = shell_word(text)
    assert word.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert done.stdout.decode("utf-8") == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0%"),
        (1.0, "100%"),
        (0.5, "50.0%"),
        (0.29, "29.0%"),
        (2 / 3, "66.7%"),
        (1 / 3, "33.3%"),
        (0.0625, "6.3%"),
        (0.99999, "99.9%"),
        (0.00001, "0.1%"),
    ],
)
def test_only_all_is_100_percent_and_only_none_is_0_percent(share, text):
    assert format_percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0.0 s"), (59.4, "59.4 s"), (59.6, "1:00"), (100.0, "1:40"), (7265.0, "2:01:05")]
)
def test_times_are_printed_as_on_a_clock(seconds, shown):
    assert format_clock(seconds) == shown
