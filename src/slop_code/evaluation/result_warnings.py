"""Warnings of a result: settings that were ignored, tests that do not run, files that are not there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slop_code.evaluation.groups import misspelt_markers
from slop_code.evaluation.pairs import shared_network
from slop_code.evaluation.reports.raw_test import visible
from slop_code.execution.sandbox import sandbox_name

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.staging import Staged
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.submission import SubmissionTree

NAME_LIMIT = 300


def warnings_for(
    context: EvaluationContext, submission_path: Path, staged: Staged | None, submission: SubmissionTree | None
) -> list[str]:
    problem, environment = context.problem, context.environment
    warnings = [*problem.warnings, *environment.warnings, *_ignored_settings(environment)]
    shared = shared_network(environment)
    if problem.parallel > 1 and shared:
        warnings.append(f"parallel is ignored: with {shared} all pairs would share one network")
    entry = environment.entry(problem.entry_file)[-1]
    setup = environment.setup
    if not setup.commands and not setup.eval_commands and not os.path.lexists(submission_path / entry):
        warnings.append(f"the submission has no {entry}; is this the right folder, and the right environment?")
    if submission is not None and submission.unreadable:
        warnings.append(
            f"{submission.unreadable} of the submission's files and folders cannot be read by this user, and it "
            f"runs without them, the first: {visible(submission.first, NAME_LIMIT)}; make them readable"
        )
    if staged is not None:
        warnings += [f"tests/{name} belongs to no checkpoint and is not run" for name in staged.unattributed]
        warnings += misspelt_markers(staged.roster, problem.markers)
    return warnings


def _ignored_settings(environment: EnvironmentSpec) -> list[str]:
    ignored = []
    if environment.environment.include_os_env and sandbox_name(environment) != "none":
        ignored.append("include_os_env is ignored: under isolation nothing of the host's environment is passed on")
    if "cpus" in environment.limits.model_fields_set and environment.type == "local":
        ignored.append("limits.cpus is not enforced by this sandbox")
    return ignored
