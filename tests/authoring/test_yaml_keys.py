"""Lines of keys in YAML files."""

from __future__ import annotations

import pytest

from slop_code.authoring.check.yaml_keys import line_of_key

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
    ("keys", "line"),
    [
        (["name"], 2),
        (["checkpoints"], 3),
        (["checkpoints", "checkpoint_1", "order"], 5),
        (["checkpoints", "checkpoint_2", "time_out"], 6),
        (["checkpoints", "checkpoint_2", "nothing"], 6),
        (["checkpoints", "checkpoint_3", "order"], 3),
        (["static_assets", "words.txt", "path"], 9),
        (["nothing"], None),
        ([], None),
    ],
)
def test_line_of_a_key(keys, line):
    assert line_of_key(CONFIG, *keys) == line


@pytest.mark.parametrize("text", ["", "a: [", "- a", "\t", "a: &x [*x]\n*x", "[" * 5000, "x" * 300_000, "a: \0"])
def test_a_file_that_is_not_a_mapping_has_no_lines(text):
    assert line_of_key(text, "b") is None
