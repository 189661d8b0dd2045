"""Loaded into the judge's pytest as `slop_code_watch` when an author asks what a submission is shown of the tests.

Beside the other reports it leaves a JSON file: `shown`, the files that the submission could read in the end; `handed`,
what was put there as a whole, with the test that did it; `read`, what the tests themselves opened; `copied`, what
they copied to another place, with the test; `told`, texts of what they read that they gave to a program which they
started, with all files that have this text, the way it took (`argument`, `environment` or `file`) and the first test.
All paths are relative to the tests folder.
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
COPIES = ("shutil.copyfile", "os.link")
MAX_FILES = 10_000
"""Of each kind; a problem with more is told of the first ones."""
MIN_TEXT, MAX_TEXT = 8, 1 << 16
"""Bytes of a text that is looked for: a shorter one is met by chance."""

MAX_FILE = 1 << 20
"""Bytes of a file that texts are looked for in."""

ALL = 16 << 20
"""Bytes of all texts together."""


class Watch:
    def __init__(self, tests: str, reports: str) -> None:
        self.tests = os.path.abspath(tests)
        self.target = os.path.join(reports, FILE)
        self.reporter: Any = None
        self.running = ""
        self.read: dict[str, str] = {}
        self.copied: dict[str, str] = {}
        self.handed: dict[str, str] = {}
        self.told = Told(self.tests)
        self.copying: str | None = None
        self.looking = False

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.looking:
            return
        self.looking = True
        try:
            if event == "open":
                self.opened(args[0], writes=bool((args[2] or 0) & WRITING))
            elif event in COPIES and not self.inside(args[1]):
                self.note(self.copied, args[0])
                self.copying = self.inside(args[0]) if event == "shutil.copyfile" else None
            elif event == "subprocess.Popen":
                self.told.start(args[1], args[3], self.running)
        except (TypeError, ValueError, LookupError, OSError):  # odd arguments are for others to refuse
            return
        finally:
            self.looking = False

    def opened(self, path: Any, *, writes: bool) -> None:
        name = self.inside(path)
        if writes:
            self.told.wrote(path)
        elif name is not None and name == self.copying:
            self.copying = None
        elif name is not None:
            self.note(self.read, path)
            self.told.read(name)

    def note(self, kind: dict[str, str], path: Any) -> None:
        name = self.inside(path)
        if name is not None and len(kind) < MAX_FILES:
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
            if len(self.handed) < MAX_FILES:
                self.handed.setdefault(name.replace("\\", "/"), self.running)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        notes = {
            "shown": sorted(files_below(SHOWN)),
            "handed": self.handed,
            "read": sorted(self.read),
            "copied": self.copied,
            "told": self.told.found,
        }
        with open(self.target, "w", encoding="ascii") as file:
            json.dump(notes, file)


class Told:
    """Texts of the tests folder that go to a program as it starts: by its arguments, environment, or new files."""

    def __init__(self, tests: str) -> None:
        self.tests = tests
        self.texts: dict[bytes, list[str]] = {}
        self.room = ALL
        self.known: set[str] = set()
        self.written: dict[str, None] = {}
        self.ways: set[tuple[bytes, str]] = set()
        self.found: list[dict[str, Any]] = []

    def read(self, name: str) -> None:
        """A text is what a file holds, without white space around it."""
        if name in self.known or len(self.known) >= MAX_FILES:
            return
        self.known.add(name)
        text = _content(os.path.join(self.tests, name), MAX_TEXT).strip()
        if MIN_TEXT <= len(text) <= self.room:
            self.room -= len(text)
            self.texts.setdefault(text, []).append(name)

    def wrote(self, path: Any) -> None:
        if isinstance(path, str | bytes | os.PathLike) and len(self.written) < MAX_FILES:
            self.written[os.path.abspath(os.fsdecode(path))] = None

    def start(self, argv: Any, environment: Any, test: str) -> None:
        """Files are looked at once, before the program can have written to them."""
        words = [argv] if isinstance(argv, str | bytes | os.PathLike) else list(argv)
        self.look("argument", [os.fsencode(word) for word in words], test)
        values = (os.environ if environment is None else environment).values()
        self.look("environment", [os.fsencode(value) for value in values], test)
        written, self.written = self.written, {}
        for path in written:
            self.look("file", [_content(path, MAX_FILE)], test)

    def look(self, way: str, places: list[bytes], test: str) -> None:
        for text, names in self.texts.items():
            if (text, way) not in self.ways and any(text in target for target in places):
                self.ways.add((text, way))
                self.found.append({"files": names, "way": way, "test": test})


def _content(path: str, most: int) -> bytes:
    """Nothing of what is larger, or no plain file."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > most:
            return b""
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""


def files_below(folder: str) -> Iterable[str]:
    paths: list[str] = []
    for root, _, names in os.walk(folder):
        paths += [os.path.relpath(os.path.join(root, name), folder) for name in names]
        if len(paths) > MAX_FILES:
            break
    return paths[:MAX_FILES]


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
