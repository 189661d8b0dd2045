"""Evaluated runs as files, made by hand; and what a page holds, read back from it."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from tests.factories import result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from slop_code.evaluation.report import CorrectnessResults


def case(name: str, status: str = "passed", **fields: Any) -> dict[str, Any]:
    return {"id": name, "status": status, "duration_ms": 1.4, **fields}


def results(
    tests: Sequence[dict[str, Any]], problem: str = "words", checkpoint: str = "checkpoint_1", **fields: Any
) -> CorrectnessResults:
    names = {"problem_name": problem, "checkpoint_name": checkpoint}
    return result(tests, **{**names, "phases": {"tests": 0.25}, "evidence": "stream", **fields})


def store(run: Path, checkpoints: Sequence[Sequence[dict[str, Any]] | str], problem: str = "words") -> Path:
    """Each checkpoint is its tests, or the reason why there is no verdict."""
    for number, tests in enumerate(checkpoints, start=1):
        failed = {"infrastructure_failure_reason": tests} if isinstance(tests, str) else {}
        document = results([] if isinstance(tests, str) else tests, problem, f"checkpoint_{number}", **failed)
        document.save(run / problem / f"checkpoint_{number}" / "evaluation.json")
    return run


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes, and the texts of those that are known by an id."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, ...]] = []
        self.texts: dict[str, str] = {}
        self.policy = ""
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, *attributes))
        self.policy = attributes.get("content") or "" if "http-equiv" in attributes else self.policy
        self._inside = attributes.get("id") or f"{tag} {len(self.elements)}"

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))
        self._inside = ""

    def handle_data(self, data: str) -> None:
        self.texts[self._inside] = self.texts.get(self._inside, "") + data

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", data))


def unpacked(packed: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))
