"""Grading of a stored result by the groups of a changed problem, from its evidence, without running anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.errors import ResultError
from slop_code.evaluation.evidence import read_repeats, read_roster
from slop_code.evaluation.grading import GradingRules, grade
from slop_code.evaluation.report import RESULT_FILE, CorrectnessResults
from slop_code.evaluation.result_files.replace_result import new_result
from slop_code.evaluation.roster import Roster
from slop_code.runs.result_archive import pack_result, unpack_result
from slop_code.verification.damage import read_pairs
from slop_code.verification.stored_document import read_document
from slop_code.verification.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.evaluation.test_code.test_inputs import TestInputs

GRADED_AGAIN = "graded again from its evidence after a change of the problem; the tests did not run again"


def follows_from_evidence(folder: Path) -> bool:
    """Whether the stored result is exactly what follows from its evidence."""
    try:
        document = read_document(folder / RESULT_FILE)
        return isinstance(read_roster(folder), Roster) and not verify(folder, document).findings
    except ResultError:
        return False


def grade_again(folder: Path, problem: ProblemConfig, inputs: TestInputs) -> CorrectnessResults:
    """The stored result has to follow from its evidence. `inputs`: those of the problem now."""
    stored, roster = read_document(folder / RESULT_FILE).results, read_roster(folder)
    if not isinstance(roster, Roster):
        raise ResultError(f"{folder}: its evidence changed while the run was regraded; regrade the run again")
    names, custom = list(problem.checkpoints), dict(problem.custom_groups)
    rules = GradingRules.with_markers(names, stored.checkpoint_name, custom, stored.provenance.pytest_args)
    graded = grade(read_pairs(folder, roster, roster.pairs), roster, rules, read_repeats(folder))
    groups = {test.nodeid: test.group_type for test in graded.tests}
    digests = stored.provenance.digests.model_copy(
        update={"tests": inputs.tests_digest, "config": inputs.config_digest}
    )
    provenance = {"digests": digests, "checkpoints": names, "groups": custom}
    return stored.model_copy(
        update={
            "tests": [test.model_copy(update={"group_type": groups[test.nodeid]}) for test in stored.tests],
            "provenance": stored.provenance.model_copy(update=provenance),
            "warnings": [*(text for text in stored.warnings if text != GRADED_AGAIN), GRADED_AGAIN],
        }
    )


def replace_grade(folder: Path, results: CorrectnessResults, inputs: TestInputs) -> None:
    """Stores a result that was graded again, with the same evidence."""
    archive = pack_result(folder)
    with new_result(folder) as new:
        unpack_result(archive, new)
        inputs.save(new)
        results.write(new / RESULT_FILE)
