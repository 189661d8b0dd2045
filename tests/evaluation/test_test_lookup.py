from pathlib import Path

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.result_files.test_lookup import find_tests, one_test
from tests.factories import case, result

RESULT = Path("my run/words")
NAMES = [
    "test_checkpoint_1.py::test_a",
    "test_checkpoint_1.py::test_ab",
    "test_checkpoint_1.py::test_w[x::y]",
    "test_checkpoint_2.py::test_ab",
    "test_checkpoint_2.py::TestIt::test_a",
    "test_checkpoint_2.py::test_\x1b[2J",
]


@pytest.fixture(scope="module")
def results():
    parts = [name.partition("::") for name in NAMES]
    return result([case(name, file_path=file) for file, _, name in parts])


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("test_checkpoint_1.py::test_a", [0]),
        ("test_a", [0]),
        ("test_ab", [1, 3]),
        ("checkpoint_2.py::test_ab", [3]),
        ("x::y", [2]),
        ("TestIt", [4]),
        ("test_checkpoint_2", [3, 4, 5]),
        ("nothing", []),
        ("TEST_A", []),
    ],
)
def test_tests_are_found_by_a_part_of_their_name(results, text, indices):
    assert [test.nodeid for test in find_tests(results, text)] == [NAMES[index] for index in indices]


def test_a_text_has_to_name_exactly_one_test(results):
    assert one_test(results, "TestIt", RESULT).nodeid == NAMES[4]
    with pytest.raises(UsageError) as several:
        one_test(results, "test_checkpoint_2", RESULT)
    assert "3 tests have 'test_checkpoint_2' in their names" in str(several.value)
    assert "\x1b" not in str(several.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("nothing", ""),
        ("test_aa", "did you mean test_a or test_ab or "),
        ("Testit::test_a", "did you mean TestIt::test_a"),
        ("test_w[x:y]", "did you mean test_w[x::y]"),
        ("test_checkpoint_2.py:test_ab", "did you mean test_checkpoint_2.py::test_ab"),
        ("test_\x1b[3J", "did you mean test_\\x1b[2J"),
    ],
)
def test_none_and_what_may_have_been_meant(results, text, meant):
    with pytest.raises(UsageError) as none:
        one_test(results, text, RESULT)
    said = str(none.value)
    assert said.startswith(f"words checkpoint_1: no test has {text!r} in its name; {meant}")
    assert said.endswith("slop-code show 'my run/words' -v lists them")
    assert ("did you mean" in said) == bool(meant)
    assert "\x1b" not in said
