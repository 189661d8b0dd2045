"""evaluation.json of one checkpoint in the format of SlopCodeBench, and its counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code._io import digest_of
from slop_code._version import __version__
from slop_code.evaluation.command import entrypoint_text
from slop_code.evaluation.evidence import NEVER_RAN
from slop_code.evaluation.groups import GroupType
from slop_code.reporting.exporters import Skips
from slop_code.reporting.text import file_safe, has_verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slop_code.evaluation.report import TestResult
    from slop_code.runs.read_results import StoredCheckpoint

EXPORTED_BY = f"slop-code {__version__}"
LISTS = {"passed": "passed", "failed": "failed", "error": "failed", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions in the problem's config.yaml; 0 where it is not known."""

    problem: int = 0
    checkpoint: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """By group; all 0 where there is no verdict."""

    passed: Mapping[GroupType, int]
    total: Mapping[GroupType, int]

    @classmethod
    def of(cls, entry: StoredCheckpoint, skips: Skips) -> Counts:
        if entry.results is None or not has_verdict(entry.line):
            return cls(dict.fromkeys(GroupType, 0), dict.fromkeys(GroupType, 0))
        total = entry.results.total_counts
        if skips is Skips.LEAVE_OUT:
            skipped = Counter(test.group_type for test in entry.results.tests if _is_counted_skip(test))
            total = {group: count - skipped[group] for group, count in total.items()}
        return cls(entry.results.pass_counts, total)


def evaluation_document(
    entry: StoredCheckpoint, counts: Counts, skips: Skips, versions: Versions, carried: Mapping[str, Any]
) -> dict[str, Any]:
    """`carried` has values of an evaluation.json of SlopCodeBench that only its runner knows."""
    line, results = entry.line, entry.results
    verdict = results is not None and has_verdict(line)
    tests = results.tests if results is not None and verdict else []
    return {
        "schema_version": 1,
        "problem_name": file_safe(line.problem),
        "problem_version": versions.problem,
        "checkpoint_name": file_safe(line.checkpoint),
        "checkpoint_version": versions.checkpoint,
        "duration": results.duration if results is not None else 0.0,
        "entrypoint": file_safe(entrypoint_text(results.provenance.command)) if results is not None else "",
        "tests": tests_by_group(tests),
        "pass_counts": dict(counts.passed),
        "total_counts": dict(counts.total),
        "pytest_exit_code": results.pytest_exit_code if results is not None else NEVER_RAN,
        "pytest_collected": len(tests),
        "test_collection_hash": digest_of(sorted(file_safe(test.nodeid) for test in tests)),
        **carried,
        "infrastructure_failure": not verdict,
        "reason": None if verdict else file_safe(line.reason or line.state),
        "skips": skips,
        "exported_by": EXPORTED_BY,
    }


def tests_by_group(tests: Iterable[TestResult]) -> dict[str, dict[str, list[str]]]:
    """Lists of ids by the test's checkpoint and group. A quarantined test is in no count, so it is with the skipped."""
    groups: dict[str, dict[str, list[str]]] = {}
    for test in tests:
        name = f"{file_safe(test.checkpoint)}-{test.group_type}"
        lists = groups.setdefault(name, {"passed": [], "failed": [], "skipped": []})
        lists["skipped" if test.quarantined else LISTS[test.status]].append(file_safe(test.id))
    return groups


def _is_counted_skip(test: TestResult) -> bool:
    return test.status == "skipped" and not test.quarantined
