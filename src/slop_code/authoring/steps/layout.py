"""The step `layout`: what the files alone tell. Nothing of them is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.authoring.finding import Outcome, Step
from slop_code.authoring.layout import (
    configuration,
    data,
    files,
    habits,
    imports,
    ledger,
    markers,
    names,
    ports,
    submission,
    writes,
)
from slop_code.authoring.layout.reading import read_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.bench import Workbench
    from slop_code.authoring.finding import Finding
    from slop_code.authoring.layout.reading import Reading

PARTS = (configuration, files, names, markers, data, imports, submission, ports, habits, writes, ledger)


def run(bench: Workbench) -> Outcome:
    reading = read_problem(bench.problem, bench.environment)
    found = sorted(_findings(reading), key=lambda one: (one.place.file, one.place.line or 0, one.rule.id, one.message))
    summary = [f"{len(reading.files)} files in tests/, {len(reading.sources)} of them Python"]
    summary += [f"too large to look into: {len(reading.unread)}"] if reading.unread else []
    facts = {"test_files": len(reading.files), "python_files": len(reading.sources), "unread": list(reading.unread)}
    return Outcome(tuple(dict.fromkeys(found)), tuple(summary), facts)


def _findings(reading: Reading) -> Iterator[Finding]:
    yield from configuration.unknown_keys(reading)
    yield from files.missing(reading)
    yield from files.unclaimed(reading)
    yield from files.leftovers(reading)
    yield from names.unreadable(reading)
    yield from names.named(reading)
    yield from markers.markers(reading)
    yield from data.unused_assets(reading)
    yield from data.unused_data(reading)
    yield from imports.undeclared(reading)
    yield from imports.unused(reading)
    yield from submission.imports_submission(reading)
    yield from ports.fixed_ports(reading)
    yield from habits.sleeping(reading)
    yield from habits.networking(reading)
    yield from writes.writing(reading)
    yield from ledger.ledger(reading)


STEP = Step(
    "layout",
    "configuration, files, names, markers, imports and habits",
    tuple(rule for part in PARTS for rule in part.RULES),
    run,
)
