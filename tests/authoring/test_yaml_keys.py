"""Lines of keys in YAML files."""

from __future__ import annotations

import pytest

from slop_code.authoring.check.yaml_keys import keys_of, line_of

CONFIG = """\
# A problem.
name: shout
checkpoints:
  checkpoint_1:
    order: 1  # the first
  "checkpoint_2": {order: 2, time_out: 3}
static_assets:
  words.txt:
    path: words.txt
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("name", 2),
        ("checkpoints", 3),
        ("checkpoints.checkpoint_1.order", 5),
        ("checkpoints.checkpoint_2.time_out", 6),
        ("checkpoints.checkpoint_2.nothing", 6),
        ("checkpoints.checkpoint_3.order", 3),
        ("static_assets.words.txt.path", 9),
        ("nothing", None),
        ("", None),
    ],
)
def test_line_of_a_key(key, line):
    assert line_of(CONFIG, key) == line


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("", ["name", "checkpoints", "static_assets"]),
        ("checkpoints", ["checkpoint_1", "checkpoint_2"]),
        ("static_assets.words.txt", ["path"]),
        ("name", []),
        ("nothing", []),
        ("checkpoints.checkpoint_3", []),
    ],
)
def test_keys_of_a_mapping(key, keys):
    assert keys_of(CONFIG, key) == keys


@pytest.mark.parametrize("text", ["", "a: [", "- a", "\t", "a: &x [*x]\n*x", "[" * 5000, "x" * 300_000, "a: \0"])
def test_a_file_that_is_not_a_mapping_has_no_lines(text):
    assert line_of(text, "b") is None
