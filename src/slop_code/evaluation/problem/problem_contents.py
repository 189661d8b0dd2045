"""Contents of a problem's folder: digests of its tests and assets, and the inputs of a checkpoint's tests."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.errors import ConfigError
from slop_code.evaluation.command import render_ini
from slop_code.evaluation.selection import checkpoint_files, files_in, select
from slop_code.evaluation.test_code.test_inputs import TestInputs, code_digests
from slop_code.execution.assets import regular_files
from slop_code.execution.trees.file_signatures import SignatureCache, signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.evaluation.selection import Selection

MAX_READ_BYTES = 1 << 20

_digests = SignatureCache[str](os.stat)
"""Digests of files by their paths; links are followed."""

_digests_of_sets = SignatureCache[list[str]](os.stat)


@dataclass(frozen=True, slots=True)
class Contents:
    """Digests of the files in a problem's folder, each after a character that says whether it is executable."""

    tests: Mapping[PurePosixPath, str]
    assets: Mapping[str, str]

    @classmethod
    def of(cls, problem: ProblemConfig) -> Contents:
        folder = problem.path / "tests"
        assets = {
            str(PurePosixPath("assets", name, relative)): file_digest(file)
            for name, root in problem.assets.items()
            for relative, file in regular_files(root)
        }
        return cls({path: file_digest(folder / path) for path in files_in(folder)}, assets)

    def digest_of_test_file(self, path: PurePosixPath) -> str | None:
        """SHA-256 of its content alone; None where there is no such file."""
        return self.tests[path][1:] if path in self.tests else None


def checkpoint_inputs(problem: ProblemConfig, checkpoint: CheckpointConfig, contents: Contents) -> TestInputs:
    """The inputs of a checkpoint's tests, without the digests of their code."""
    return selected_inputs(problem, checkpoint, contents, *_selected(problem, checkpoint, contents))


def inputs_of(problem: ProblemConfig, checkpoint: CheckpointConfig) -> TestInputs:
    """The inputs of a checkpoint's tests as they are now."""
    contents = Contents.of(problem)
    selection, ini = _selected(problem, checkpoint, contents)
    code = code_digests(selection.root, selection.files)
    return selected_inputs(problem, checkpoint, contents, selection, ini).model_copy(update={"code": code})


def _selected(problem: ProblemConfig, checkpoint: CheckpointConfig, contents: Contents) -> tuple[Selection, str]:
    tests, ordered = problem.path / "tests", list(problem.checkpoints)
    names = checkpoint_files(tests, ordered, checkpoint.name, checkpoint.include_prior_tests, contents.tests)
    selection = select(tests, ordered, names)
    return selection, render_ini(problem.markers, selection.run)


def selected_inputs(
    problem: ProblemConfig, checkpoint: CheckpointConfig, contents: Contents, selection: Selection, ini: str
) -> TestInputs:
    if missing := [path for path in selection.files if path not in contents.tests]:
        raise ConfigError(
            f"{selection.root}/{missing[0]}: no such file; restore it, or evaluate again if it was just changed"
        )
    files = {f"tests/{path}": contents.tests[path] for path in selection.files}
    config = problem.verdict_settings(checkpoint)
    # Not validated, so that the digests are those of the values themselves.
    return TestInputs.model_construct(
        files={**files, **contents.assets}, ini=ini, visible=list(problem.visible), config=config
    )


def file_digest(path: Path | str) -> str:
    """A file that this process has read before is not read again while its signature is the same."""
    name = str(path)
    if (known := _digests.get(name)) is not None:
        return known
    with open(name, "rb", buffering=0) as stream:
        status = os.fstat(stream.fileno())
        small = status.st_size <= MAX_READ_BYTES  # `file_digest` makes a large buffer each time
        digest = hashlib.sha256(stream.read()) if small else hashlib.file_digest(stream, "sha256")
    value = f"{'x' if status.st_mode & 0o100 else '-'}{digest.hexdigest()}"
    _digests.put(name, {name: signature_of(status)}, value)
    return value


def file_digests(names: Iterable[str]) -> list[str]:
    """As `file_digest` for each of these paths; quicker for a set of files that is asked for again."""
    key = tuple(names)
    if (known := _digests_of_sets.get(key)) is not None:
        return known
    signatures = {name: signature_of(os.stat(name)) for name in key}
    digests = [file_digest(name) for name in key]
    _digests_of_sets.put(key, signatures, digests)
    return digests
