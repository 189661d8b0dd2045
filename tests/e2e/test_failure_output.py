"""The terminal after an evaluation that did not pass."""

import re
from pathlib import Path

import pytest

from slop_code.evaluation.report import CorrectnessResults
from slop_code.reporting.failures.failure_causes import checkpoint_cause
from tests.command import slop_code
from tests.marks import in_long
from tests.terminal import on_a_terminal

ROOT = Path(__file__).parents[2]
LARDER = ["-p", str(ROOT / "examples" / "problems" / "larder")]
DRIFTING = ROOT / "examples" / "runs" / "drifting" / "larder" / "checkpoint_3" / "snapshot"
PIPE = """\
larder checkpoint_3
  core: 7/7
  functionality: 5/8
  error: 6/6
  regression: 39/48
3 tests: exit status 1, larder: -: no such file
    FAILED Regression test_checkpoint_1.py::test_standard_input
    FAILED Regression test_checkpoint_2.py::test_standard_input_is_a_recipe_too
    FAILED Regression test_checkpoint_2.py::test_wrong_use[args2-servings must be a whole number above 0, not "two"]
FAILED Regression test_checkpoint_1.py::test_show[soup]: expected Leek: 3, found leek: 3
FAILED Regression test_checkpoint_1.py::test_scale[soup-1]: expected Leek: 1/2, found leek: 1/2
FAILED Regression test_checkpoint_2.py::test_all_recipes_with_units: expected baking soda: 1 tsp, found baking soda: 5 ml
FAILED Regression test_checkpoint_2.py::test_units_of_one_base_are_added[amounts1-1 1/2 cup]: expected stuff: 1 1/2 cup, found stuff: 360 ml
FAILED Regression test_checkpoint_2.py::test_bad_table[lines2-3: "cup" is defined twice]: expected exit status 1, found exit status 0
FAILED Regression test_checkpoint_2.py::test_show_does_not_merge: expected Salt: 1 tsp, found salt: 1 tsp
FAILED Functionality test_checkpoint_3.py::test_missing_is_in_the_unit_of_the_need[1 cup-15 tbsp-1/16 cup]: expected stuff: 1/16 cup, found stuff: 15 ml
FAILED Functionality test_checkpoint_3.py::test_missing_is_in_the_unit_of_the_need[1 l-1 cup-19/25 l]: expected stuff: 19/25 l, found stuff: 760 ml
FAILED Functionality test_checkpoint_3.py::test_missing_is_in_the_unit_of_the_need[1 cup-200 g-1 cup]: expected stuff: 1 cup, found stuff: 240 ml
a test in full: slop-code show out TEST
NOT PASSED (all-cases): 57 of 69 tests passed
written: out/evaluation.json
"""  # noqa: E501
TERMINAL = """\
3 tests: exit status 1, larder: -: no such file
    regr.  test_standard_input
    regr.  test_standard_input_is_a_recipe_too
    regr.  test_wrong_use[args2-servings must be a whole number above 0, not ...
regr.  test_show[soup]: expected Leek: 3, found leek: 3
regr.  test_scale[soup-1]: expected Leek: 1/2, found leek: 1/2
regr.  test_all_recipes...: expected baking soda: 1 tsp, found baking soda: 5 ml
regr.  test_units_of_one_base...: expected stuff: 1 1/2 cup, found stuff: 360 ml
regr.  test_bad_table[lines2-3: ...: expected exit status 1, found exit status 0
regr.  test_show_does_not_merge: expected Salt: 1 tsp, found salt: 1 tsp
funct. test_missing_is_in_the_u...: expected stuff: 1/16 cup, found stuff: 15 ml
funct. test_missing_is_in_the_u...: expected stuff: 19/25 l, found stuff: 760 ml
funct. test_missing_is_in_the_uni...: expected stuff: 1 cup, found stuff: 240 ml
a test in full: slop-code show out TEST
NOT PASSED (all-cases): 57 of 69 tests passed
"""
"""Of 80 columns."""


@pytest.fixture(scope="module")
def drifting(cache, need_bubblewrap, tmp_path_factory):
    """A folder with the result in `out`, and what the evaluation printed."""
    need_bubblewrap()
    folder = tmp_path_factory.mktemp("drifting")
    return folder, evaluate(DRIFTING, folder, 3).stdout


def evaluate(snapshot, folder, checkpoint):
    done = slop_code("eval-snapshot", snapshot, *LARDER, "-c", checkpoint, "-o", "out", cwd=folder)
    assert done.returncode == 1, done.stderr
    return done


def test_failures_are_grouped_by_cause(drifting):
    folder, printed = drifting
    assert printed == PIPE
    results = CorrectnessResults.load(folder / "out" / "evaluation.json")
    assert {name for name, held in results.passed.items() if name.startswith("all") and held} == {"all-core-cases"}


def test_a_terminal_of_80_columns_has_short_lines(drifting):
    shown = on_a_terminal("show", "out", cwd=drifting[0], columns=80)
    text = re.sub(r"\x1b\[[\d;]*m", "", shown).replace("\r\n", "\n")
    assert text.endswith(TERMINAL)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        *in_long((None, "the submission has no main.py")),
        ("import sys\n\ndef broken(:\n", "SyntaxError: invalid syntax in main.py line 3"),
    ],
)
def test_the_cause_of_the_whole_checkpoint_is_one_line(cache, need_bubblewrap, tmp_path, source, reason):
    need_bubblewrap()
    (tmp_path / "snapshot").mkdir()
    if source is not None:
        (tmp_path / "snapshot" / "main.py").write_text(source)
    lines = evaluate(tmp_path / "snapshot", tmp_path, 1).stdout.splitlines()
    assert lines[4].startswith(f"reason: {reason}")
    assert lines[-2] == "NOT PASSED (all-cases): 0 of 26 tests passed"
    assert len(lines) <= 10
    results = CorrectnessResults.load(tmp_path / "out" / "evaluation.json")
    assert checkpoint_cause(results).text.startswith(reason)
    assert not [line for line in lines if line.startswith("warning: the submission has no")]
    assert results.missing_entry_file == (None if source else "main.py")
