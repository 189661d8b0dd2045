"""Facts about the agent: cost, tokens and times of a checkpoint, model and prompt of a run.

They come from files that the agent's harness wrote. A value of another type or range than expected is not recorded.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from pydantic import Field

from slop_code._io import json_object, read_or_none
from slop_code._yaml_parser import parse_yaml
from slop_code.errors import ConfigError
from slop_code.evaluation.result_files.stored_record import Duration, Stored
from slop_code.runs.run_layout import SUMMARY_FILE

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

INFERENCE_FILE = "inference_result.json"
CONFIG_FILE = "config.yaml"
RESULT_SUMMARY_FILE = "result.json"
MAX_FILE_BYTES = 1 << 20
MAX_SUMMARY_BYTES = 64 << 20
MAX_COUNT = 2**53
"""Largest number that every JSON reader keeps exactly."""
MAX_TEXT_LENGTH = 200
DIGEST_LENGTH = 16
NAME_PARTS = {
    "model": "",
    "agent": "",
    "version": "version ",
    "thinking": "thinking ",
    "prompt": "prompt ",
    "provider": "from ",
}
"""Fields of an identity in the order of a name, and the words before their values."""
TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")


class AgentFacts(Stored):
    """The agent's work on one checkpoint. What is not recorded is None."""

    cost: float | None = Field(default=None, ge=0, le=MAX_COUNT)
    """In US dollars."""
    steps: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    input: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    """Tokens, as are the next four."""
    output: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    cache_read: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    cache_write: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    reasoning: int | None = Field(default=None, ge=0, le=MAX_COUNT)
    started: str | None = None
    """As the harness wrote it, ISO 8601."""
    ended: str | None = None
    elapsed: Duration | None = None
    """Seconds."""
    error: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> AgentFacts | None:
        """From flat values by the names of the fields; None where none of them is usable."""
        facts: dict[str, Any] = {name: _count(values.get(name)) for name in ("steps", *TOKENS)}
        facts |= {name: _amount(values.get(name)) for name in ("cost", "elapsed")}
        facts |= {name: text_or_none(values.get(name)) for name in ("started", "ended", "error")}
        return cls(**facts) if any(value is not None for value in facts.values()) else None


class AgentIdentity(Stored):
    """Identity of an agent, which tells it from others. What is not recorded is None."""

    model: str | None = None
    provider: str | None = None
    agent: str | None = None
    version: str | None = None
    prompt: str | None = None
    thinking: str | None = None

    @property
    def is_known(self) -> bool:
        return any(value is not None for _, value in self)

    def text(self, parts: Container[str] = NAME_PARTS) -> str:
        """Of these parts, those that are known."""
        values = {part: getattr(self, part) for part in NAME_PARTS if part in parts}
        return ", ".join(f"{NAME_PARTS[part]}{value}" for part, value in values.items() if value is not None)


def read_agent_facts(checkpoint: Path) -> AgentFacts | None:
    """From inference_result.json in a checkpoint's folder; None where there is none, or nothing usable in it."""
    if not (document := read_json(checkpoint / INFERENCE_FILE)):
        return None
    usage = mapping(document.get("usage"))
    values = {**mapping(usage.get("net_tokens")), "cost": usage.get("cost"), "steps": usage.get("steps")}
    values |= {name: document.get(name) for name in ("started", "elapsed")}
    values |= {"ended": document.get("completed")}
    values |= {"error": document.get("error_message") or "error"} if document.get("had_error") is True else {}
    return AgentFacts.of(values)


def read_agent_identity(run: Path) -> AgentIdentity:
    """From config.yaml in the run's folder; what that does not say, from result.json.

    A mirrored tree has neither: its summary.json names the agent of the run.
    """
    config, summary = _read_yaml(run / CONFIG_FILE), read_json(run / RESULT_SUMMARY_FILE)
    if not config and not summary:
        return _identity_in_summary(run)
    model, agent = config.get("model"), config.get("agent")
    values = {
        "model": mapping(model).get("name", model) or summary.get("model"),
        "provider": mapping(model).get("provider"),
        "agent": mapping(agent).get("type", agent) or summary.get("agent_type"),
        "version": mapping(agent).get("version") or summary.get("agent_version"),
        "prompt": config.get("prompt") or config.get("prompt_path") or summary.get("prompt"),
        "thinking": config.get("thinking") or summary.get("thinking"),
    }
    return AgentIdentity(**{name: _identity_part(value) for name, value in values.items()})


def _identity_in_summary(run: Path) -> AgentIdentity:
    agents = list(mapping(read_json(run / SUMMARY_FILE, MAX_SUMMARY_BYTES).get("agents")).values())
    known = mapping(agents[0]) if len(agents) == 1 else {}
    return AgentIdentity(**{name: _identity_part(known.get(name)) for name in AgentIdentity.model_fields})


def read_json(path: Path, limit: int = MAX_FILE_BYTES) -> dict[str, Any]:
    """The object in a file; empty where there is none that can be read."""
    return json_object(read_or_none(path, limit))


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        return parse_yaml((read_or_none(path, MAX_FILE_BYTES) or b"").decode(), path)
    except (UnicodeDecodeError, ConfigError):
        return {}


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def text_or_none(value: Any) -> str | None:
    """A text, or a number as text; cut, as it is shown in tables."""
    text = _text(value)
    return text and text[:MAX_TEXT_LENGTH]


def _identity_part(value: Any) -> str | None:
    """As `text_or_none`, but texts that differ beyond the cut stay apart by their digests."""
    text = _text(value)
    if text is None or len(text) <= MAX_TEXT_LENGTH:
        return text
    ending = f"... {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:DIGEST_LENGTH]}"
    return text[: MAX_TEXT_LENGTH - len(ending)] + ending


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return None
    return str(value)


def _count(value: Any) -> int | None:
    amount = _amount(value)
    return int(amount) if amount is not None and amount == int(amount) else None


def _amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return float(value) if math.isfinite(value) else None
