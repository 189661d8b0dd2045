"""Checks, after the tests, that the inputs of the evaluation are what they were before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, SlopCodeError
from slop_code.execution.cache import DAMAGE_ERRORS
from slop_code.execution.installation.tool_environment import read_tool_environment
from slop_code.execution.submission import open_submission, read_tree
from slop_code.execution.trees.manifest import check_manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.staging import Staged
    from slop_code.execution.submission import SubmissionTree


def tree_after_tests(context: EvaluationContext, staged: Staged | None, submission: Path) -> SubmissionTree:
    """The submission after the tests. The staged tests and the tools must be unchanged too."""
    check_cache_entries(context, staged)
    return read_tree(open_submission(submission))


def check_cache_entries(context: EvaluationContext, staged: Staged | None) -> None:
    """Raises an error if the staged tests or the tools were damaged."""
    try:
        if staged is not None:
            check_manifest(staged.folder)
        read_tool_environment(context.tools.entry, context.cache)
    except DAMAGE_ERRORS as error:
        message = "a cache entry was damaged while in use; evaluate again, and it is rebuilt"
        raise InfrastructureError(f"{context.cache.root}: {message} ({error})") from error


def submission_change(
    submission: Path, before: Callable[[], SubmissionTree], after: Callable[[], SubmissionTree]
) -> InfrastructureError | None:
    """An error if the submission changed while it was tested: the verdict would belong to neither version."""
    try:
        if before().digest == after().digest:
            return None
    except InfrastructureError as error:
        return error
    except (SlopCodeError, OSError):
        pass  # it could be read before the tests, and now it cannot
    message = "the submission changed while it was evaluated; evaluate it when nothing writes to it"
    return InfrastructureError(f"{submission}: {message}")
