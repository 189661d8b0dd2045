"""pytest plugin that reports on files of the tests folder; the judge's plugin loads it as `slop_code_handover`.

It writes two kinds of lines to the stream:

- `loaded`, after the collection: `files` of the tests folder that pytest has loaded, and `import_roots`, its folders
  that are in `sys.path`.
- `refused`, after each test in which the launcher did not hand over a path: `nodeid`, and `paths` with the reasons.

All paths are relative to the tests folder.

It also keeps pytest from loading a conftest that is data: one in a folder without test files.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.pathlib import fnmatch_ex

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REFUSED = "/slop/call/refused/log"
"""Launchers append a path and a reason for each refusal, each with a 0 byte after it."""

MAX_REFUSED_SIZE = 64 * 1024
MAX_REFUSED = 20


class Handover:
    def __init__(self, reporter: Any, tests: str, test_files: Sequence[str]) -> None:
        """`test_files`: patterns of the files that pytest collects."""
        self.reporter = reporter
        self.tests = os.path.realpath(tests)
        self.test_files = test_files
        self.position = 0

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Such a conftest belongs to a project that the submission works on, and is not ours to run."""
        if not os.path.exists(collection_path / "conftest.py"):
            return None
        return None if os.path.realpath(collection_path) in self.test_folders else True

    @functools.cached_property
    def test_folders(self) -> frozenset[str]:
        """The folders of the test files, and all folders above them."""
        folders = {self.tests}
        for root, _, names in os.walk(self.tests):
            if any(fnmatch_ex(pattern, Path(root, name)) for pattern in self.test_files for name in names):
                folders |= {root, *map(str, Path(root).parents)}
        return frozenset(folders)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        modules = [*list(sys.modules.values()), *session.config.pluginmanager.get_plugins()]
        files = [getattr(module, "__file__", None) for module in modules]
        self.reporter.write(
            "loaded",
            files=self.relative([*files, *(str(item.path) for item in session.items)]),
            import_roots=self.relative(sys.path),
        )

    def relative(self, paths: Iterable[Any]) -> list[str]:
        known = {os.path.realpath(path) for path in paths if isinstance(path, str) and path}
        inside = [path for path in known if os.path.commonpath([path, self.tests]) == self.tests]
        return sorted(os.path.relpath(path, self.tests) for path in inside)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and (paths := self.take()):
            self.reporter.write("refused", nodeid=self.reporter.nodeid(report.nodeid), paths=paths)

    def take(self) -> list[dict[str, str]]:
        """The first refusals since the last call."""
        try:
            with open(REFUSED, "rb") as file:
                file.seek(self.position)
                text = file.read(MAX_REFUSED_SIZE).decode("utf-8", "replace")
                self.position = file.seek(0, os.SEEK_END)
        except OSError:
            return []
        words = text.split("\0")[:-1]
        pairs = dict(zip(words[::2], words[1::2], strict=False))
        return [{"path": path, "reason": reason} for path, reason in list(pairs.items())[:MAX_REFUSED]]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    judge = sys.modules.get("slop_code_judge")
    reporter = config.pluginmanager.getplugin("slop_code_reporter")
    if judge is None or reporter is None:
        raise pytest.UsageError("there is no judge to report to")
    handover = Handover(reporter, judge._settings["tests"], config.getini("python_files"))
    config.pluginmanager.register(handover, "slop_code_handover_report")
