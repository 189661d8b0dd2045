"""Texts about the provenance of a result: digests, Python and sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slop_code.evaluation.report import CorrectnessResults

DIGEST_LENGTH = 12


def short_digest(digest: str) -> str:
    return digest.removeprefix("sha256:")[:DIGEST_LENGTH]


def python_text(results: CorrectnessResults) -> str:
    """The Python of the tests, and that of the submission if it has one."""
    source = results.provenance
    return source.python + (f" (submission: {own})" if (own := source.digests.python) else "")


def sandbox_text(results: CorrectnessResults) -> str:
    """Empty where nothing ran in a sandbox."""
    isolation = results.isolation
    return f"{isolation['sandbox']}, network {isolation.get('network', 'unknown')}" if "sandbox" in isolation else ""
