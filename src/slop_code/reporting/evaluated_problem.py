"""Problem that a stored result was made from, as far as it is on this machine and still the same."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from slop_code.errors import SlopCodeError
from slop_code.evaluation.config import ProblemConfig
from slop_code.evaluation.problem.problem_contents import Contents, checkpoint_inputs
from slop_code.evaluation.result_files.origin import remembered_problem, stored_origin
from slop_code.execution.assets import walk
from slop_code.reporting.test_source import TestSources
from slop_code.runs.scb.load_result import is_scb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.evaluation.report import CorrectnessResults, TestResult

MAX_TEST_FILES = 20_000
MAX_TESTS_BYTES = 512 << 20
"""Files and bytes of a problem's tests and assets; of a larger problem, no sources are shown."""

UNREADABLE = (SlopCodeError, OSError, ValueError)
"""Errors of a folder that is gone or damaged, or whose path is none."""


@dataclass
class ProblemFolder:
    """A problem's folder as it is now. Its files are read when they are needed, and once."""

    config: ProblemConfig
    _tests_digests: dict[str, str | None] = field(default_factory=dict)

    def sources(self, results: CorrectnessResults) -> TestSources | None:
        """None unless the tests are those of the result."""
        name, digest = results.checkpoint_name, results.provenance.digests.tests
        if digest is None or name not in self.config.checkpoints or self._contents is None:
            return None
        if name not in self._tests_digests:
            self._tests_digests[name] = self._tests_digest(name, self._contents)
        return self._sources if self._tests_digests[name] == digest else None

    def _tests_digest(self, checkpoint: str, contents: Contents) -> str | None:
        try:
            return checkpoint_inputs(self.config, self.config.checkpoints[checkpoint], contents).tests_digest
        except UNREADABLE:
            return None

    @cached_property
    def _contents(self) -> Contents | None:
        """None beyond the limits, and where a file cannot be read."""
        try:
            return Contents.of(self.config) if is_small(self.config) else None
        except UNREADABLE:
            return None

    @cached_property
    def _sources(self) -> TestSources | None:
        contents = self._contents
        return None if contents is None else TestSources(self.config.path / "tests", contents.digest_of_test_file)


@dataclass(slots=True)
class EvaluatedProblems:
    """Problems of stored results; each folder is read once."""

    _folders: dict[Path, ProblemFolder | None] = field(default_factory=dict)

    def of(self, results: CorrectnessResults, folder: Path, run: Path) -> EvaluatedProblem:
        """`folder` is that of the result, in the folder of a run."""
        if is_scb(results):
            return EvaluatedProblem(results)
        own = stored_origin(folder).problem
        path = Path(own) if own and os.path.isabs(own) else remembered_problem(folder.parent, run)
        if path is None:
            return EvaluatedProblem(results)
        if path not in self._folders:
            self._folders[path] = _read(path)
        return EvaluatedProblem(results, self._folders[path])


@dataclass(frozen=True, slots=True)
class EvaluatedProblem:
    """The problem of one result."""

    results: CorrectnessResults
    folder: ProblemFolder | None = None
    """None where it is not on this machine."""

    @property
    def config(self) -> ProblemConfig | None:
        """None unless it is that of the result."""
        name, digest = self.results.checkpoint_name, self.results.provenance.digests.config
        config = self.folder.config if self.folder else None
        if config is None or name not in config.checkpoints or config.digest(config.checkpoints[name]) != digest:
            return None
        return config

    @property
    def version(self) -> str | None:
        return self.config.version if self.config else None

    def source(self, test: TestResult) -> str | None:
        """Source of the function of a test; None unless it is known to be the one that was evaluated."""
        sources = self.folder.sources(self.results) if self.folder else None
        return sources.of(PurePosixPath(test.file_path), test.id) if sources else None


def is_small(problem: ProblemConfig) -> bool:
    """True if the tests and assets are within the limits."""
    left = MAX_TESTS_BYTES
    for count, path in enumerate(_files(problem), start=1):
        left -= path.stat().st_size
        if count > MAX_TEST_FILES or left < 0:
            return False
    return True


def _files(problem: ProblemConfig) -> Iterator[Path]:
    roots = [problem.path / "tests", *problem.assets.values()]
    return itertools.chain.from_iterable(_files_below(root.resolve(), problem.path) for root in roots)


def _files_below(root: Path, fence: Path) -> Iterator[Path]:
    if not root.is_dir():
        return iter([root])
    return (actual for _, actual in walk(root, fence=fence))


def _read(path: Path) -> ProblemFolder | None:
    try:
        return ProblemFolder(ProblemConfig.from_yaml(path))
    except UNREADABLE:
        return None
