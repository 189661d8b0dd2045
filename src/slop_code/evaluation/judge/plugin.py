"""Loaded into the judge's pytest as the module `slop_code_judge`: standard library and pytest only.

A JSON file, named by an environment variable, says what to do: `stream` (where our lines go), `environment`
(what tests and their children see), `tmpdir`, `tests`, the folders of the import guard, `launcher` (the words before
every command of the submission), `only`: the node ids to run where another pytest runs the others, `seed`: of another
order, and of the chance that tests use, and `quarantined`: the node ids of tests that decide nothing.
"""

from __future__ import annotations

import atexit
import gc
import importlib.machinery
import json
import os
import random
import shlex
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from _pytest import capture as pytest_capture
from _pytest import tmpdir as pytest_tmpdir

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

VARIABLE = "SLOP_CODE_JUDGE"
TEXT_LIMIT = 64 * 1024
TEXT_BUDGET = 16 * 1024 * 1024
TEXT_LIMIT_OVER_BUDGET = 1024
SESSION_OUTPUT = 64 * 1024
FIXTURE_OUTPUT = 16 * 1024 * 1024
OUTPUT_LIMIT = 16 * 1024
MAX_CALLS = 20
LINE_SIZE = 256 * 1024
CALL_LIMIT = 1024
QUARANTINED = "quarantined"


class ImportGuard:
    """Keeps files of the submission from running inside the judge's process."""

    def __init__(self, guard: Iterable[str], allow: Iterable[str]) -> None:
        self.guarded = _both_forms(guard)
        self.allowed = _both_forms(allow)

    def install(self) -> None:
        sys.addaudithook(self.hook)
        original = importlib.machinery.FileFinder.find_spec

        # The file name inside a .pyc is whatever its maker wrote, so the hook below cannot judge that one.
        def find_spec(finder: Any, fullname: str, target: Any = None) -> Any:
            spec = original(finder, fullname, target)
            if spec is not None and spec.loader is not None and spec.origin:
                self.check(spec.origin)
            return spec

        _replace(importlib.machinery.FileFinder, "find_spec", find_spec)

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "exec":
            self.check(getattr(args[0], "co_filename", None))
        elif event == "import":
            self.check(args[1])
        elif event == "ctypes.dlopen":
            self.check(args[0])

    def check(self, name: Any) -> None:
        if not isinstance(name, str | bytes) or not name:
            return
        path = os.fsdecode(name)
        # Generated code has names such as "<string>" or "timer"; only a file can be the submission's.
        if not os.path.isabs(path) and not os.path.exists(path):
            return
        for form in (os.path.abspath(path), os.path.realpath(path)):
            if _inside(form, self.guarded) and not _inside(form, self.allowed):
                raise ImportError(
                    f"the tests imported the submission's {path} into the judge's process; call it "
                    "through the entrypoint, or set in_process: true in the problem's config.yaml"
                )


class Calls:
    """What the running test has started: the first commands of it, as a shell would read them."""

    def __init__(self, launcher: Sequence[str]) -> None:
        self.launcher = list(launcher)
        self.noted: list[str] = []
        self.more = 0

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen":
            return
        if len(self.noted) >= MAX_CALLS:
            self.more += 1
            return
        try:
            self.noted.append(self.shown(args[1]))
        except (TypeError, ValueError):  # odd arguments are for subprocess to refuse
            self.more += 1

    def shown(self, argv: Any) -> str:
        if isinstance(argv, str | bytes | os.PathLike):
            return bounded(os.fsdecode(argv), CALL_LIMIT)
        words = [bounded(os.fsdecode(word), CALL_LIMIT) for word in argv[: CALL_LIMIT // 2]]
        count = len(self.launcher)
        return bounded(shlex.join(words[count:] if words[:count] == self.launcher else words), CALL_LIMIT)

    def take(self) -> list[str]:
        """And forget them."""
        calls = [*self.noted, *([f"[... {self.more} more]"] if self.more else [])]
        self.noted, self.more = [], 0
        return calls


class Reporter:
    """Writes our lines as things happen and bounds what the other reports will hold."""

    def __init__(
        self,
        stream: str,
        tests: str,
        only: Iterable[str] | None = None,
        launcher: Sequence[str] = (),
        seed: int | None = None,
        quarantined: Iterable[str] = (),
    ) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(stream, flags, 0o600)
        self.tests = os.path.abspath(tests)
        self.root = self.tests
        self.places: dict[str, str] = {}
        self.markers: dict[str, list[str]] = {}
        self.reports: dict[str, list[pytest.TestReport]] = {}
        self.spent = 0
        self.only = None if only is None else frozenset(only)
        self.calls = Calls(launcher)
        self.seed = seed
        self.quarantined = frozenset(quarantined)

    def write(self, kind: str, **values: Any) -> None:
        rest = json.dumps({"kind": kind, **values}).encode("ascii") + b"\n"
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]

    def nodeid(self, nodeid: str) -> str:
        file, separator, name = nodeid.partition("::")
        if file not in self.places:
            path = os.path.normpath(os.path.join(self.root, file))
            self.places[file] = os.path.relpath(path, self.tests) if _inside(path, {self.tests}) else file
        return self.places[file] + separator + name

    def bounded(self, text: str) -> str:
        """Over the whole session too: many long failures must not outgrow the reports."""
        limit = TEXT_LIMIT if self.spent < TEXT_BUDGET else TEXT_LIMIT_OVER_BUDGET
        short = bounded(text, limit)
        self.spent += len(json.dumps(short))
        return short

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """A part of a test that went well must not cover up one that did not."""
        return ("", "", "") if type(report).__name__ == "SubtestReport" and not report.failed else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None, None, None]:
        """After everyone else, so that what others reorder and leave out is what it would be for all tests."""
        yield
        if self.only is not None:
            items[:] = [item for item in items if self.nodeid(item.nodeid) in self.only]
        if self.seed is not None:
            items[:] = reordered(items, self.seed)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            names = dict.fromkeys(mark.name for mark in item.iter_markers())
            names.pop(QUARANTINED, None)  # that is for us to say, whatever the tests bring along
            apart = [QUARANTINED] if self.nodeid(item.nodeid) in self.quarantined else []
            self.markers[item.nodeid] = [*apart, *names]
        tests = [{"nodeid": self.nodeid(name), "markers": marks} for name, marks in self.markers.items()]
        for some in _lines_of(tests):
            self.write("collected", tests=some)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for some in _lines_of([self.nodeid(item.nodeid) for item in items]):
            self.write("deselected", nodeids=some)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            message = bounded(str(report.longrepr), TEXT_LIMIT)
            self.write("collect_error", nodeid=self.nodeid(report.nodeid), message=message)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.calls.take()
        if self.seed is not None:
            random.seed(f"{self.seed} {self.nodeid(nodeid)}")
        self.write("start", nodeid=self.nodeid(nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        self._bound(report)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._bound(report)
        return report

    def _bound(self, report: Any) -> None:
        if isinstance(report.longrepr, tuple):
            path, line, reason = report.longrepr
            report.longrepr = (path, line, self.bounded(reason))
        elif report.longrepr is not None and (short := self.bounded(text := report.longreprtext)) != text:
            report.longrepr = short
        report.sections = [(name, bounded(content, 3 * TEXT_LIMIT)) for name, content in report.sections]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reports = self.reports.setdefault(report.nodeid, [])
        reports.append(report)
        if report.when != "teardown":
            return
        status, xpassed = _status(reports)
        calls, more = self.calls.take(), {}
        if status != "passed":
            more = {"calls": calls, "output": self.bounded(bounded(_printed(report), OUTPUT_LIMIT))}
        messages = [_message(part) for part in reports if part.outcome != "passed" and part.longrepr]
        self.write(
            "result",
            nodeid=self.nodeid(report.nodeid),
            status=status,
            xpassed=xpassed,
            duration_ms=1000 * sum(part.duration for part in reports),
            message=None if status == "passed" else bounded("\n".join(messages), TEXT_LIMIT),
            markers=self.markers.get(report.nodeid, []),
            **more,
        )
        del self.reports[report.nodeid]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.write("finish", exitstatus=int(exitstatus))


def reordered(items: Sequence[pytest.Item], seed: int) -> list[pytest.Item]:
    """What stands at the top of the files, by chance, with seed 0 in reverse; a class keeps together and in order."""
    files: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        file, _, name = item.nodeid.partition("::")
        first, inside, _ = name.partition("[")[0].partition("::")
        files.setdefault(file, {}).setdefault(first if inside else name, []).append(item)
    chance = random.Random(seed)

    def turned(values: Iterable[Any]) -> list[Any]:
        some = list(values)
        return chance.sample(some, len(some)) if seed else some[::-1]

    return [item for units in turned(files.values()) for unit in turned(units.values()) for item in unit]


def _status(reports: Sequence[pytest.TestReport]) -> tuple[str, bool]:
    """Fail closed: passed is what ran and passed in every stage, and was not meant to fail."""
    if any(report.failed and report.when != "call" for report in reports):
        return "error", False
    if any(report.failed for report in reports):
        return "failed", False
    whole = [report for report in reports if type(report).__name__ != "SubtestReport"]
    if any(report.skipped for report in whole):
        return "skipped", False
    if any(hasattr(report, "wasxfail") for report in whole):
        return "failed", True
    complete = [report.when for report in whole if report.passed] == ["setup", "call", "teardown"]
    return ("passed" if complete else "error"), False


def _message(report: pytest.TestReport) -> str:
    """A skip is reported as file, line and reason."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return report.longreprtext


def _lines_of(values: Sequence[Any]) -> Iterable[list[Any]]:
    """However many there are, no line of ours is too long to be read; there is one even for none."""
    some: list[Any] = []
    size = 0
    for value in values:
        some.append(value)
        size += len(json.dumps(value))
        if size > LINE_SIZE:
            yield some
            some, size = [], 0
    if some or not values:
        yield some


def _printed(last: pytest.TestReport) -> str:
    """The report of a test's last stage has what every stage printed."""
    return "".join(f"--- {name} ---\n{text.rstrip()}\n" for name, text in last.sections if text.strip())


def _both_forms(folders: Iterable[str]) -> set[str]:
    return {form for folder in folders for form in (os.path.abspath(folder), os.path.realpath(folder))}


def _inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def bounded_output(descriptor: int, limit: int) -> bytes:
    """The first and last `limit` bytes of a file, which may be sparse, huge and still growing."""
    size = os.fstat(descriptor).st_size
    if size <= 2 * limit:
        return os.pread(descriptor, size, 0)
    note = f"\n[... {size - 2 * limit} bytes left out ...]\n".encode()
    return os.pread(descriptor, limit, 0) + note + os.pread(descriptor, limit, size - limit)


def bound_captures(config: pytest.Config) -> None:
    """pytest reads all that was printed into memory; what a fixture hands to a test is cut much later."""
    manager = config.pluginmanager.getplugin("capturemanager")
    session = getattr(manager, "_global_capturing", None)
    ours = [getattr(session, "out", None), getattr(session, "err", None)]

    def snap(self: Any) -> bytes:
        self._assert_state("snap", ("started", "suspended"))
        limit = SESSION_OUTPUT if any(self is capture for capture in ours) else FIXTURE_OUTPUT
        output = bounded_output(self.tmpfile.fileno(), limit)
        if output:
            self.tmpfile.seek(0)
            self.tmpfile.truncate()
        return output

    _replace(pytest_capture.FDCaptureBinary, "snap", snap)
    _replace(pytest_capture.FDCapture, "snap", lambda self: snap(self).decode("utf-8", "replace"))


def leave_folders_alone() -> None:
    """pytest would tidy up those of `tmp_path`, and stumble over what a submission left there; all goes anyway."""
    _replace(pytest_tmpdir, "cleanup_dead_symlinks", lambda _root: None)


def keep_input_apart() -> None:
    """What tests start reads nothing: a person's own input is for the debugger, and never for the submission."""
    sys.stdin = os.fdopen(os.dup(0), errors="replace")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


def pytest_configure(config: pytest.Config) -> None:
    if _settings is None:
        raise pytest.UsageError(f"{VARIABLE} names no settings for the judge")
    os.environ["TMPDIR"] = _settings["tmpdir"]
    tempfile.tempdir = None
    bound_captures(config)
    leave_folders_alone()
    reporter = Reporter(
        _settings["stream"],
        _settings["tests"],
        only=_settings.get("only"),
        launcher=_settings.get("launcher", ()),
        seed=_settings.get("seed"),
        quarantined=_settings.get("quarantined", ()),
    )
    reporter.root = str(config.rootpath)
    sys.addaudithook(reporter.calls.hook)
    config.pluginmanager.register(reporter, "slop_code_reporter")
    if (omit := getattr(config.option, "json_report_omit", None)) is not None:
        config.option.json_report_omit = [*omit, "log", "streams"]


def _prepare(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        settings: dict[str, Any] = json.load(file)
    os.environ.clear()
    os.environ.update(settings["environment"])
    keep_input_apart()
    atexit.register(gc.freeze)  # a search for garbage in all that pytest has takes longer than many a test
    if settings["in_process"]:
        sys.path.insert(0, settings["guard"][0])
    else:
        ImportGuard(settings["guard"], [settings["tests"]]).install()
    return settings


_settings = _prepare(os.environ.pop(VARIABLE)) if VARIABLE in os.environ else None
