"""The pytest command as a list of words, and the `pytest.ini` that it reads."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._arguments import check_command_words
from slop_code.evaluation import judge
from slop_code.evaluation.groups import BUILTIN_MARKERS
from slop_code.evaluation.pytest_arguments import SHOWN_FILES_PLUGIN, parse_pytest_args
from slop_code.evaluation.result_files.evidence_files import CTRF_REPORT, JSON_REPORT
from slop_code.execution.installation.tool_environment import uvx_arguments
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slop_code.evaluation.config import MarkerConfig
    from slop_code.evaluation.context import EvaluationContext

TOOL = "pytest"
TOOLS = ("pytest", "pytest-json-ctrf", "pytest-json-report", "pytest-timeout", "jsonschema", "deepdiff")
LOCK = Path(__file__).parent / "test-tools.lock"
INI = "pytest.ini"
ENTRYPOINT_OPTION = "--entrypoint="
PLUGIN = "slop_code_judge"
OWN_PACKAGES = "slop_code_own_packages"
FIXTURES = "slop_code_fixtures"
PLUGIN_MODULES = ("tests_folder_report", "usage", "folder_access", "data_folders", "process_exit")
"""Modules that the judge's plugin imports."""

IMPORTED_TEMPLATE = "slop_code_imported_template"
TEMPLATE_MODULES = ("fork_server", "supervisor", "judge_privileges", "collected_template", "import_probes",
                    "template_state")  # fmt: skip
"""Modules of templates, from which judges are forked."""


@functools.cache
def judge_sources() -> Mapping[str, Path]:
    """The files that are loaded into the judge's pytest, by their names there."""
    own, fixtures = Path(judge.__file__).parent, Path(__file__).parents[1] / "pytest_plugin"
    modules = {PLUGIN: "plugin.py", SHOWN_FILES_PLUGIN: "shown_files.py", OWN_PACKAGES: "own_packages.py"}
    modules[IMPORTED_TEMPLATE] = "imported_template.py"
    modules |= {f"slop_code_{name}": f"{name}.py" for name in (*PLUGIN_MODULES, *TEMPLATE_MODULES)}
    plugins = {f"{name}.py": own / file for name, file in modules.items()}
    return plugins | {f"{FIXTURES}/{file.name}": file for file in sorted(fixtures.glob("*.py"))}


def check_pytest_args(arguments: object) -> list[str]:
    words = check_command_words("pytest_args", arguments, "a list of arguments for pytest")
    parse_pytest_args(words)
    return words


def pytest_command(context: EvaluationContext, pytest_args: Sequence[str] = (), tests: str = TESTS_DIR) -> list[str]:
    """The command to run in the workspace; pytest reads nothing there except the tests folder."""
    problem, checkpoint, tools = context.problem, context.checkpoint, context.tools
    layout = context.sandbox.layout(Path())
    constraints = layout.judge_path("requirements.txt", tools.constraints)
    entrypoint = layout.entrypoint(context.environment.entry(problem.entry_file))
    return [
        f"{layout.tools}/uvx",
        *uvx_arguments(tools.python, TOOLS, problem.test_dependencies, constraints),
        "--offline",
        "--no-config",
        TOOL,
        "-c",
        f"{tests}/{INI}",
        f"--rootdir={tests}",
        f"--confcutdir={tests}",
        "-p",
        OWN_PACKAGES,
        "-p",
        FIXTURES,  # before the other plugin, which may add the submission to sys.path
        "-p",
        PLUGIN,
        "-p",
        "no:cacheprovider",
        f"--timeout={context.test_timeout:g}",
        "--timeout-method=signal",
        f"{ENTRYPOINT_OPTION}{shlex.join(entrypoint)}",
        f"--checkpoint={checkpoint.name}",
        f"--ctrf={REPORTS_DIR}/{CTRF_REPORT}",
        "--json-report",
        f"--json-report-file={REPORTS_DIR}/{JSON_REPORT}",
        "-vv",
        *pytest_args,
        tests,
    ]


def entrypoint_text(command: Sequence[str]) -> str:
    """The entrypoint in a command of `pytest_command`, as text for a shell; empty where there is none."""
    return next((word for word in command if word.startswith(ENTRYPOINT_OPTION)), "").removeprefix(ENTRYPOINT_OPTION)


def imported_template_command(command: Sequence[str], plugin: str) -> list[str]:
    """The command of an imported template whose judges run `command`, one of `pytest_command`.

    `plugin`: the folder with the judge's modules, as its box sees it.
    """
    return [*command[: command.index(TOOL)], "--from", TOOL, "python", f"{plugin}/{IMPORTED_TEMPLATE}.py"]


def render_ini(custom: Mapping[str, MarkerConfig], run: Sequence[str]) -> str:
    """Registers the markers, and makes pytest collect only the files `run`."""
    texts = {name: text for name, (text, _) in BUILTIN_MARKERS.items()}
    texts |= {name: marker.description for name, marker in custom.items()}
    markers = [f"{name}: {_one_line(text)}".rstrip() for name, text in texts.items()]
    return "\n".join(["[pytest]", *_listed("markers", markers), *_listed("python_files", map(_pattern, run)), ""])


def _listed(key: str, values: Iterable[str]) -> list[str]:
    return [f"{key} =", *(f"    {value}" for value in values)]


@functools.lru_cache(maxsize=1024)
def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _pattern(file: str) -> str:
    """pytest splits and matches the value like a shell, so every special character becomes `?`."""
    return re.sub(r"[^\w./-]", "?", file)
