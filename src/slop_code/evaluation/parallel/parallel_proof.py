"""Proofs that the tests of checkpoints may run in parallel, which `problems check` writes to the problem's folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from slop_code._io import TooLargeError, digest_of, read_bounded, write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig, Unit

PROOFS = "parallel.json"
"""Name of the file in the problem's folder. It is not among the tests, whose digest it contains."""

SIZE_LIMIT = 1 << 20


class ParallelProofs(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    checkpoints: dict[str, str] = Field(default_factory=dict)
    """By checkpoint: the `proof_digest` of the tests that gave equal results in any order and in parallel."""

    def save(self, path: Path) -> None:
        text = json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False)
        write_atomic(path, text + "\n")


def proof_digest(tests: str, config: str, unit: Unit) -> str:
    """Digest of everything that a proof depends on and that every user of the problem has.

    `tests` and `config` are the digests of a result. The reference is not part of it: other submissions run with the
    same tests, and a problem may be handed on without its solutions.
    """
    return digest_of(["parallel", tests, config, unit])


def proofs_path(problem: ProblemConfig) -> Path:
    return problem.path / PROOFS


def read_proofs(problem: ProblemConfig) -> ParallelProofs:
    """No proofs where there is no file, or none that can be read: then tests run one after the other."""
    try:
        return ParallelProofs.model_validate_json(read_bounded(proofs_path(problem), SIZE_LIMIT), strict=True)
    except (OSError, TooLargeError, ValidationError):
        return ParallelProofs()


def is_proven(problem: ProblemConfig, checkpoint: str, tests: str | None, config: str | None) -> bool:
    """Whether there is a proof for exactly these tests and settings, split as config.yaml says."""
    if tests is None or config is None:
        return False
    return read_proofs(problem).checkpoints.get(checkpoint) == proof_digest(tests, config, problem.unit)
