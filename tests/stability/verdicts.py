"""Equality of two evaluations of one submission."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from slop_code.evaluation import PassPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slop_code.evaluation import CorrectnessResults

ABSENT = "absent"
OF_THE_SANDBOX = ("digest environment", "digest image")
CHANCE = (
    (re.compile(r"0x[0-9a-f]{6,16}\b"), "0x"),
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms|seconds)\b"), "0s"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?"), "then"),
    (re.compile(r"(/tmp|/var/tmp)/[^\s'\":]*"), "/tmp"),
    (re.compile(r"/[^\s'\":]*/sessions/[^\s'\":/]*"), "/session"),
    (re.compile(r"((?:port|pid)[ =:]+|127\.0\.0\.1:|localhost:)\d+", re.I), r"\1N"),
)


def verdict_of(results: CorrectnessResults) -> dict[str, str]:
    """Everything that has to be equal, by what a person calls it."""
    digests = results.provenance.digests.model_dump()
    return {
        "exit code": str(results.pytest_exit_code),
        "infrastructure failure": results.infrastructure_failure_reason or "none",
        "deselected": str(results.deselected),
        **{f"group {name}": f"{results.pass_counts[name]} of {all_}" for name, all_ in results.total_counts.items()},
        **{f"policy {name}": "passed" if held else "not passed" for name, held in results.passed.items()},
        **{f"test {test.nodeid}": f"{test.status}, {test.group_type}" for test in results.tests},
        **{f"digest {name}": str(value) for name, value in digests.items()},
    }


def unearned(kind: str, results: CorrectnessResults) -> list[str]:
    """What is wrong with a verdict, however often it comes out the same; `kind` as of a case."""
    passed = sorted(test.nodeid for test in results.tests if test.status == "passed")
    if kind == "reference" and not results.passed[PassPolicy.ALL_CASES]:
        return ["a reference does not pass all-cases"]
    if kind == "empty" and passed:
        return [f"an empty submission passes {len(passed)} tests, such as {passed[0]}"]
    return []


def messages_of(results: CorrectnessResults) -> dict[str, str]:
    """Why tests failed, without what may well differ: addresses, times, temporary folders, ports."""
    return {f"message {test.nodeid}": steady(test.failure_message) for test in results.tests if test.failure_message}


def steady(message: str) -> str:
    for pattern, instead in CHANCE:
        message = pattern.sub(instead, message)
    return message


def in_any_sandbox(verdict: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in verdict.items() if name not in OF_THE_SANDBOX}


def differences(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """In words, one for each thing that differs."""
    names = [*expected, *[name for name in found if name not in expected]]
    pairs = [(name, expected.get(name, ABSENT), found.get(name, ABSENT)) for name in names]
    return [f"{name}: {before} → {after}" for name, before, after in pairs if before != after]
