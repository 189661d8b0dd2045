"""Provenance: the digests, versions and the command that a verdict rests on."""

from __future__ import annotations

import functools
import platform
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code._version import __version__
from slop_code.evaluation.command import LOCK
from slop_code.evaluation.report import Provenance
from slop_code.evaluation.staging import judge_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.context import EvaluationContext


EVALUATION = 1
"""Goes up with every change of ours that can change a verdict."""


@functools.cache
def evaluation_version() -> str:
    """Changes by itself with the locked test tools and with what is loaded into the judge."""
    parts = [LOCK.read_text(), *(source.read_text() for source in judge_sources().values())]
    return f"{EVALUATION}-{digest_of(parts)[:12]}"


@functools.cache
def platform_name() -> str:
    """Looks into files to find it out, so it is asked for while the tests run."""
    return platform.platform()


def provenance_of(
    context: EvaluationContext,
    *,
    submission: str | None,
    image: str | None,
    tests: str | None,
    command: Sequence[str],
    pytest_args: Sequence[str],
) -> Provenance:
    """Digests are None where the evaluation did not come that far."""
    problem, tools = context.problem, context.installed_tools
    return Provenance(
        digests={
            "submission": submission,
            "tests": tests,
            "config": problem.digest(context.checkpoint),
            "environment": context.environment.digest(),
            "image": image,
        },
        evaluation_version=evaluation_version(),
        test_dependencies=dict(tools.versions) if tools else {},
        python=tools.python_version if tools else platform.python_version(),
        platform=platform_name(),
        slop_code=__version__,
        command=list(command),
        pytest_args=list(pytest_args),
        checkpoints=list(problem.checkpoints),
        groups=dict(problem.custom_groups),
    )
