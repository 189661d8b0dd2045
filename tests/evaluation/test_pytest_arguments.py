"""Arguments for pytest: a part of the tests is asked for openly, or not at all."""

from __future__ import annotations

import re

import pytest

from slop_code.errors import UsageError
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.pytest_arguments import (
    SHOWN_FILES_PLUGIN,
    PytestArguments,
    chosen_tests,
    options_of,
    parse_pytest_args,
    select_part,
)
from slop_code.evaluation.roster import Roster, RosterEntry
from tests.factories import result

NAMES = ("test_checkpoint_1.py::test_a", "test_checkpoint_1.py::test_ab[1]", "sub/test_checkpoint_2.py::TestB::test_c")
ROSTER = Roster(tuple(RosterEntry(name, ("error",) if "TestB" in name else ()) for name in NAMES))


@pytest.mark.parametrize(
    ("words", "parsed"),
    [
        ([], PytestArguments()),
        (["-l", "--tb=short", "-vv"], PytestArguments(("-l", "--tb=short", "-vv"))),
        (["--tb", "short", "-p", SHOWN_FILES_PLUGIN], PytestArguments(("--tb", "short", "-p", SHOWN_FILES_PLUGIN))),
        (["-k", "a or b"], PytestArguments(("-k", "a or b"), filters=("-k", "a or b"))),
        (["-ka"], PytestArguments(("-ka",), filters=("-ka",))),
        (["-vka"], PytestArguments(("-vka",), filters=("-vka",))),
        (["-xm", "slow"], PytestArguments(("-xm", "slow"), filters=("-xm", "slow"))),
        (["-m", "not slow"], PytestArguments(("-m", "not slow"), filters=("-m", "not slow"))),
        (["--deselect=a.py::t"], PytestArguments(("--deselect=a.py::t",), filters=("--deselect=a.py::t",))),
        (["--deselect", "a.py::t"], PytestArguments(("--deselect", "a.py::t"), filters=("--deselect", "a.py::t"))),
        (["--group", "Core", "--group=error"], PytestArguments((), (), (GroupType.CORE, GroupType.ERROR))),
        (["a.py::test_x[1-2]", "-x"], PytestArguments(("-x",), ("a.py::test_x[1-2]",))),
        (["tests/a.py", ".evaluation_tests/b.py::t", "sub/"], PytestArguments((), ("a.py", "b.py::t", "sub"))),
        (["-xvs", "--setup-show"], PytestArguments(("-xvs", "--setup-show"))),
    ],
)
def test_options_and_selection_are_told_apart(words, parsed):
    assert parse_pytest_args(words) == parsed
    assert select_part(words) == parsed.select == bool(parsed.tests or parsed.groups or parsed.filters)
    assert options_of(words) == list(parsed.options)


@pytest.mark.parametrize(
    "word",
    ["--ignore=a.py", "--ignore", "--collect-only", "--co", "-c", "-cother.ini", "-opython_files=x.py", "--pyargs",
     "-vopython_files=x.py", "--rootdir=/", "--lf", "-n2", "--", "@file", "--import-mode=append", "--noconftest",
     "--entrypoint=echo", "--entrypoint", "--checkpoint=x", "--runxfail", "--setuponly", "--json-report-file=x", "-p",
     "-pno:timeout", "-vpno:timeout", "-Werror", "--no-such-option"],
)  # fmt: skip
def test_any_other_option_is_refused(word):
    reason = "may change what pytest collects or what a test says, and is not passed on; select tests by node id, -k,"
    with pytest.raises(UsageError, match=re.escape(f"{word}: {reason}")):
        parse_pytest_args([word, "x"])
    assert select_part([word])
    assert options_of([word]) == [word]


def test_time_limits_are_set_in_one_way():
    with pytest.raises(UsageError, match=r"^--timeout: set timeouts\.test in the environment"):
        parse_pytest_args(["--timeout=1"])


@pytest.mark.parametrize("word", ["-k", "-m", "--deselect", "--group", "--tb"])
def test_an_option_without_its_value_would_take_the_tests_folder_for_it(word):
    with pytest.raises(UsageError, match=f"^{word}: needs a value"):
        parse_pytest_args(["-l", word])


def chosen(*words):
    def group_of(entry):
        return GroupType.ERROR if "error" in entry.markers else GroupType.CORE

    return chosen_tests(ROSTER, parse_pytest_args(words), group_of, "words checkpoint_2")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["-k", "x"], None),
        (["test_checkpoint_1.py"], NAMES[:2]),
        (["test_checkpoint_1.py::test_a"], NAMES[:1]),
        (["test_checkpoint_1.py::test_ab"], NAMES[1:2]),
        (["sub"], NAMES[2:]),
        (["sub/test_checkpoint_2.py::TestB", "test_checkpoint_1.py::test_a"], (NAMES[0], NAMES[2])),
        (["--group=Core"], NAMES[:2]),
        (["--group=Core", "--group=Error"], NAMES),
        (["--group=Error", "sub"], NAMES[2:]),
    ],
)
def test_node_ids_and_groups_choose_tests(words, expected):
    assert chosen(*words) == (None if expected is None else list(expected))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["test_checkpoint_1.py::test_"],
            "words checkpoint_2: no test test_checkpoint_1.py::test_; did you mean 'test_checkpoint_1.py::test_a'?",
        ),
        (
            ["test_checkpoint_1.py::test_abc"],
            "words checkpoint_2: no test test_checkpoint_1.py::test_abc; did you mean 'test_checkpoint_1.py::test_ab'?",
        ),
        (
            ["test_checkpoint_1.py", "gone.py"],
            "words checkpoint_2: no test gone.py; give a node id as `-v` lists it",
        ),
        (
            ["--group=Error", "test_checkpoint_1.py"],
            "words checkpoint_2: no test that was chosen is in --group Error; choose others",
        ),
        (["--group=cores"], "--group cores: no such group; did you mean 'Core'?"),
    ],
)
def test_what_chooses_nothing_is_wrong_use(words, message):
    with pytest.raises(UsageError) as caught:
        chosen(*words)
    assert str(caught.value) == message


@pytest.mark.parametrize("words", [["-k", "test"], ["--group=Core"], ["test_checkpoint_1.py"], ["--ignore=x"]])
def test_a_selection_of_all_tests_is_no_verdict_either(words):
    complete = result({"test_a": "passed"})
    assert complete.passes()
    part = result({"test_a": "passed"}, provenance={"pytest_args": words})
    assert (part.deselected, part.partial, part.passes(), any(part.passed.values())) == (0, True, False, False)
