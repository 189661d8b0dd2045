"""Evaluated runs as files, made by hand; and what a page holds, read back from it."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from slop_code.quality.quality_record import QualityFigures, QualityRecord
from tests.factories import result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.report import TestResult


def store(run: Path, checkpoints: Sequence[Sequence[TestResult] | str], problem: str = "words") -> Path:
    """Each checkpoint is its tests, or the reason why there is no verdict."""
    for number, tests in enumerate(checkpoints, start=1):
        failed = {"infrastructure_failure_reason": tests, "tests": ()} if isinstance(tests, str) else {"tests": tests}
        stored = result(problem_name=problem, checkpoint_name=f"checkpoint_{number}", phases={"tests": 0.25}, **failed)
        stored.save(run / problem / f"checkpoint_{number}" / "evaluation.json")
    return run


def store_snapshots(run: Path, snapshots: Sequence[Mapping[str, str | bytes] | None], problem: str = "words") -> Path:
    """Files of the snapshot of each checkpoint; None for a checkpoint without a snapshot."""
    for number, files in enumerate(snapshots, start=1):
        for name, content in (files or {}).items():
            path = run / problem / f"checkpoint_{number}" / "snapshot" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return run


MEASURED = QualityFigures(
    verbosity=0.25, erosion=0.5, cog_erosion=0.0, source_lines=40, max_complexity=None, files=1, functions=2,
    high_cc_functions=0, high_cog_functions=0, flagged_lines=10, clone_lines=0, languages={"python": 1},
)  # fmt: skip


def quality(**fields: Any) -> QualityRecord:
    """The record of the submission that `store` writes results of."""
    made_by = {"scb_check": "0.2.0", "lock": "0", "python": "3.12.1", "sandbox": "bubblewrap", "slop_code": "0.1.0"}
    digest = result().provenance.digests.submission
    return QualityRecord(**{"submission": digest, "implementation": MEASURED, "provenance": made_by, **fields})


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


def data_of(page: Path) -> dict[str, Any]:
    """The data that a page unpacks at once."""
    data: dict[str, Any] = unpacked(Shape(page.read_text()).texts["data"])["data"]
    return data
