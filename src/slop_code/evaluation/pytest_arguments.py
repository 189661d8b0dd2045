"""Arguments for pytest from the user: options that are passed on, and the selection of tests."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._safe_text import NAME_LIMIT, escape_control
from slop_code._suggestions import did_you_mean, near_or_known
from slop_code.errors import UsageError
from slop_code.evaluation.evidence import USAGE_ERROR
from slop_code.evaluation.groups import GroupType
from slop_code.evaluation.roster import normal_nodeid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.evaluation.roster import Roster, RosterEntry

GROUP_OPTION = "--group"
"""Our own: pytest never sees it."""

SHOWN_FILES_PLUGIN = "slop_code_shown_files"
"""Records which files of the tests the submission is shown; loaded only if `-p` names it."""

EXPRESSIONS = ("-k", "-m")
FILTERS = (*EXPRESSIONS, "--deselect")
WITH_VALUE = frozenset({
    *FILTERS, GROUP_OPTION, "-p", "-r", "--tb", "--maxfail", "--durations", "--durations-min", "--capture", "--color",
    "--code-highlight", "--show-capture", "--verbosity", "--log-level", "--log-cli-level",
})  # fmt: skip
"""Options whose value may be the next word."""

ALLOWED = WITH_VALUE | frozenset({
    "-v", "--verbose", "-q", "--quiet", "-l", "--showlocals", "--no-showlocals", "-s", "--full-trace", "--no-header",
    "--no-summary", "--setup-show", "-x", "--exitfirst", "--pdb",
})  # fmt: skip
"""All options that are passed on: they select tests openly, change what pytest prints, or end it early, which is never
a verdict. Any other option may change what a test says, such as `--entrypoint` and `--runxfail`."""

MAX_OPERATORS = 250
"""In an expression: pytest parses it with a recursion for each of them."""

_OPERATOR = re.compile(r"\(|\b(?:and|or|not)\b")
_WRONG_EXPRESSION = re.compile(r"ERROR: (Wrong expression passed to '-[km]': .*)")
STEP = "select tests by node id, -k, -m or --group"
TIME_LIMITS = frozenset({"--timeout", "--timeout-method", "--session-timeout"})


@dataclass(frozen=True, slots=True)
class PytestArguments:
    options: tuple[str, ...] = ()
    """Passed on to pytest."""

    tests: tuple[str, ...] = ()
    """Node ids of tests, classes, files or folders."""

    groups: tuple[GroupType, ...] = ()
    filters: tuple[str, ...] = ()
    """Those of the options that let pytest deselect tests, with their values."""

    @property
    def select(self) -> bool:
        """Whether only a part of the tests is asked for, which is never a verdict."""
        return bool(self.tests or self.groups or self.filters)


def parse_pytest_args(words: Iterable[str]) -> PytestArguments:
    """Raises UsageError for options that are not passed on."""
    options: list[str] = []
    tests: list[str] = []
    groups: list[GroupType] = []
    filters: list[str] = []
    rest = iter(words)
    for word in rest:
        name, value = _split(word)
        if name in TIME_LIMITS:
            raise UsageError(f"{name}: set timeouts.test in the environment, or timeout in config.yaml")
        if (name and name not in ALLOWED) or word.startswith("@"):
            raise _refused(word)
        if not name:
            tests.append(_test(word))
            continue
        given = [word]
        if value is None and name in WITH_VALUE:
            value = next(rest, None)
            if value is None:
                raise UsageError(f"{name}: needs a value after it")
            given.append(value)
        if name in EXPRESSIONS and len(_OPERATOR.findall(value or "")) > MAX_OPERATORS:
            raise UsageError(f"{name}: more than {MAX_OPERATORS} operators; {STEP}")
        if name == "-p" and value != SHOWN_FILES_PLUGIN:
            raise _refused(word)
        if name in FILTERS:
            filters += given
        if name == GROUP_OPTION:
            groups.append(_group(value or ""))
        else:
            options += given
    return PytestArguments(tuple(options), tuple(tests), tuple(groups), tuple(filters))


def _refused(word: str) -> UsageError:
    shown = escape_control(word, NAME_LIMIT)
    return UsageError(f"{shown}: may change what pytest collects or what a test says, and is not passed on; {STEP}")


def _split(word: str) -> tuple[str, str | None]:
    """The option's name, empty where the word is none, and the value that the word itself has."""
    if not word.startswith("-") or word == "-":
        return "", None
    if not word.startswith("--"):  # one or several letters, of which the last may have a value
        for index, letter in enumerate(word[1:], start=2):
            if f"-{letter}" in WITH_VALUE or f"-{letter}" not in ALLOWED:
                return f"-{letter}", word[index:] or None
        return word[:2], None
    name, equals, value = word.partition("=")
    return name, value if equals else None


def _test(word: str) -> str:
    return normal_nodeid(word).removeprefix("tests/").rstrip("/")


def _group(name: str) -> GroupType:
    for group in GroupType:
        if group.lower() == name.lower():
            return group
    raise UsageError(f"--group {escape_control(name, NAME_LIMIT)}: no such group{near_or_known(name, GroupType)}")


def refuse_empty_selection(results: CorrectnessResults) -> None:
    """Raises UsageError if filters left out every test, or are no expressions. Only pytest knows, after it ran."""
    filters = parse_pytest_args(results.provenance.pytest_args).filters
    location = f"{results.problem_name} {results.checkpoint_name}"
    if results.selects_none:
        raise UsageError(
            f"{location}: no test matches {escape_control(shlex.join(filters), NAME_LIMIT)}; change -k or -m"
        )
    wrong = _WRONG_EXPRESSION.search(results.infrastructure_failure_reason or "") if filters else None
    if wrong and results.pytest_exit_code == USAGE_ERROR:
        raise UsageError(f"{location}: {escape_control(wrong[1], NAME_LIMIT)}")


def select_part(words: Sequence[str]) -> bool:
    """Whether the arguments of a stored result ask for a part; any that are refused today count as such."""
    try:
        return parse_pytest_args(words).select
    except UsageError:
        return True


def options_of(words: Sequence[str]) -> list[str]:
    """The part of a stored result's arguments that pytest got; all of them if any is refused today."""
    try:
        return list(parse_pytest_args(words).options)
    except UsageError:
        return list(words)


def chosen_tests(
    roster: Roster, arguments: PytestArguments, group_of: Callable[[RosterEntry], GroupType], location: str
) -> list[str] | None:
    """The tests that node ids and groups choose, in order, or None for all. Raises UsageError if they choose none."""
    if not arguments.tests and not arguments.groups:
        return None
    for word in arguments.tests:
        if not any(_is_within(entry.nodeid, word) for entry in roster.entries):
            names = {*roster.nodeids, *(nodeid.partition("[")[0] for nodeid in roster.nodeids)}
            step = did_you_mean(word, names) or "; give a node id as `-v` lists it"
            raise UsageError(f"{location}: no test {escape_control(word, NAME_LIMIT)}{step}")
    chosen = [
        entry.nodeid
        for entry in roster.entries
        if (not arguments.tests or any(_is_within(entry.nodeid, word) for word in arguments.tests))
        and (not arguments.groups or group_of(entry) in arguments.groups)
    ]
    if not chosen:
        raise UsageError(
            f"{location}: no test that was chosen is in {GROUP_OPTION} {', '.join(arguments.groups)}; choose others"
        )
    return chosen


def _is_within(nodeid: str, word: str) -> bool:
    """Whether a node id is the given one, or belongs to the function, class, file or folder that it names."""
    return nodeid == word or (nodeid.startswith(word) and nodeid[len(word) :].startswith(("::", "[", "/")))
