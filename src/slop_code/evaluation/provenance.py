"""Provenance of a result: the digests, versions and the command that its verdict depends on, and its warnings."""

from __future__ import annotations

import functools
import os
import platform
from typing import TYPE_CHECKING, Any

from slop_code._io import digest_of
from slop_code._safe_text import NAME_LIMIT, escape_control
from slop_code._suggestions import first_names
from slop_code._version import __version__
from slop_code.errors import SlopCodeError
from slop_code.evaluation.groups import misspelt_markers
from slop_code.evaluation.problem.canary import canary_warnings
from slop_code.evaluation.problem.dependency_lock import COMMAND
from slop_code.evaluation.problem.entry_file import no_entry_file
from slop_code.evaluation.report import Provenance
from slop_code.evaluation.result_files.staleness import evaluation_version
from slop_code.evaluation.roster import shared_network_reason
from slop_code.execution.dependencies.dependency_warnings import dependency_warnings
from slop_code.execution.dependencies.find_dependencies import has_script_dependencies, python_requests
from slop_code.execution.python_version import fits
from slop_code.execution.sandbox import sandbox_name
from slop_code.execution.submission import open_submission

MAX_WARNINGS = 20
"""About paths that were not handed over."""

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.report import TestResult
    from slop_code.evaluation.staging import Staged
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.submission import SubmissionTree


@functools.cache
def platform_name() -> str:
    """Slow because it reads files, so it is called while the tests run."""
    system = os.uname()
    library = "".join(platform.libc_ver())
    # As platform.platform(), which starts a process.
    return f"{system.sysname}-{system.release}-{system.machine}" + (f"-with-{library}" if library else "")


def provenance_of(
    context: EvaluationContext,
    digests: Mapping[str, str | None],
    *,
    command: Sequence[str],
    pytest_args: Sequence[str],
) -> Provenance:
    """`digests` has those not known from the configuration.

    A digest is None if the evaluation failed before it was computed.
    """
    problem, tools = context.problem, context.installed_tools
    return Provenance(
        digests={
            **digests,
            "config": problem.digest(context.checkpoint),
            "environment": context.environment.digest(),
        },
        evaluation_version=evaluation_version(),
        test_dependencies=dict(tools.versions) if tools else {},
        test_lock=None if context.test_lock is None else digest_of([context.test_lock]),
        python=tools.python_version if tools else platform.python_version(),
        platform=platform_name(),
        slop_code=__version__,
        command=list(command),
        pytest_args=list(pytest_args),
        checkpoints=list(problem.checkpoints),
        groups=dict(problem.custom_groups),
    )


def _entry_warnings(context: EvaluationContext, submission: Path, python: str | None) -> Iterator[str]:
    """About the entry file, and the files that name dependencies and Pythons."""
    environment = context.environment
    entry = environment.entry(context.problem.entry_file)[-1]
    has_commands = environment.setup.commands or environment.setup.eval_commands
    if context.missing_entry_file(submission) is not None:
        yield no_entry_file(entry)
    if python is None:
        return
    try:
        folder = open_submission(submission)
        yield from [] if has_commands else dependency_warnings(folder, entry)
        if environment.runs_uv() and has_script_dependencies(folder, entry):
            yield f"`uv run` does not use what was installed for the script metadata in {entry}; `python` does"
        for file, request in python_requests(folder, entry):
            if not fits(python, request):
                yield f"the submission asks for Python {escape_control(request, 100)} ({file}), and ran on {python}"
    except (SlopCodeError, OSError) as error:
        yield f"the submission's dependencies cannot be looked at: {error}"


def warnings_for(
    context: EvaluationContext,
    submission_path: Path,
    staged: Staged | None,
    submission: SubmissionTree | None,
    python: str | None,
) -> list[str]:
    """Warnings about ignored settings, tests that do not run, missing files, and another Python than was asked for."""
    problem, environment = context.problem, context.environment
    warnings = [*problem.warnings, *environment.warnings, *_ignored_settings(environment)]
    if problem.fixed_pairs > 1 and (reason := shared_network_reason(environment)):
        warnings.append(f"parallel is ignored: {reason}")
    if submission is None or submission.over_limit is None:
        warnings += _entry_warnings(context, submission_path, python)
        warnings += canary_warnings(problem, submission_path)
    if submission is not None and submission.unreadable:
        warnings.append(
            f"{submission.unreadable} of the submission's files and folders cannot be read by this user, nor by "
            f"the submission, the first: {escape_control(submission.first_unreadable, NAME_LIMIT)}; "
            "make them readable"
        )
    if (tools := context.installed_tools) is not None and tools.resolved is not None:
        names = first_names(problem.test_dependencies, 5)
        warnings.append(f"test_dependencies ({names}) were resolved on {tools.resolved}; `{COMMAND}` pins them")
    if staged is not None:
        warnings += [f"tests/{name} belongs to no checkpoint and is not run" for name in staged.unattributed]
        warnings += misspelt_markers(staged.roster, problem.markers)
    return warnings


def refused_handovers(tests: Sequence[TestResult]) -> list[str]:
    """A warning for each path that was not handed over, with the first of its tests."""
    named: dict[tuple[str, str], list[str]] = {}
    for test in tests:
        for refused in test.refused_paths:
            named.setdefault((refused.path, refused.reason), []).append(test.nodeid)
    warnings = []
    for (path, reason), (first, *others) in list(named.items())[:MAX_WARNINGS]:
        more = f" and {len(others)} more" if others else ""
        where = "tests" if path == "." else f"tests/{path}"
        warnings.append(f"{where} was not handed over to the submission in {first}{more}: {reason}")
    if len(named) > MAX_WARNINGS:
        warnings.append(f"{len(named) - MAX_WARNINGS} more paths were not handed over to the submission")
    return warnings


def unenforced_limits(environment: EnvironmentSpec, isolation: Mapping[str, Any]) -> list[str]:
    """A warning, where the environment limits CPU time and the boxes had no such limit."""
    if "cpus" not in environment.limits.model_fields_set or not isolation or "cpus" in isolation.get("limits", {}):
        return []
    return ["limits.cpus was not enforced: only control groups limit CPU time"]


def _ignored_settings(environment: EnvironmentSpec) -> list[str]:
    if environment.environment.include_os_env and sandbox_name(environment) != "none":
        return ["include_os_env is ignored: under isolation nothing of the host's environment is passed on"]
    return []
