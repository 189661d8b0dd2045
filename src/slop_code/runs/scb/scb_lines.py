"""The checkpoint_results.jsonl of the SlopCodeBench runner: order of checkpoints and facts about the agent."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code._io import json_object, read_or_none
from slop_code.errors import ResultError
from slop_code.evaluation.result_files.foreign_files import last_renamed
from slop_code.runs.checkpoint_lines import CheckpointLine, read_lines
from slop_code.runs.run_layout import LINES_FILE
from slop_code.runs.scb.agent_facts import (
    MAX_COUNT,
    AgentFacts,
    AgentIdentity,
    read_agent_facts,
    read_agent_identity,
    text_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_LINES_FILE_BYTES = 64 * 1024 * 1024
MAX_LINES = 100_000
OWN_KEYS = {"run", "problem", "checkpoint", "order"}
"""Keys of every line of slop-code."""
FOREIGN_KEYS = {"strict_pass_rate", "version", "path", "idx"}
"""A line with one of these keys, and not with all of ours, is of another program."""


@dataclass(frozen=True, slots=True)
class ScbLine:
    problem: str
    checkpoint: str
    number: int
    """Orders the checkpoints of a problem; where the count starts is the runner's choice."""
    state: str
    agent: AgentFacts | None
    columns: dict[str, Any] = field(repr=False, compare=False)
    """The line itself."""


def scb_lines_of(run: Path) -> list[ScbLine]:
    """Lines of the SlopCodeBench runner about a run, also where --replace has renamed their file."""
    path = run / LINES_FILE
    return read_scb_lines(path) or read_scb_lines(last_renamed(path)) or []


def has_own_lines(run: Path) -> bool:
    """Whether there is a checkpoint_results.jsonl, and it is not of the SlopCodeBench runner."""
    return os.path.lexists(run / LINES_FILE) and read_scb_lines(run / LINES_FILE) is None


def are_own_lines(lines: Iterable[bytes]) -> bool | None:
    """Whether slop-code wrote a checkpoint_results.jsonl; None where no line tells.

    A single line of another program is enough: what it wrote is never replaced.
    """
    own = None
    for line in lines:
        keys = json_object(line).keys()
        if keys >= OWN_KEYS:
            own = True
        elif keys & FOREIGN_KEYS:
            return False
    return own


def read_scb_lines(path: Path) -> list[ScbLine] | None:
    """The lines, or None if there is no file, or if it is not of another program. What cannot be read is left out.

    Of several lines about a checkpoint the last counts.
    """
    raw = (read_or_none(path, MAX_LINES_FILE_BYTES) or b"").splitlines()[:MAX_LINES]
    if are_own_lines(raw) is not False:
        return None
    rows = (row for row in map(json_object, raw) if not row.keys() >= OWN_KEYS)
    lines = [line for row in rows if (line := _line(row))]
    return list({(line.problem, line.checkpoint): line for line in lines}.values())


def agent_facts_of(folder: Path, line: ScbLine | None) -> AgentFacts | None:
    """From inference_result.json in a checkpoint's folder, else from its line."""
    return read_agent_facts(folder) or (line.agent if line else None)


def agent_of_result(folder: Path, problem: str, checkpoint: str) -> tuple[AgentIdentity, AgentFacts | None]:
    """The agent of a result in the folder of a checkpoint in a run, and its work on the checkpoint.

    In a mirrored tree, the work is in our own line about the checkpoint.
    """
    run = folder.absolute().parent.parent
    lines: list[CheckpointLine | ScbLine] = []
    with contextlib.suppress(ResultError):
        lines += read_lines(run / LINES_FILE) if has_own_lines(run) else []
    lines += scb_lines_of(run)
    works = [line.agent for line in lines if (line.problem, line.checkpoint) == (problem, checkpoint)]
    return read_agent_identity(run), read_agent_facts(folder) or next(filter(None, works), None)


def _line(document: dict[str, Any]) -> ScbLine | None:
    problem, checkpoint, state = (text_or_none(document.get(key)) for key in ("problem", "checkpoint", "state"))
    number = document.get("idx")
    if problem is None or checkpoint is None or state is None:
        return None
    if type(number) is not int or not 0 <= number <= MAX_COUNT:
        return None
    agent = AgentFacts.of({**document, "elapsed": document.get("duration"), "error": None})
    return ScbLine(problem, checkpoint, number, state, agent, document)
