"""Rules about unknown, misspelt and unused markers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from slop_code._suggestions import nearest
from slop_code.authoring.check.failure_text import single_line
from slop_code.authoring.check.findings import Finding, Location, Rule
from slop_code.authoring.check.layout.problem_files import aliases, called, full_name, nodes, strings
from slop_code.authoring.check.layout.python_packages import distribution
from slop_code.authoring.check.yaml_keys import line_of_key
from slop_code.evaluation.groups import BUILTIN_MARKERS, PYTEST_MARKERS
from slop_code.evaluation.problem.problem_lookup import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slop_code.authoring.check.layout.problem_files import ProblemFiles
    from slop_code.authoring.check.python_sources import PythonSource

UNKNOWN = Rule.warning(
    "marker-unknown",
    "A marker is registered nowhere",
    "Declare it in config.yaml under markers, with its group, or remove it.",
)
MISSPELT = Rule.error(
    "marker-misspelt",
    "A marker is probably a misspelling",
    "Write the intended marker: with the misspelling, the test counts in another group.",
)
UNUSED = Rule.warning(
    "marker-unused",
    "No test has a marker of config.yaml",
    "Mark the intended tests, or remove the marker from config.yaml.",
    in_code=False,
)
OF_PLUGINS = {
    "anyio": ("anyio",),
    "flaky": ("flaky",),
    "pytest-asyncio": ("asyncio",),
    "pytest-benchmark": ("benchmark",),
    "pytest-dependency": ("dependency",),
    "pytest-order": ("order",),
    "pytest-repeat": ("repeat",),
    "pytest-rerunfailures": ("flaky",),
    "pytest-subtests": (),
    "pytest-trio": ("trio",),
    "pytest-xdist": ("xdist_group",),
}


def markers(files: ProblemFiles) -> Iterator[Finding]:
    plugins = [distribution(item) or item for item in files.problem.test_dependencies]
    known = {*BUILTIN_MARKERS, *PYTEST_MARKERS, *files.problem.markers, *_registered(files)}
    known |= {marker for plugin in plugins for marker in OF_PLUGINS.get(plugin, ())}
    foreign = any(plugin.startswith("pytest-") and plugin not in OF_PLUGINS for plugin in plugins)
    used: set[str] = set()
    for source in files.sources:
        for node in marks(source.tree):
            used.add(node.attr)
            if node.attr not in known:
                yield from _unknown(source, node, sorted(known), foreign)
    if files.complete:
        yield from _unused(files, used)


def _unknown(source: PythonSource, node: ast.Attribute, known: list[str], foreign: bool) -> Iterator[Finding]:
    """`foreign` says that an unknown plugin may have its own markers."""
    location = Location(source.file, node.end_lineno or node.lineno)
    if (near := nearest(node.attr, known)) is not None:
        message = f"marker {single_line(node.attr)} is unknown; did you mean {near}?"
        yield Finding(MISSPELT, location, message, f"Write {near}.")
    elif not foreign:
        yield Finding(UNKNOWN, location, f"marker {single_line(node.attr)} is registered nowhere")


def _unused(files: ProblemFiles, used: set[str]) -> Iterator[Finding]:
    named = set(files.strings())
    for name in files.problem.markers:
        if name not in used and name not in named:
            line = line_of_key(files.config, "markers", name)
            yield Finding(UNUSED, Location(CONFIG, line), f"no test has the marker {single_line(name)}")


def marks(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Every `pytest.mark.NAME`, under any alias."""
    known = dict(aliases(tree))
    for node in nodes(tree):
        if isinstance(node, ast.Assign) and full_name(node.value, known) == "pytest.mark":
            known |= {target.id: "pytest.mark" for target in node.targets if isinstance(target, ast.Name)}
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and full_name(node.value, known) == "pytest.mark":
            yield node


def _registered(files: ProblemFiles) -> Iterator[str]:
    """Markers that a conftest registers: `config.addinivalue_line("markers", "slow: takes long")`."""
    for node in files.nodes():
        if isinstance(node, ast.Call) and called(node) == "addinivalue_line" and len(node.args) == 2:
            for text in strings(node.args[1]):
                yield text.partition(":")[0].partition("(")[0].strip()
