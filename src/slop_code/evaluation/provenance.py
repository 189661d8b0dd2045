"""What a verdict rests on, so that anyone can come to it again."""

from __future__ import annotations

import functools
import platform
from typing import TYPE_CHECKING

from slop_code import __version__
from slop_code.evaluation.report import Provenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.boxes import ToolEnv
    from slop_code.execution.spec import EnvironmentSpec


@functools.cache
def platform_name() -> str:
    """Looks into files to find it out, so it is asked for while the tests run."""
    return platform.platform()


def provenance_of(
    problem: ProblemConfig,
    spec: EnvironmentSpec,
    *,
    submission: str | None,
    image: str | None,
    tests: str | None,
    tools: ToolEnv | None,
    command: Sequence[str],
    pytest_args: Sequence[str],
) -> Provenance:
    return Provenance(
        digests={
            "submission": submission,
            "tests": tests,
            "config": problem.digest(),
            "environment": spec.digest(),
            "image": image,
        },
        test_dependencies=dict(tools.versions) if tools else {},
        python=tools.python_version if tools else platform.python_version(),
        platform=platform_name(),
        slop_code=__version__,
        command=list(command),
        pytest_args=list(pytest_args),
    )
