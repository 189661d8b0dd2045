"""Entries as reading a run gives them, made by hand."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from slop_code.evaluation.policy import PassPolicy
from slop_code.reporting.exporters import exporter
from slop_code.runs.checkpoint_lines import CheckpointFacts, CheckpointLine
from slop_code.runs.read_results import StoredCheckpoint
from tests.factories import result

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = (
    "</script><script>alert(1)</script>\x1b]0;owned\x07\x00\ud800\ufffe\x9b31m]]><![CDATA[&amp;'\"|`\n````\n~~~\n"
    "</details>@everyone #1 [a](http://x.example) <img src=x> www.x.example\r\n\u202e\\|\u2028E   =cmd()"
)


@pytest.fixture
def make_test() -> Callable[..., dict[str, Any]]:
    def make(name: str = "test_a", status: str = "passed", **keys: Any) -> dict[str, Any]:
        return {
            "id": name, "checkpoint": "checkpoint_1", "group_type": "Core", "status": status, "duration_ms": 1234.5678,
            "file_path": "test_checkpoint_1.py", "markers": ["slow", "parametrize"], **keys,
        }  # fmt: skip

    return make


@pytest.fixture
def make_entry() -> Callable[..., StoredCheckpoint]:
    """`make_entry(test, checkpoint="checkpoint_2", reason="killed")`, or without a result `make_entry(gone="why")`."""

    def make(
        *tests: dict[str, Any],
        run: str = "monday",
        problem: str = "words",
        checkpoint: str = "checkpoint_1",
        reason: str | None = None,
        gone: str | None = None,
        **keys: Any,
    ) -> StoredCheckpoint:
        names = {"run": run, "problem": problem, "checkpoint": checkpoint, "order": 1}
        if gone is not None:
            return StoredCheckpoint(CheckpointLine(**dict(CheckpointFacts.no_verdict(gone)), **names))
        results = result(
            tests,
            problem_name=problem,
            checkpoint_name=checkpoint,
            duration=2.5,
            pytest_exit_code=1,
            infrastructure_failure_reason=reason,
            evidence="stream",
        )
        return StoredCheckpoint(CheckpointLine(**{**dict(CheckpointFacts.of(results)), **names, **keys}), results)

    return make


@pytest.fixture
def hostile(make_test, make_entry) -> StoredCheckpoint:
    """A submission's text, and worse, in every place that has any."""
    texts = {"failure_message": f"E   {HOSTILE}\n{HOSTILE}", "output": HOSTILE * 3, "calls": [HOSTILE]}
    tests = [
        make_test(f"test_a[{HOSTILE}]", "failed", markers=[HOSTILE], **texts),
        make_test("test_b", "error", file_path=f"{HOSTILE}.py", checkpoint=HOSTILE, **texts),
        make_test("test_c", "skipped", **texts),
    ]
    return make_entry(*tests, run=HOSTILE, problem=HOSTILE, checkpoint=HOSTILE, state="evaluated")


@pytest.fixture
def export() -> Callable[..., bytes]:
    def write(name: str, *entries: StoredCheckpoint, policy: Any = PassPolicy.ALL_CASES) -> bytes:
        out = io.BytesIO()
        exporter(name)(iter(entries), out, policy)
        return out.getvalue()

    return write
