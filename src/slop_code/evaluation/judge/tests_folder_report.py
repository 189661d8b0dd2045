"""pytest plugin `slop_code_tests_folder_report` of the judge: it reports on files of the tests folder.

It writes two kinds of lines to the stream:

- `loaded`, where tests are only collected: `files` of the tests folder that pytest has loaded, and `import_roots`, its
  folders that are in `sys.path`.
- `refused`, after each test in which the launcher did not hand over a path: `nodeid`, and `paths` with the reasons.

All paths are relative to the tests folder.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

REFUSED = "/slop/call/refused/log"
"""Launchers append a path and a reason for each refusal, each with a 0 byte after it."""

MAX_REFUSED_SIZE = 64 * 1024
MAX_REFUSED = 20


class TestsFolderReport:
    def __init__(self, reporter: Any, tests: str) -> None:
        self.reporter = reporter
        self.tests = os.path.realpath(tests)
        self.log_offset = 0
        folders = {sys.prefix, sys.base_prefix}
        self.python_folders = tuple(f"{folder}/" for folder in folders if not self.tests.startswith(f"{folder}/"))
        """Folders of Python and its packages, without any file of the tests; resolving hundreds of paths takes long."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not session.config.option.collectonly:  # it takes as long as several tests, and nothing would read it
            return
        modules = [*list(sys.modules.values()), *session.config.pluginmanager.get_plugins()]
        files = [getattr(module, "__file__", None) for module in modules]
        self.reporter.write(
            "loaded",
            files=self.paths_in_tests([*files, *(str(item.path) for item in session.items)]),
            import_roots=self.paths_in_tests(sys.path),
        )

    def paths_in_tests(self, paths: Iterable[Any]) -> list[str]:
        given = {path for path in paths if isinstance(path, str) and path and not path.startswith(self.python_folders)}
        known = {os.path.realpath(path) for path in given}
        inside = [path for path in known if os.path.commonpath([path, self.tests]) == self.tests]
        return sorted(os.path.relpath(path, self.tests) for path in inside)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and (paths := self.new_refusals()):
            self.reporter.write("refused", nodeid=self.reporter.nodeid(report.nodeid), paths=paths)

    def new_refusals(self) -> list[dict[str, str]]:
        """The first refusals since the last call."""
        try:
            with open(REFUSED, "rb") as file:
                file.seek(self.log_offset)
                text = file.read(MAX_REFUSED_SIZE).decode("utf-8", "replace")
                self.log_offset = file.seek(0, os.SEEK_END)
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
    report = TestsFolderReport(reporter, judge._settings["tests"])
    config.pluginmanager.register(report, "slop_code_tests_folder_reporter")
