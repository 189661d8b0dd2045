"""Loaded into the judge's pytest as `slop_code_watch` when an author asks what a submission is shown of the tests.

Beside the other reports it leaves a JSON file: `shown`, the files that the submission could read in the end; `handed`,
what was put there as a whole, with the test that did it; `read`, what the tests themselves opened; `copied`, what
they copied to another place, with the test. All paths are relative to the tests folder.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN = "/slop/shown"
HANDED = "/slop/call/done"
FILE = "shown.json"
WRITING = os.O_WRONLY | os.O_RDWR
MOST = 10_000
"""Of each kind; a problem with more is told of the first ones."""


class Watch:
    def __init__(self, tests: str, reports: str) -> None:
        self.tests = os.path.abspath(tests)
        self.target = os.path.join(reports, FILE)
        self.reporter: Any = None
        self.running = ""
        self.read: dict[str, str] = {}
        self.copied: dict[str, str] = {}
        self.handed: dict[str, str] = {}

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        try:
            if event == "open" and not (args[2] or 0) & WRITING:
                self.note(self.read, args[0])
            elif event == "shutil.copyfile" and not self.inside(args[1]):
                self.note(self.copied, args[0])
        except (TypeError, ValueError, LookupError, OSError):  # odd arguments are for others to refuse
            return

    def note(self, kind: dict[str, str], path: Any) -> None:
        name = self.inside(path)
        if name is not None and len(kind) < MOST:
            kind.setdefault(name, self.running)

    def inside(self, path: Any) -> str | None:
        """Of a file that may be data; the tests' own code is never shown."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        name = os.path.abspath(os.fsdecode(path))
        code = name.endswith((".py", ".pyc", ".ini"))
        return None if code or not name.startswith(self.tests + "/") else name[len(self.tests) + 1 :]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running = self.reporter.nodeid(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        for name in _names(HANDED):
            if len(self.handed) < MOST:
                self.handed.setdefault(name.replace("\\", "/"), self.running)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        found = {
            "shown": sorted(files_below(SHOWN)),
            "handed": self.handed,
            "read": sorted(self.read),
            "copied": self.copied,
        }
        with open(self.target, "w", encoding="ascii") as file:
            json.dump(found, file)


def files_below(folder: str) -> Iterable[str]:
    found: list[str] = []
    for root, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(root, name), folder) for name in names]
        if len(found) > MOST:
            break
    return found[:MOST]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if _watch is None:
        raise pytest.UsageError("there is no judge to watch")
    _watch.reporter = config.pluginmanager.getplugin("slop_code_reporter")
    config.pluginmanager.register(_watch, "slop_code_watch_report")


def _begin(judge: Any) -> Watch:
    """At once: a conftest may read files while it is loaded."""
    settings = judge._settings
    watch = Watch(settings["tests"], os.path.dirname(settings["stream"]))
    sys.addaudithook(watch.hook)
    return watch


_watch = _begin(sys.modules["slop_code_judge"]) if "slop_code_judge" in sys.modules else None
