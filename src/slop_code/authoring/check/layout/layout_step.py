"""Step `layout`: rules about the files of a problem, none of which is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.check.findings import Rule, Step, StepOutcome
from slop_code.authoring.check.layout import (
    canary_rules,
    config_rules,
    data_file_rules,
    file_rules,
    import_rules,
    marker_rules,
    name_rules,
    port_rules,
    quarantine_rules,
    sleep_and_network_rules,
    write_rules,
)
from slop_code.authoring.check.layout.problem_files import read_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.findings import Finding
    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.authoring.check.workbench import Workbench

PARTS = (
    config_rules,
    file_rules,
    name_rules,
    marker_rules,
    data_file_rules,
    import_rules,
    port_rules,
    sleep_and_network_rules,
    write_rules,
    quarantine_rules,
    canary_rules,
)


def run(bench: Workbench) -> StepOutcome:
    files = read_problem(bench.problem, bench.environment)
    findings = sorted(_findings(files), key=_sort_key)
    data = len(files.data)
    summary = [f"{len(files.files)} files in tests/: {len(files.files) - data} of test code, {data} of data"]
    summary += [f"too large to parse: {len(files.unread)}"] if files.unread else []
    facts = {"test_files": len(files.files), "data_files": data, "unread": list(files.unread)}
    return StepOutcome(tuple(dict.fromkeys(findings)), tuple(summary), facts)


def _sort_key(finding: Finding) -> tuple[str, int, str, str]:
    return finding.location.file, finding.location.line or 0, finding.rule.id, finding.message


def _findings(files: ProblemFiles) -> Iterator[Finding]:
    yield from config_rules.unknown_keys(files)
    yield from config_rules.unlocked(files)
    yield from file_rules.missing(files)
    yield from file_rules.unclaimed(files)
    yield from file_rules.leftovers(files)
    yield from name_rules.unreadable(files)
    yield from name_rules.named(files)
    yield from marker_rules.markers(files)
    yield from data_file_rules.unused_assets(files)
    yield from data_file_rules.unused_data(files)
    yield from data_file_rules.unmatched_visible(files)
    yield from import_rules.undeclared(files)
    yield from import_rules.unused(files)
    yield from import_rules.imports_submission(files)
    yield from port_rules.fixed_ports(files)
    yield from sleep_and_network_rules.sleeping(files)
    yield from sleep_and_network_rules.networking(files)
    yield from write_rules.writing(files)
    yield from quarantine_rules.quarantine(files)
    yield from canary_rules.without_canary(files)


STEP = Step(
    "layout",
    "configuration, files, names, markers, imports and habits",
    tuple(rule for part in PARTS for rule in vars(part).values() if isinstance(rule, Rule)),
    run,
)
