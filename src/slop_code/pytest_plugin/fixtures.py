"""Fixtures of a problem's tests; a conftest may define its own under the same names.

Imports that only some fixtures need are inside them, because every import makes each evaluation slower.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .servers import Server
    from .submission_calls import CompletedCall

OPTIONS = {
    "--entrypoint": "the command that starts the submission, as one string",
    "--checkpoint": "the name of the checkpoint that the submission belongs to",
}


@dataclass(frozen=True)
class ProblemFacts:
    assets: Mapping[str, Path] | None
    """None in the judge, where environment variables name the assets."""

    error: str
    """Error in the problem's configuration, or empty."""


facts = pytest.StashKey[ProblemFacts]()


@pytest.fixture(scope="session")
def entrypoint_argv(pytestconfig: pytest.Config) -> list[str]:
    """The words of `--entrypoint`. If the last word is a file, it is absolute, so that it works in any folder."""
    *words, last = shlex.split(_option(pytestconfig, "--entrypoint")) or [""]
    file = pytestconfig.invocation_params.dir / last
    return [*words, os.path.normpath(file) if file.is_file() else last]


@pytest.fixture(scope="session")
def checkpoint_name(pytestconfig: pytest.Config) -> str:
    """The value of `--checkpoint`."""
    return _option(pytestconfig, "--checkpoint")


@pytest.fixture(scope="session")
def assets(pytestconfig: pytest.Config) -> Mapping[str, Path]:
    """The paths of the problem's static assets by their names."""
    known = pytestconfig.stash[facts]
    if known.assets is not None:
        return known.assets
    if "SCBENCH_ASSETS_DIR" not in os.environ:
        reason = known.error or "no folder above the tests has the config.yaml of a problem"
        pytest.fail(f"the assets are not known: {reason}", pytrace=False)
    values = [value for name, value in os.environ.items() if name.startswith("SCBENCH_ASSET_")]
    return {path.name: path for path in map(Path, values)}


@pytest.fixture(scope="session")
def run(entrypoint_argv: list[str]) -> Callable[..., CompletedCall]:
    """`run(*args, stdin="", timeout=10, cwd=None, env=None)` starts the submission and waits until it ends."""
    from .submission_calls import run_command

    def call(*args: object, **options: Any) -> CompletedCall:
        __tracebackhide__ = True
        return run_command([*entrypoint_argv, *map(str, args)], **options)

    return call


@pytest.fixture(scope="session")
def server_factory(entrypoint_argv: list[str]) -> Iterator[Callable[..., Server]]:
    """Like `server`, for fixtures of a wider scope: its servers run until the end of all tests."""
    from .servers import servers

    with servers(entrypoint_argv) as start:
        yield start


@pytest.fixture
def server(entrypoint_argv: list[str]) -> Iterator[Callable[..., Server]]:
    """`server(*args, port=None, ready=None, timeout=10, cwd=None, env=None)` starts the submission as a server."""
    from .servers import servers

    with servers(entrypoint_argv) as start:
        yield start


def _option(config: pytest.Config, name: str) -> str:
    """The value of an option, whether this plugin or a conftest declared it."""
    value = config.getoption(name, None) or config.getoption(name.removeprefix("--"), None)
    if not value:
        pytest.fail(f"{name} is missing: call pytest with {name}, {OPTIONS[name]}", pytrace=False)
    return str(value)
