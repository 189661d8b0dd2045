"""Inputs that a stored result names, compared with the problem, the snapshot and its own command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from slop_code.errors import SlopCodeError
from slop_code.evaluation.groups import QUARANTINED
from slop_code.evaluation.problem.problem_contents import Contents, checkpoint_inputs
from slop_code.evaluation.problem.quarantine import read_quarantine
from slop_code.evaluation.pytest_arguments import options_of
from slop_code.execution.submission import read_tree
from slop_code.runs.run_layout import SNAPSHOT, stored_snapshot
from slop_code.verification.contradictions import CONTRADICTION, Discrepancy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.evaluation.roster import Roster

_LAST_OWN_OPTION = "-vv"
"""The words of the command after this option and before its last word are the pytest arguments."""


def problem_discrepancies(stored: CorrectnessResults, problem: ProblemConfig) -> Iterator[Discrepancy]:
    checkpoint, provenance = problem.checkpoint(stored.checkpoint_name), stored.provenance
    inputs = checkpoint_inputs(problem, checkpoint, Contents.of(problem))
    config, tests = inputs.config_digest, inputs.tests_digest
    digests, names, groups = provenance.digests, list(problem.checkpoints), dict(problem.custom_groups)
    if digests.config != config:
        yield Discrepancy("digest", "provenance.digests.config", digests.config, f"{config} in {problem.path}")
    if digests.tests not in (None, tests):
        yield Discrepancy("digest", "provenance.digests.tests", str(digests.tests), f"{tests} in {problem.path}")
    if provenance.checkpoints != names:
        yield Discrepancy("digest", "provenance.checkpoints", as_text(provenance.checkpoints), as_text(names))
    if provenance.groups != groups:
        yield Discrepancy("digest", "provenance.groups", as_text(provenance.groups), as_text(groups))


def quarantine_discrepancies(roster: Roster, problem: ProblemConfig) -> Iterator[Discrepancy]:
    """Tests that are in quarantine according to the roster or to the problem, but not to both."""
    quarantine = read_quarantine(problem)
    for entry in roster.entries:
        recorded, covered = QUARANTINED in entry.markers, quarantine.covers(entry.nodeid)
        if recorded != covered:
            stored, listed = (QUARANTINED if value else f"not {QUARANTINED}" for value in (recorded, covered))
            yield Discrepancy("quarantine", entry.nodeid, stored, listed)


def snapshot_discrepancies(stored: CorrectnessResults, folder: Path) -> tuple[list[Discrepancy], list[str]]:
    """Discrepancies, and texts about what could not be checked. `folder` contains the result."""
    snapshot, field = stored_snapshot(folder), "provenance.digests.submission"
    recorded = stored.provenance.digests.submission
    if recorded is None or not snapshot.is_dir():
        why = "the result has none" if recorded is None else f"no {SNAPSHOT} beside the result"
        return [], [f"{field}: {why}"]
    try:
        digest = read_tree(snapshot).digest
    except (SlopCodeError, OSError) as error:
        return [], [f"{field}: {error}"]
    return ([] if recorded == digest else [Discrepancy("snapshot", field, recorded, digest)]), []


def command_discrepancies(stored: CorrectnessResults) -> Iterator[Discrepancy]:
    """Compares the names and arguments that a result contains twice. An early failure leaves it without a command."""
    command, name = stored.provenance.command, stored.checkpoint_name
    given = [word.partition("=")[2] for word in command if word.startswith("--checkpoint=")][:1]
    if given and given[0] != name:
        yield _contradiction("checkpoint_name", name, given[0], "provenance.command")
    ordered = stored.provenance.checkpoints
    if name not in ordered:
        yield _contradiction("checkpoint_name", name, as_text(ordered), "provenance.checkpoints")
    if _LAST_OWN_OPTION in command:
        arguments = command[command.index(_LAST_OWN_OPTION) + 1 : -1]
        if arguments != options_of(stored.provenance.pytest_args):
            recorded = as_text(stored.provenance.pytest_args)
            yield _contradiction("provenance.pytest_args", recorded, as_text(arguments), "provenance.command")


def reserved_marker_discrepancies(stored: CorrectnessResults) -> Iterator[Discrepancy]:
    """No config.yaml may name this marker. It may name all others, even built-in ones and those of pytest."""
    if QUARANTINED in stored.provenance.groups:
        yield Discrepancy(
            CONTRADICTION, "provenance.groups", f"a group for {QUARANTINED}", "config.yaml cannot name this marker"
        )


def _contradiction(field: str, value: str, other: str, where: str) -> Discrepancy:
    return Discrepancy(CONTRADICTION, field, value, f"{other} in {where}")


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=True, default=lambda record: record.model_dump(mode="json"))
