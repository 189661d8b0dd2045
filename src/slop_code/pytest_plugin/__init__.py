"""pytest plugin with the options and fixtures of a problem's tests (`docs/reference/pytest-plugin.md`).

pytest loads it wherever slop-code is installed; outside of a problem's folder it does nothing. The judge loads a copy
of this package under the name `slop_code_fixtures`, which needs only the standard library and pytest. A hostile
submission can write to the judge's working directory, so the plugin reads nothing there.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from . import fixtures, timeout_guard
from .failure_messages import escape_unprintable
from .fixtures import OPTIONS, ProblemFacts

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from slop_code.evaluation import ProblemConfig

MARKERS = ("error: wrong input and edge cases", "functionality: nice to have", "regression: what has to stay as it was")
NAME = "slop_code_problem"
IN_JUDGE = not __name__.startswith("slop_code.")

_options_used = pytest.StashKey[bool]()


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Adds only options that are used and not declared: a conftest that is loaded later may declare its own.

    Before that, the variables of assets are set, since a conftest may read them when it is imported.
    """
    if not IN_JUDGE:
        problem, _ = _problem_of(early_config, early_config.known_args_namespace.file_or_dir)
        if problem:
            set_asset_variables(early_config, problem)
    yield
    groups = [parser._anonymous, *parser._groups]
    missing = OPTIONS.keys() - {name for group in groups for option in group.options for name in option.names()}
    words = {word.partition("=")[0] for word in args}
    early_config.stash[_options_used] = bool(words & missing)
    if words & {*missing, "-h", "--help"}:
        for name in sorted(missing):
            parser.getgroup("slop-code").addoption(name, help=OPTIONS[name])


def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.has_plugin(NAME):
        return
    problem, error = (None, "") if IN_JUDGE else _problem_of(config, config.args)
    if not (IN_JUDGE or problem or error or config.stash.get(_options_used, False)):
        return
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    for name, marker in problem.markers.items() if problem else ():
        config.addinivalue_line("markers", f"{name}: {' '.join(marker.description.split())}")
    config.stash[fixtures.facts] = ProblemFacts(problem.assets if problem else None, error)
    config.pluginmanager.register(fixtures, NAME)
    config.pluginmanager.register(timeout_guard)
    if IN_JUDGE and config.getoption("collectonly"):  # imported here, their bytecode is stored for every evaluation
        from . import servers, submission_calls  # noqa: F401
    if problem:
        config.pluginmanager.register(LocalProblem(config, problem))
    elif error:
        config.pluginmanager.register(ConfigErrorHeader(error))


def _problem_of(config: pytest.Config, words: Sequence[str]) -> tuple[ProblemConfig | None, str]:
    """The problem that the tests belong to, or the error in its configuration; `words` name the tests."""
    paths = [config.invocation_params.dir / word.partition("::")[0] for word in words or [""]]
    folders = (folder for path in paths for folder in (path, *path.parents))
    problem_folder = next((folder for folder in folders if _looks_like_a_problem(folder)), None)
    if problem_folder is None:
        return None, ""
    from slop_code.errors import ConfigError
    from slop_code.evaluation.config import ProblemConfig

    try:
        return ProblemConfig.from_yaml(os.path.normpath(problem_folder)), ""
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


def set_missing(config: pytest.Config, variables: Mapping[str, str]) -> None:
    """Sets variables that have no value yet, until pytest ends."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    for name in variables.keys() - os.environ.keys():
        patch.setenv(name, variables[name])


def set_asset_variables(config: pytest.Config, problem: ProblemConfig) -> None:
    """As in an evaluation, one folder has every asset under its name; here they are links."""
    from slop_code.execution.assets import ASSETS_DIR_VARIABLE, asset_variable

    variables = {asset_variable(name): str(path) for name, path in problem.assets.items()}
    if problem.assets and ASSETS_DIR_VARIABLE not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="slop-code-assets-")
        config.add_cleanup(folder.cleanup)
        variables[ASSETS_DIR_VARIABLE] = folder.name
        for name, path in problem.assets.items():
            os.symlink(path.resolve(), os.path.join(folder.name, name))
    set_missing(config, variables)


class ConfigErrorHeader:
    def __init__(self, error: str) -> None:
        self.error = error

    def pytest_report_header(self) -> str:
        return f"slop-code: {escape_unprintable(self.error)}"


class LocalProblem:
    """Sets the variables and selects the tests as the judge would, for pytest in a problem's own folder."""

    def __init__(self, config: pytest.Config, problem: ProblemConfig) -> None:
        given = config.getoption("checkpoint", None)
        self.problem = problem
        self.checkpoint = problem.checkpoints.get(str(given))
        if given and not self.checkpoint:
            from slop_code._suggestions import near_or_known

            near = near_or_known(str(given), problem.checkpoints)
            raise pytest.UsageError(f"--checkpoint: {problem.name} has no checkpoint {given!r}{near}")
        self.set_variables(config)

    def set_variables(self, config: pytest.Config) -> None:
        """Variables that are set already keep their values."""
        if self.checkpoint:
            set_missing(config, {**self.checkpoint.env, "SCBENCH_CHECKPOINT": self.checkpoint.name})

    def pytest_report_header(self) -> str:
        checkpoint = f", {self.checkpoint.name}" if self.checkpoint else ""
        return f"slop-code: problem {escape_unprintable(self.problem.name)}{checkpoint}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignores the tests that an evaluation of the checkpoint does not run. Files named as arguments always run."""
        if self.checkpoint is None:
            return None
        from slop_code.evaluation.selection import checkpoint_of, checkpoints_to_run

        names = list(self.problem.checkpoints)
        home = checkpoint_of(collection_path.name, names)
        wanted = checkpoints_to_run(names, self.checkpoint.name, include_prior=self.checkpoint.include_prior_tests)
        return True if home and home not in wanted else None
