"""Inputs that a stored result names, compared with the problem, the snapshot and its own command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from slop_code.errors import SlopCodeError
from slop_code.evaluation.staging import Contents, tests_digest
from slop_code.execution.submission import read_tree
from slop_code.runs.run_layout import SNAPSHOT
from slop_code.verification.contradictions import CONTRADICTION, Discrepancy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.report import CorrectnessResults

_LAST_OF_OURS = "-vv"
"""pytest arguments stand between this word of the command and its last."""


def of_problem(stored: CorrectnessResults, problem: ProblemConfig) -> Iterator[Discrepancy]:
    checkpoint, made = problem.checkpoint(stored.checkpoint_name), stored.provenance
    config, tests = problem.digest(checkpoint), tests_digest(problem, checkpoint, Contents.of(problem))
    if made.digests.config != config:
        yield Discrepancy("digest", "provenance.digests.config", made.digests.config, f"{config} in {problem.path}")
    if made.digests.tests not in (None, tests):
        yield Discrepancy("digest", "provenance.digests.tests", str(made.digests.tests), f"{tests} in {problem.path}")
    if made.checkpoints != list(problem.checkpoints):
        yield Discrepancy("digest", "provenance.checkpoints", text(made.checkpoints), text(list(problem.checkpoints)))
    if made.groups != problem.custom_groups:
        yield Discrepancy("digest", "provenance.groups", text(made.groups), text(dict(problem.custom_groups)))


def of_snapshot(stored: CorrectnessResults, folder: Path) -> tuple[list[Discrepancy], list[str]]:
    """Discrepancies, and what could not be checked; `folder`: where the result lies."""
    snapshot, field = folder / SNAPSHOT, "provenance.digests.submission"
    recorded = stored.provenance.digests.submission
    if recorded is None or not snapshot.is_dir():
        why = "the result has none" if recorded is None else f"no {SNAPSHOT} beside the result"
        return [], [f"{field}: {why}"]
    try:
        digest = read_tree(snapshot).digest
    except (SlopCodeError, OSError) as error:
        return [], [f"{field}: {error}"]
    return ([] if recorded == digest else [Discrepancy("snapshot", field, recorded, digest)]), []


def of_command(stored: CorrectnessResults) -> Iterator[Discrepancy]:
    """Names and arguments that stand twice in a result; a command is missing where it did not come that far."""
    command, name = stored.provenance.command, stored.checkpoint_name
    given = [word.partition("=")[2] for word in command if word.startswith("--checkpoint=")][:1]
    if given and given[0] != name:
        yield _twice("checkpoint_name", name, given[0], "provenance.command")
    ordered = stored.provenance.checkpoints
    if name not in ordered:
        yield _twice("checkpoint_name", name, text(ordered), "provenance.checkpoints")
    if _LAST_OF_OURS in command:
        arguments = command[command.index(_LAST_OF_OURS) + 1 : -1]
        if arguments != stored.provenance.pytest_args:
            recorded = text(stored.provenance.pytest_args)
            yield _twice("provenance.pytest_args", recorded, text(arguments), "provenance.command")


def _twice(field: str, value: str, other: str, where: str) -> Discrepancy:
    return Discrepancy(CONTRADICTION, field, value, f"{other} in {where}")


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
