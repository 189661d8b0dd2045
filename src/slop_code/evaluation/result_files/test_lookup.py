"""Lookup of the tests of a result by a name, or a part of it, from the user."""

from __future__ import annotations

import difflib
import shlex
from typing import TYPE_CHECKING

from slop_code._safe_text import NAME_LIMIT, escape_control
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults, TestResult

SHOWN = 10
CLOSE = 3
COMMAND_LIMIT = 1 << 16


def find_tests(results: CorrectnessResults, text: str) -> list[TestResult]:
    """Tests whose `file::id`, else whose id, equals the text; else tests whose `file::id` contains it."""
    if exact := [test for test in results.tests if test.nodeid == text]:
        return exact
    if exact := [test for test in results.tests if test.id == text]:
        return exact
    return [test for test in results.tests if text in test.nodeid]


def close_names(results: CorrectnessResults, text: str) -> list[str]:
    """Names of tests, with and without their parameters, that are similar to the text; the closest first.

    Several, unlike `nearest`: many names of tests differ little, and a part of a name is like several of them.
    """
    names = [name for test in results.tests for name in (test.id, test.id.partition("[")[0], test.nodeid)]
    return difflib.get_close_matches(text, dict.fromkeys(names), CLOSE)


def one_test(results: CorrectnessResults, text: str, given: Path) -> TestResult:
    """The only match of `find_tests`. `given` is the path of the result from the user."""
    matches = find_tests(results, text)
    if len(matches) == 1:
        return matches[0]
    location = f"{results.problem_name} {results.checkpoint_name}"
    if not matches:
        close = " or ".join(escape_control(name, NAME_LIMIT) for name in close_names(results, text))
        meant = f"did you mean {close}? " if close else ""
        listing = escape_control(shlex.join(["slop-code", "show", str(given), "-v"]), COMMAND_LIMIT)
        raise UsageError(f"{location}: no test has {text!r} in its name; {meant}{listing} lists them")
    names = [escape_control(test.nodeid, NAME_LIMIT) for test in matches[:SHOWN]]
    more = [f"and {len(matches) - SHOWN} more"] if len(matches) > SHOWN else []
    listed = "".join(f"\n  {name}" for name in [*names, *more])
    raise UsageError(f"{location}: {len(matches)} tests have {text!r} in their names; give more of one:{listed}")
