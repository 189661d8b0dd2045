"""The fixtures of a problem's tests; a conftest may define its own under the same names.

What only some of them need is imported there: each evaluation pays for what is loaded.
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

    from .calls import Finished
    from .servers import Server

OPTIONS = {
    "--entrypoint": "the command that starts the submission, as one string",
    "--checkpoint": "the name of the checkpoint that the submission belongs to",
}


@dataclass(frozen=True)
class Known:
    """Of the problem, where it is tested in its own folder; the judge's variables say it all."""

    assets: Mapping[str, Path] | None
    mistake: str


known = pytest.StashKey[Known]()


@pytest.fixture(scope="session")
def entrypoint_argv(pytestconfig: pytest.Config) -> list[str]:
    """The words of `--entrypoint`. The last one, if it is a file, is absolute: it works in any folder."""
    *words, last = shlex.split(_option(pytestconfig, "--entrypoint")) or [""]
    file = pytestconfig.invocation_params.dir / last
    return [*words, os.path.normpath(file) if file.is_file() else last]


@pytest.fixture(scope="session")
def checkpoint_name(pytestconfig: pytest.Config) -> str:
    """The value of `--checkpoint`."""
    return _option(pytestconfig, "--checkpoint")


@pytest.fixture(scope="session")
def assets(pytestconfig: pytest.Config) -> Mapping[str, Path]:
    """Where the problem's static assets are, by their names."""
    at_home = pytestconfig.stash[known]
    if at_home.assets is not None:
        return at_home.assets
    if "SCBENCH_ASSETS_DIR" not in os.environ:
        reason = at_home.mistake or "no config.yaml of a problem was found above the tests"
        pytest.fail(f"the assets are not known: {reason}", pytrace=False)
    values = [value for name, value in os.environ.items() if name.startswith("SCBENCH_ASSET_")]
    return {path.name: path for path in map(Path, values)}


@pytest.fixture(scope="session")
def run(entrypoint_argv: list[str]) -> Callable[..., Finished]:
    """`run(*args, stdin="", timeout=10, cwd=None, env=None)`: the submission, called and waited for."""
    from .calls import run_command

    def call(*args: object, **options: Any) -> Finished:
        __tracebackhide__ = True
        return run_command([*entrypoint_argv, *map(str, args)], **options)

    return call


@pytest.fixture(scope="session")
def server_factory(entrypoint_argv: list[str]) -> Iterator[Callable[..., Server]]:
    """As `server`, for a fixture of a wider scope: what it starts runs until the end of all tests."""
    from .servers import servers

    with servers(entrypoint_argv) as start:
        yield start


@pytest.fixture
def server(entrypoint_argv: list[str]) -> Iterator[Callable[..., Server]]:
    """`server(*args, port=None, ready=None, timeout=10, cwd=None, env=None)`: the submission, as a server."""
    from .servers import servers

    with servers(entrypoint_argv) as start:
        yield start


def _option(config: pytest.Config, name: str) -> str:
    """Whoever declared it."""
    value = config.getoption(name, None) or config.getoption(name.removeprefix("--"), None)
    if not value:
        pytest.fail(f"{name} is missing: call pytest with {name}, {OPTIONS[name]}", pytrace=False)
    return str(value)
