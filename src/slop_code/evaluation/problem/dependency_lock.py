"""Lock of a problem's test_dependencies: versions and hashes in `tests/requirements.lock`."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from slop_code._io import TooLargeError, read_bounded
from slop_code.errors import ConfigError, ConfigMistake
from slop_code.evaluation.command import LOCK
from slop_code.evaluation.problem.problem_lookup import CONFIG
from slop_code.execution.installation.tool_environment import UNIVERSAL, UnresolvablePackagesError, lock_packages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.sandbox import Sandbox

NAME = "requirements.lock"
SIZE_LIMIT = 4 << 20
COMMAND = "slop-code problems check --lock"
_FOR = "# for: "
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+]+(?:\s*;[^#\\]*?)?(?:\s+--hash=sha256:[0-9a-f]{64})+", re.ASCII
)


def lock_path(problem: ProblemConfig) -> Path:
    return problem.path / "tests" / NAME


def read_test_lock(problem: ProblemConfig) -> str | None:
    """The lock, or None if there is none. Raises ConfigError if it is damaged, or of other test_dependencies."""
    path = lock_path(problem)
    if not problem.test_dependencies or not path.exists():
        return None
    try:
        text = read_bounded(path, SIZE_LIMIT).decode()
    except (OSError, UnicodeDecodeError, TooLargeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}; write it anew with `{COMMAND}`") from error
    if not text.startswith(_header(problem)):
        fact = "was not written for the test_dependencies of config.yaml"
        raise ConfigError(f"{path}: {fact}; write it anew with `{COMMAND}`")
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#") and not _REQUIREMENT.fullmatch(line.strip()):
            fact = f"{line.strip()[:100]!r} is not a version with hashes"
            raise ConfigError(f"{path}: {fact}; write it anew with `{COMMAND}`")
    return text


def make_test_lock(sandbox: Sandbox, problem: ProblemConfig) -> str:
    """A new lock. It holds on other platforms and versions of Python too, and names no index."""
    with dependency_mistakes(problem), sandbox.cache.session_folder() as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        with sandbox.tool_builder(scratch) as builder:
            python, wanted = builder.python()[0], problem.test_dependencies
            locked = lock_packages(builder, python, wanted, LOCK.read_text(), UNIVERSAL)
    return _header(problem) + locked


@contextlib.contextmanager
def dependency_mistakes(problem: ProblemConfig) -> Iterator[None]:
    """Packages that do not exist, and versions that do not fit, are a mistake in config.yaml."""
    try:
        yield
    except UnresolvablePackagesError as error:
        key, value = "test_dependencies", ", ".join(problem.test_dependencies)
        mistake = ConfigMistake(problem.path / CONFIG, f"{key}: {error}", key=key, found=value)
        raise ConfigError(mistakes=[mistake]) from error


def _header(problem: ProblemConfig) -> str:
    wanted = ", ".join(" ".join(requirement.split()) for requirement in problem.test_dependencies)
    return f"# Locked test_dependencies of this problem, written by `{COMMAND}`\n{_FOR}{wanted}\n"
