"""The options and fixtures of a problem's tests: `docs/reference/pytest-plugin.md` describes them.

Loads by itself where slop-code is installed, and does nothing outside of a problem. The judge loads a copy of this
package under the name `slop_code_fixtures`, with the standard library and pytest alone; there it runs beside a
hostile submission, and looks at nothing in the working directory.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from . import fixtures, interrupted
from .fixtures import OPTIONS, Known
from .wording import visible

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from slop_code.evaluation import ProblemConfig

MARKERS = ("error: wrong input and edge cases", "functionality: nice to have", "regression: what has to stay as it was")
NAME = "slop_code_problem"
IN_JUDGE = not __name__.startswith("slop_code.")

_asked = pytest.StashKey[bool]()


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Only what was asked for and nobody declared: a conftest that is loaded later may still declare its own."""
    yield
    groups = [parser._anonymous, *parser._groups]
    missing = OPTIONS.keys() - {name for group in groups for option in group.options for name in option.names()}
    words = {word.partition("=")[0] for word in args}
    early_config.stash[_asked] = bool(words & missing)
    if words & {*missing, "-h", "--help"}:
        for name in sorted(missing):
            parser.getgroup("slop-code").addoption(name, help=OPTIONS[name])


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.has_plugin(NAME):
        return
    problem, mistake = (None, "") if IN_JUDGE else _problem_of(config)
    if not (IN_JUDGE or problem or mistake or config.stash.get(_asked, False)):
        return
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    for name, marker in problem.markers.items() if problem else ():
        config.addinivalue_line("markers", f"{name}: {' '.join(marker.description.split())}")
    config.stash[fixtures.known] = Known(problem.assets if problem else None, mistake)
    config.pluginmanager.register(fixtures, NAME)
    config.pluginmanager.register(interrupted)
    if IN_JUDGE and config.getoption("collectonly"):  # what is compiled now, every evaluation finds compiled
        from . import calls, servers  # noqa: F401
    if problem:
        config.pluginmanager.register(AtHome(config, problem))
    elif mistake:
        config.pluginmanager.register(Mistaken(mistake))


def _problem_of(config: pytest.Config) -> tuple[ProblemConfig | None, str]:
    """The problem that the tests belong to, or what is wrong with it."""
    paths = [config.invocation_params.dir / word.partition("::")[0] for word in config.args]
    folders = (folder for path in paths for folder in (path, *path.parents))
    found = next((folder for folder in folders if _looks_like_a_problem(folder)), None)
    if found is None:
        return None, ""
    from slop_code.errors import ConfigError
    from slop_code.evaluation.config import ProblemConfig

    try:
        return ProblemConfig.from_yaml(os.path.normpath(found)), ""
    except ConfigError as error:
        return None, str(error)


def _looks_like_a_problem(folder: Path) -> bool:
    if not (folder / "tests").is_dir():
        return False
    try:
        lines = (folder / "config.yaml").read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return all(any(line.startswith(key) for line in lines) for key in ("entry_file:", "checkpoints:"))


class Mistaken:
    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def pytest_report_header(self) -> str:
        return f"slop-code: {visible(self.mistake)}"


class AtHome:
    """What the judge would do, where a problem is tested in its own folder."""

    def __init__(self, config: pytest.Config, problem: ProblemConfig) -> None:
        given = config.getoption("checkpoint", None)
        self.problem = problem
        self.checkpoint = problem.checkpoints.get(str(given))
        if given and not self.checkpoint:
            names = ", ".join(problem.checkpoints)
            raise pytest.UsageError(f"--checkpoint: {problem.name} has no checkpoint {given!r}; there are {names}")
        self.set_variables(config)

    def set_variables(self, config: pytest.Config) -> None:
        """For tests and submission, as far as they are not set already."""
        from slop_code.execution.assets import asset_variable

        found = {asset_variable(name): str(path) for name, path in self.problem.assets.items()}
        if self.checkpoint:
            found |= {**self.checkpoint.env, "SCBENCH_CHECKPOINT": self.checkpoint.name}
        patch = pytest.MonkeyPatch()
        config.add_cleanup(patch.undo)
        for name in found.keys() - os.environ.keys():
            patch.setenv(name, found[name])

    def pytest_report_header(self) -> str:
        checkpoint = f", {self.checkpoint.name}" if self.checkpoint else ""
        return f"slop-code: problem {visible(self.problem.name)}{checkpoint}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """The tests of checkpoints that an evaluation of this one leaves out, unless they are asked for by name."""
        if self.checkpoint is None:
            return None
        from slop_code.evaluation.selection import checkpoint_of, files_to_run

        names = list(self.problem.checkpoints)
        home = checkpoint_of(collection_path.name, names)
        wanted = files_to_run(names, self.checkpoint.name, include_prior=self.checkpoint.include_prior_tests)
        return True if home and home not in wanted else None
