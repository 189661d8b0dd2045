"""Bare pytest, the baseline of every comparison: in a prepared environment, beside the submission, without boxes."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.measuring import clean_environment, run
from slop_code.evaluation.command import LOCK, render_ini
from slop_code.evaluation.selection import checkpoint_files, select
from slop_code.evaluation.staging import copy_tests, variables_for
from slop_code.execution.cache import Cache
from slop_code.execution.sandbox import TESTS_DIR
from slop_code.execution.uv import base_python, uv_paths

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.setting import Bench
    from slop_code.evaluation import CheckpointConfig, ProblemConfig


def prepared_venv(bench: Bench) -> Path:
    """Shared by all parts of a session."""
    folder = bench.work / "venv"
    return folder if folder.exists() else bare_venv(folder, Cache.default().uv)


def bare_venv(folder: Path, uv_cache: Path) -> Path:
    """The same locked test tools for the same interpreter; packages that are not in uv's cache are downloaded."""
    uv, environment = str(uv_paths()[0]), clean_environment(UV_CACHE_DIR=str(uv_cache))
    run([uv, "venv", "--quiet", "--python", base_python(), str(folder)], env=environment)
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--require-hashes", "-r", str(LOCK)]
    run([*install, "--python", str(folder / "bin/python")], env=environment)
    return folder


@dataclass(frozen=True, slots=True)
class Bare:
    folder: Path
    temporary: Path
    """A folder for pytest's temporary files, so that it removes only those of its own earlier runs."""

    checkpoint: CheckpointConfig
    variables: dict[str, str]

    @classmethod
    def of(cls, folder: Path, problem: ProblemConfig, checkpoint: CheckpointConfig, submission: Path) -> Bare:
        """The tests are in the submission's folder, as their author would run them."""
        shutil.copytree(submission, folder, dirs_exist_ok=True)
        tests, ordered = problem.path / "tests", list(problem.checkpoints)
        names = checkpoint_files(tests, ordered, checkpoint.name, checkpoint.include_prior_tests)
        selection = select(tests, ordered, names)
        copy_tests(problem, selection, render_ini(problem.markers, selection.run), folder / TESTS_DIR)
        temporary = folder.with_name(f"{folder.name}-tmp")
        temporary.mkdir()
        return cls(folder, temporary, checkpoint, variables_for(problem, checkpoint, str(folder / TESTS_DIR)))

    def run(self, venv: Path, *options: str) -> str:
        argv = [
            str(venv / "bin/python"), "-m", "pytest", TESTS_DIR, "-q", "-p", "no:cacheprovider",
            "--entrypoint=python main.py", f"--checkpoint={self.checkpoint.name}", *options,
        ]  # fmt: skip
        path = f"{venv / 'bin'}:{os.environ.get('PATH', os.defpath)}"
        return run(
            argv, cwd=self.folder, env=clean_environment(**self.variables, PATH=path, TMPDIR=str(self.temporary))
        )
