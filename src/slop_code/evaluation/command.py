"""The pytest command: words in, no quoting until a person wants to read it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.evaluation.evidence import CTRF_REPORT, JSON_REPORT
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR
from slop_code.execution.tool_environment import uvx_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOL = "pytest"
TOOLS = ("pytest", "pytest-json-ctrf", "pytest-json-report", "pytest-timeout", "jsonschema", "deepdiff")
LOCK = Path(__file__).parent / "test-tools.lock"
INI = "pytest.ini"
PLUGIN = "slop_code_judge"
FIXTURES = "slop_code_fixtures"
WATCH = "slop_code_watch"
"""Loaded by `-p` alone: notes what the submission is shown."""


def pytest_command(
    *,
    uvx: str,
    python: str,
    constraints: str,
    test_dependencies: Sequence[str],
    entrypoint: Sequence[str],
    checkpoint: str,
    timeout: float,
    pytest_args: Sequence[str] = (),
    tests: str = TESTS_DIR,
) -> list[str]:
    """Run in the workspace; of what lies there, pytest looks at the tests folder alone."""
    return [
        uvx,
        *uvx_arguments(python, TOOLS, test_dependencies, constraints),
        "--offline",
        "--no-config",
        TOOL,
        "-c",
        f"{tests}/{INI}",
        f"--rootdir={tests}",
        f"--confcutdir={tests}",
        "-p",
        FIXTURES,  # before the other one: that may put the submission on the path
        "-p",
        PLUGIN,
        "-p",
        "no:cacheprovider",
        f"--timeout={timeout:g}",
        "--timeout-method=signal",
        f"--entrypoint={shlex.join(entrypoint)}",
        f"--checkpoint={checkpoint}",
        f"--ctrf={REPORTS_DIR}/{CTRF_REPORT}",
        "--json-report",
        f"--json-report-file={REPORTS_DIR}/{JSON_REPORT}",
        "-vv",
        *pytest_args,
        tests,
    ]
