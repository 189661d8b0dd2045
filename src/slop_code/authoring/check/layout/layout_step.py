"""The step `layout`: what the files alone tell. Nothing of them is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.check.findings import Step, StepOutcome
from slop_code.authoring.check.layout import (
    config_rules,
    data_file_rules,
    file_rules,
    import_rules,
    ledger_rules,
    marker_rules,
    name_rules,
    port_rules,
    sleep_and_network_rules,
    submission_import_rules,
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
    submission_import_rules,
    port_rules,
    sleep_and_network_rules,
    write_rules,
    ledger_rules,
)


def run(bench: Workbench) -> StepOutcome:
    reading = read_problem(bench.problem, bench.environment)
    found = sorted(
        _findings(reading), key=lambda one: (one.location.file, one.location.line or 0, one.rule.id, one.message)
    )
    summary = [f"{len(reading.files)} files in tests/, {len(reading.sources)} of them Python"]
    summary += [f"too large to look into: {len(reading.unread)}"] if reading.unread else []
    facts = {"test_files": len(reading.files), "python_files": len(reading.sources), "unread": list(reading.unread)}
    return StepOutcome(tuple(dict.fromkeys(found)), tuple(summary), facts)


def _findings(reading: ProblemFiles) -> Iterator[Finding]:
    yield from config_rules.unknown_keys(reading)
    yield from file_rules.missing(reading)
    yield from file_rules.unclaimed(reading)
    yield from file_rules.leftovers(reading)
    yield from name_rules.unreadable(reading)
    yield from name_rules.named(reading)
    yield from marker_rules.markers(reading)
    yield from data_file_rules.unused_assets(reading)
    yield from data_file_rules.unused_data(reading)
    yield from import_rules.undeclared(reading)
    yield from import_rules.unused(reading)
    yield from submission_import_rules.imports_submission(reading)
    yield from port_rules.fixed_ports(reading)
    yield from sleep_and_network_rules.sleeping(reading)
    yield from sleep_and_network_rules.networking(reading)
    yield from write_rules.writing(reading)
    yield from ledger_rules.ledger(reading)


STEP = Step(
    "layout",
    "configuration, files, names, markers, imports and habits",
    tuple(rule for part in PARTS for rule in part.RULES),
    run,
)
