"""Proofs for `parallel: auto`, from the runs of a reference in other orders and in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slop_code.authoring.check.stability.conditions import ConditionKind
from slop_code.authoring.check.stability.flips import flipping_tests
from slop_code.evaluation.parallel.parallel_proof import ParallelProofs, proof_digest, proofs_path, read_proofs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from slop_code.authoring.check.stability.stability_rules import ObservedRuns
    from slop_code.evaluation.config import ProblemConfig, Unit
    from slop_code.evaluation.problem.quarantine import Quarantine

NEEDED = (ConditionKind.ORDER, ConditionKind.PARALLEL)


def proof_facts(observed: ObservedRuns, quarantine: Quarantine, unit: Unit) -> dict[str, Any]:
    """The digest of the proof, or the reason why the runs prove nothing.

    `refuted` says that they show the opposite, or that one of them gave no verdict.
    """
    runs = [run for run in observed.runs if run.alone is None]
    kinds = {run.condition.kind for run in runs}
    flips = [test for test in flipping_tests(observed.runs) if not quarantine.covers(test)]
    inputs = {run.inputs for run in runs if run.inputs is not None}
    if flips:
        return _no_proof(f"{len(flips)} of {len(runs[0].passed)} tests flip", refuted=True)
    if lost := [run for run in runs if run.lost]:
        return _no_proof(f"there was no verdict {lost[0].condition}", refuted=True)
    if missing := [kind for kind in NEEDED if kind not in kinds]:
        return _no_proof(f"not tried {missing[0]}", refuted=False)
    if len(inputs) != 1:
        return _no_proof("the tests changed during the check", refuted=False)
    [(tests, config)] = inputs
    return {"proof": proof_digest(tests, config, unit), "reason": None, "refuted": False}


def _no_proof(reason: str, *, refuted: bool) -> dict[str, Any]:
    return {"proof": None, "reason": reason, "refuted": refuted}


def save_proofs(problem: ProblemConfig, facts: Mapping[str, Mapping[str, Any]]) -> Path | None:
    """Replaces the proofs of these checkpoints; None where the file stays as it is.

    An earlier proof stays unless it was refuted: it counts for the tests that it was made with, and no others.
    """
    before = read_proofs(problem).checkpoints
    proofs = {name: digest for name, digest in before.items() if name in problem.checkpoints}
    for name, fact in facts.items():
        if fact["proof"] is not None:
            proofs[name] = fact["proof"]
        elif fact["refuted"]:
            proofs.pop(name, None)
    if proofs == before:
        return None
    path = proofs_path(problem)
    ParallelProofs(checkpoints=proofs).save(path)
    return path


def proof_lines(facts: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """For a problem with `parallel: auto`."""
    for name, fact in facts.items():
        proven = fact["proof"] is not None
        yield f"{name}: its tests may run in parallel" if proven else f"{name}: no proof for parallel: {fact['reason']}"
