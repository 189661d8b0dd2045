"""Problems and environments that stay loaded between evaluations, while their files are unchanged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from slop_code._arguments import check_path
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.problem_lookup import CONFIG, environment_word, problem_folder
from slop_code.execution.environment import EnvironmentSpec, check_environment, environment_file
from slop_code.execution.trees.file_signatures import SignatureCache

if TYPE_CHECKING:
    from pathlib import Path

MAX_LOADED = 1024
"""Problems, and environments, that stay loaded."""


class LoadedInputs:
    def __init__(self) -> None:
        self._problems = SignatureCache[ProblemConfig](os.stat, MAX_LOADED)
        self._environments = SignatureCache[EnvironmentSpec](os.stat, MAX_LOADED)

    def problem(self, problem: str | Path | ProblemConfig, problems_dir: Path | None) -> ProblemConfig:
        if isinstance(problem, ProblemConfig):
            return problem
        check_path("problem", problem, "the path or the name of a problem")
        folder = problem_folder(os.fspath(problem), problems_dir)
        return self._problems.load(folder / CONFIG, lambda: ProblemConfig.from_yaml(folder))

    def environment(
        self, problem: ProblemConfig, environment: str | Path | EnvironmentSpec | None
    ) -> tuple[EnvironmentSpec, str | None]:
        """The environment to use, and the name or path that was given."""
        if isinstance(environment, EnvironmentSpec):
            return environment, None
        if environment is not None:
            check_environment(environment)
        given = None if environment is None else os.fspath(environment)
        file = environment_file(environment_word(problem, given))
        return self._environments.load(file, lambda: EnvironmentSpec.from_yaml(file)), given
