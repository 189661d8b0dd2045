"""pytest plugin `slop_code_shown_files` of the judge: it records which files of the tests a submission is shown.

It is loaded only for `problems check`. It writes a JSON file next to the other reports, with these keys:

- `shown`: files of the tests that the submission could read at the end.
- `handed`: files and folders that a call handed over, with the test that did so.
- `read`: files that the tests themselves opened.
- `copied`: files that the tests copied to a path outside the tests folder, with the test.
- `passed_texts`: texts of files that the tests read and then passed to a program they started. Each entry has `files`
  (all files with this text), `way` (`argument`, `environment` or `file`) and `test` (the first that passed it so).

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
"""Maximum number of files under each key; further files are left out."""

MIN_TEXT, MAX_TEXT = 8, 1 << 16
"""Sizes in bytes of a text to search for. Shorter texts would match by chance."""

MAX_FILE = 1 << 20
"""Maximum size in bytes of a file that is searched for texts."""

MAX_TEXTS_SIZE = 16 << 20
"""Maximum size in bytes of all texts together."""


class ShownFilesRecorder:
    """Records the files that tests open, copy and hand over, by an audit hook and by hooks of pytest."""

    def __init__(self, tests: str, reports: str, test_code: Iterable[str]) -> None:
        self.tests = os.path.abspath(tests)
        self.test_code = frozenset(test_code)
        self.target = os.path.join(reports, FILE)
        self.reporter: Any = None
        self.running = ""
        self.read: dict[str, str] = {}
        self.copied: dict[str, str] = {}
        self.handed: dict[str, str] = {}
        self.passed_texts = PassedTexts(self.tests)
        self.copying: str | None = None
        self.in_hook = False

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.in_hook:  # the hook itself opens files
            return
        self.in_hook = True
        try:
            if event == "open":
                self.opened(args[0], writes=bool((args[2] or 0) & WRITING))
            elif event in COPIES and not self.inside(args[1]):
                self.record(self.copied, args[0])
                self.copying = self.inside(args[0]) if event == "shutil.copyfile" else None
            elif event == "subprocess.Popen":
                self.passed_texts.program_started(args[1], args[3], self.running)
        except (TypeError, ValueError, LookupError, OSError):  # invalid arguments fail in the audited call itself
            return
        finally:
            self.in_hook = False

    def opened(self, path: Any, *, writes: bool) -> None:
        name = self.inside(path)
        if writes:
            self.passed_texts.file_written(path)
        elif name is not None and name == self.copying:  # opened by `shutil.copyfile`, not by the tests
            self.copying = None
        elif name is not None:
            self.record(self.read, path)
            self.passed_texts.file_read(name)

    def record(self, files: dict[str, str], path: Any) -> None:
        name = self.inside(path)
        if name is not None and len(files) < MAX_FILES:
            files.setdefault(name, self.running)

    def inside(self, path: Any) -> str | None:
        """The path relative to the tests folder; None for files outside it, and for test code, which is never shown."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        name = os.path.abspath(os.fsdecode(path))
        if not name.startswith(self.tests + "/") or name.endswith(".pyc"):
            return None
        relative = name[len(self.tests) + 1 :]
        return None if relative in self.test_code else relative

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running = self.reporter.nodeid(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        for name in _entries(HANDED):
            if len(self.handed) < MAX_FILES:
                self.handed.setdefault(name.replace("\\", "/"), self.running)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        document = {
            "shown": sorted(files_below(SHOWN)),
            "handed": self.handed,
            "read": sorted(self.read),
            "copied": self.copied,
            "passed_texts": self.passed_texts.matches,
        }
        with open(self.target, "w", encoding="ascii") as file:
            json.dump(document, file)


class PassedTexts:
    """Texts of files that tests pass to a program at its start: in arguments, in the environment, or in new files."""

    def __init__(self, tests: str) -> None:
        self.tests = tests
        self.texts: dict[bytes, list[str]] = {}
        self.free_bytes = MAX_TEXTS_SIZE
        self.files_read: set[str] = set()
        self.files_written: dict[str, None] = {}
        self.matched: set[tuple[bytes, str]] = set()
        self.matches: list[dict[str, Any]] = []

    def file_read(self, name: str) -> None:
        """Adds the content of the file, without white space around it, to the texts."""
        if name in self.files_read or len(self.files_read) >= MAX_FILES:
            return
        self.files_read.add(name)
        text = _content(os.path.join(self.tests, name), MAX_TEXT).strip()
        if MIN_TEXT <= len(text) <= self.free_bytes:
            self.free_bytes -= len(text)
            self.texts.setdefault(text, []).append(name)

    def file_written(self, path: Any) -> None:
        if isinstance(path, str | bytes | os.PathLike) and len(self.files_written) < MAX_FILES:
            self.files_written[os.path.abspath(os.fsdecode(path))] = None

    def program_started(self, argv: Any, environment: Any, test: str) -> None:
        """Each written file is searched once, before the program itself can write to it."""
        words = [argv] if isinstance(argv, str | bytes | os.PathLike) else list(argv)
        self.search("argument", [os.fsencode(word) for word in words], test)
        values = (os.environ if environment is None else environment).values()
        self.search("environment", [os.fsencode(value) for value in values], test)
        paths, self.files_written = self.files_written, {}
        for path in paths:
            self.search("file", [_content(path, MAX_FILE)], test)

    def search(self, way: str, values: list[bytes], test: str) -> None:
        for text, names in self.texts.items():
            if (text, way) not in self.matched and any(text in value for value in values):
                self.matched.add((text, way))
                self.matches.append({"files": names, "way": way, "test": test})


def _content(path: str, max_size: int) -> bytes:
    """Empty if the file is larger, cannot be read, or is not a regular file."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > max_size:
            return b""
        with open(path, "rb") as file:
            return file.read(max_size)
    except OSError:
        return b""


def files_below(folder: str) -> Iterable[str]:
    paths: list[str] = []
    for root, _, names in os.walk(folder):
        paths += [os.path.relpath(os.path.join(root, name), folder) for name in names]
        if len(paths) > MAX_FILES:
            break
    return paths[:MAX_FILES]


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if _recorder is None:
        raise pytest.UsageError("there is no judge whose files could be recorded")
    _recorder.reporter = config.pluginmanager.getplugin("slop_code_reporter")
    config.pluginmanager.register(_recorder, "slop_code_shown_files_report")


def _install(judge: Any) -> ShownFilesRecorder:
    """Installs the hook when the plugin is imported, because a conftest may read files while it is loaded."""
    settings = judge._settings
    recorder = ShownFilesRecorder(settings["tests"], os.path.dirname(settings["stream"]), settings["test_code"])
    sys.addaudithook(recorder.hook)
    return recorder


_recorder = _install(sys.modules["slop_code_judge"]) if "slop_code_judge" in sys.modules else None
