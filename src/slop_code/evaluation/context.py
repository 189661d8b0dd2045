"""Evaluation context: a checkpoint in an environment on this machine."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.command import LOCK, TOOL, TOOLS
from slop_code.evaluation.problem.dependency_lock import dependency_mistakes, read_test_lock
from slop_code.execution.installation.tool_environment import build_tool_environment
from slop_code.execution.sandbox import sandbox_for

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec, TimeoutsSpec
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.sandbox import Sandbox, ToolEnvironment


def ignore_progress(_: object) -> None:
    """The callback of a caller that wants no progress."""


def timeout_per_test(checkpoint: CheckpointConfig, timeouts: TimeoutsSpec) -> float:
    return timeouts.test or checkpoint.timeout


@dataclass(frozen=True)
class EvaluationContext:
    """The sandbox is opened, and the test tools are installed, at their first use."""

    problem: ProblemConfig
    checkpoint: CheckpointConfig
    environment: EnvironmentSpec
    cache: Cache
    progress: ProgressCallback = ignore_progress

    @functools.cached_property
    def sandbox(self) -> Sandbox:
        """Raises ConfigError where no Python fits what environment and checkpoint ask for."""
        spec = self.environment.requiring(self.checkpoint.requires_python)
        sandbox = sandbox_for(spec, self.cache, self.progress)
        sandbox.subject_python()
        return sandbox

    @functools.cached_property
    def tools(self) -> ToolEnvironment:
        return tools_for(self.sandbox, self.problem, self.test_lock)

    @functools.cached_property
    def test_lock(self) -> str | None:
        """The lock of the problem's test_dependencies."""
        return read_test_lock(self.problem)

    @property
    def test_timeout(self) -> float:
        """Seconds for each test."""
        return timeout_per_test(self.checkpoint, self.environment.timeouts)

    def missing_entry_file(self, submission: Path) -> str | None:
        """The file that starts the submission, where the submission has no such file and no set-up may make it."""
        setup, entry = self.environment.setup, self.environment.entry(self.problem.entry_file)[-1]
        is_made = setup.commands or setup.eval_commands
        return None if is_made or os.path.lexists(submission / entry) else entry

    @property
    def installed_tools(self) -> ToolEnvironment | None:
        """The test tools, or None if the evaluation failed before they were installed."""
        return self.__dict__.get("tools")


def tools_for(sandbox: Sandbox, problem: ProblemConfig | None = None, test_lock: str | None = None) -> ToolEnvironment:
    """Installs the tools, and the test_dependencies of the problem, or takes them from the cache."""
    if problem is None:
        return build_tool_environment(sandbox, TOOL, TOOLS, LOCK)
    with dependency_mistakes(problem):
        return build_tool_environment(sandbox, TOOL, TOOLS, LOCK, problem.test_dependencies, test_lock)
