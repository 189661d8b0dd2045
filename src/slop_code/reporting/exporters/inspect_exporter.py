"""Scores for `precomputed_scores` of Inspect: JSON Lines, a record for each problem of a run.

Inspect wants the same names in every value, so that a group without tests is NaN, which Inspect takes for unscored and
writes in its own logs, too.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO

from slop_code.evaluation.reward_values import mean_rewards, rewards_of
from slop_code.reporting.score_text import score_explanation, score_metadata
from slop_code.reporting.text import file_safe, has_verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.policy import Policy
    from slop_code.runs.read_results import StoredCheckpoint


def export(entries: Iterable[StoredCheckpoint], out: BinaryIO, policy: Policy) -> None:  # noqa: ARG001
    for record in score_records(entries):
        out.write(json.dumps(record).encode() + b"\n")


def score_records(entries: Iterable[StoredCheckpoint]) -> Iterator[dict[str, Any]]:
    """The runs are the epochs, in their order. A problem with a checkpoint that has no verdict has no record."""
    for epoch, (_, run) in enumerate(groupby(entries, key=lambda entry: entry.line.run), start=1):
        for problem, checkpoints in groupby(run, key=lambda entry: entry.line.problem):
            rewards, texts, kept = [], [], {}
            complete = True
            for entry in checkpoints:
                name, results = file_safe(entry.line.checkpoint), entry.results
                if results is None or results.partial or not has_verdict(entry.line):
                    complete = False
                    continue
                rewards.append(rewards_of(results))
                texts.append(f"{name}: {score_explanation(results)}")
                kept[name] = {"rewards": rewards[-1], **score_metadata(results)}
            if complete:
                yield {
                    "id": problem, "epoch": epoch, "value": mean_rewards(rewards),
                    "explanation": "\n\n".join(texts), "metadata": kept,
                }  # fmt: skip
