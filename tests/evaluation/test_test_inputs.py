"""Inputs of tests that are kept with a result."""

from pathlib import PurePosixPath

import pytest

from slop_code.evaluation import ProblemConfig
from slop_code.evaluation.problem.problem_contents import Contents, checkpoint_inputs, inputs_of
from slop_code.evaluation.report import Digests
from slop_code.evaluation.test_code.test_inputs import OUTSIDE, TestInputs, code_digests
from tests.run_world import world

__all__ = ["world"]

BEFORE = """
import pytest
LIMIT = 3

@pytest.mark.error
def test_a():
    assert LIMIT == 3

class TestB:
    def helper(self):
        return 1

    async def test_c(self):
        assert self.helper()
"""


def changed(folder, after):
    """Names of the parts of the file whose digests differ."""
    digests = []
    for text in (BEFORE, after):
        (folder / "test_x.py").write_text(text)
        digests.append(code_digests(folder, [PurePosixPath("test_x.py")])["tests/test_x.py"])
    before, now = digests
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("LIMIT == 3", "LIMIT == 4", {"test_a"}),
        ("mark.error", "mark.slow", {"test_a"}),
        ("LIMIT = 3", "LIMIT = 4", {OUTSIDE}),
        ("return 1", "return 2", {OUTSIDE}),
        ("assert self.helper()", "assert not self.helper()", {"TestB::test_c"}),
        ("def test_a", "def test_d", {"test_a", "test_d"}),
        ("class TestB", "\n\nclass TestB", set()),
    ],
)
def test_a_change_concerns_only_the_part_that_it_is_in(tmp_path, old, new, expected):
    assert old in BEFORE
    assert changed(tmp_path, BEFORE.replace(old, new)) == expected


@pytest.mark.parametrize("source", ["def (:", "\0", "x = " + "(" * 500])
def test_a_file_that_cannot_be_parsed_has_no_code_digests(tmp_path, source):
    (tmp_path / "test_x.py").write_text(source)
    assert code_digests(tmp_path, [PurePosixPath("test_x.py"), PurePosixPath("data.json")]) == {}


def test_inputs_make_the_digests_of_a_result_and_load_back_equal(world, tmp_path):
    problem = ProblemConfig.from_yaml(world.problem(markers={"slow": {"group": "Error"}}, visible=["data/*"]))
    checkpoint = problem.checkpoint(2)
    inputs = inputs_of(problem, checkpoint)
    tests, config = (
        checkpoint_inputs(problem, checkpoint, Contents.of(problem)).tests_digest,
        problem.digest(checkpoint),
    )
    inputs.save(tmp_path)
    loaded = TestInputs.load(tmp_path)
    assert loaded == inputs
    assert loaded.belong_to(Digests(tests=tests, config=config))
    assert not loaded.belong_to(Digests(tests="other", config=config))
    assert not loaded.model_copy(update={"ini": ""}).belong_to(Digests(tests=tests, config=config))
