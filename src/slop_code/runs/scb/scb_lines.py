"""The checkpoint_results.jsonl of the SlopCodeBench runner: order of checkpoints and facts about the agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.runs.run_layout import LINES_FILE
from slop_code.runs.scb.agent_facts import (
    MAX_COUNT,
    AgentFacts,
    AgentIdentity,
    mapping,
    read_agent_facts,
    read_agent_identity,
    text_or_none,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_FILE_BYTES = 64 * 1024 * 1024
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


def are_own_lines(lines: Iterable[bytes]) -> bool | None:
    """Whether slop-code wrote a checkpoint_results.jsonl; None where no line tells.

    A single line of another program is enough: what it wrote is never replaced.
    """
    own = None
    for line in lines:
        keys = _object(line).keys()
        if keys >= OWN_KEYS:
            own = True
        elif keys & FOREIGN_KEYS:
            return False
    return own


def read_scb_rows(path: Path) -> Iterator[dict[str, Any]] | None:
    """Lines of the SlopCodeBench runner; None: there is no file, or it is not of another program."""
    try:
        raw = read_bounded(path, MAX_FILE_BYTES).splitlines()[:MAX_LINES]
    except (OSError, TooLargeError):
        return None
    rows = (row for line in raw if not (row := _object(line)).keys() >= OWN_KEYS)
    return rows if are_own_lines(raw) is False else None


def read_scb_lines(path: Path) -> list[ScbLine] | None:
    """As `read_scb_rows`, without lines that cannot be read. Of several lines about a checkpoint the last counts."""
    rows = read_scb_rows(path)
    if rows is None:
        return None
    lines = [line for row in rows if (line := _line(row))]
    return list({(line.problem, line.checkpoint): line for line in lines}.values())


def agent_facts_of(folder: Path, line: ScbLine | None) -> AgentFacts | None:
    """From inference_result.json in a checkpoint's folder, else from its line."""
    return read_agent_facts(folder) or (line.agent if line else None)


def agent_of_result(folder: Path, problem: str, checkpoint: str) -> tuple[AgentIdentity, AgentFacts | None]:
    """The agent of a result in the folder of a checkpoint in a run, and its work on the checkpoint."""
    run = folder.absolute().parent.parent
    lines = read_scb_lines(run / LINES_FILE) or []
    own = next((line for line in lines if (line.problem, line.checkpoint) == (problem, checkpoint)), None)
    return read_agent_identity(run), agent_facts_of(folder, own)


def _object(line: bytes) -> dict[str, Any]:
    try:
        return mapping(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _line(document: dict[str, Any]) -> ScbLine | None:
    problem, checkpoint, state = (text_or_none(document.get(key)) for key in ("problem", "checkpoint", "state"))
    number = document.get("idx")
    if problem is None or checkpoint is None or state is None:
        return None
    if type(number) is not int or not 0 <= number <= MAX_COUNT:
        return None
    agent = AgentFacts.of({**document, "elapsed": document.get("duration"), "error": None})
    return ScbLine(problem, checkpoint, number, state, agent)
