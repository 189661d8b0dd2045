"""Inputs that requests may name: the problems, environments and folders of the server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import UsageError
from slop_code.evaluation.evaluator.loaded_inputs import LoadedInputs
from slop_code.evaluation.problem.problem_lookup import find_folder, problems_folders, problems_in
from slop_code.execution.environment import load_environment
from slop_code.runs.jobs.run_control import Retries

if TYPE_CHECKING:
    from slop_code.bridges.service.service_records import EvaluateRequest
    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec


class ForbiddenPathError(UsageError):
    """A path that is not below an allowed folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    workers: int | None = None
    """None stands for as many as processors."""

    executor: str = "threads"
    address: str | None = None
    retries: Retries = field(default_factory=Retries)
    environments: tuple[str, ...] = ()
    """Names or paths; the first is the default. If there are none, only the problem's own is allowed, else `local`."""

    problems_dir: Path | None = None
    allowed: tuple[Path, ...] = ()
    """Folders below which a request may name a submission by its path."""

    hidden: tuple[Path, ...] = ()
    """More folders that no submission may see."""

    max_jobs: int = 1000
    """Evaluations that wait or run."""


class ServerInputs:
    """Nothing else can be named, so that a request can neither read other files nor turn off isolation."""

    def __init__(self, settings: QueueSettings) -> None:
        self._loaded, self._problems_dir = LoadedInputs(), settings.problems_dir
        self._environments = _environments(settings.environments)
        self.allowed = [folder.resolve(strict=True) for folder in settings.allowed]

    def problem_names(self) -> list[str]:
        return list(problems_in(*problems_folders(self._problems_dir)))

    def problem(self, name: str) -> ProblemConfig:
        """A problem of the server, by its name alone."""
        folders = problems_folders(self._problems_dir)
        folder = None if "/" in name or "\0" in name or name.startswith(".") else find_folder(name, folders)
        if not name or folder is None:
            raise UsageError(f"problem: no problem {name!r} on this server; GET /problems lists them")
        return self._loaded.problem(folder.absolute(), None)

    def environment(self, request: EvaluateRequest, problem: ProblemConfig) -> EnvironmentSpec:
        if request.environment is None and not self._environments:
            return self._loaded.environment(problem, None)[0]
        if request.environment is None:
            return next(iter(self._environments.values()))
        if request.environment not in self._environments:
            known = f"give one of {', '.join(self._environments)}" if self._environments else "leave it out"
            raise UsageError(f"environment: {request.environment!r} is not offered by this server; {known}")
        return self._environments[request.environment]

    def allowed_folder(self, path: str) -> Path:
        """The real path, so that no link leads out of an allowed folder; nothing may be there."""
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            real = None
        if real is None or not any(folder in real.parents for folder in self.allowed):
            raise ForbiddenPathError(f"submission.path: {path!r} is not below an allowed folder (--allow)")
        return real


def _environments(words: tuple[str, ...]) -> dict[str, EnvironmentSpec]:
    """By the words that the operator gave and by their names, the default first."""
    specs = [(word, load_environment(word)) for word in words]
    return dict(specs) | {spec.name: spec for _, spec in specs}
