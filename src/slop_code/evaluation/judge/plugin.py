"""pytest plugin of the judge, loaded as the module `slop_code_judge`; it needs only the standard library and pytest.

An environment variable names a JSON file with its settings: `stream` (the file of the stream), `environment` (variables
of the tests and their processes), `tmpdir`, `tests`, `guard` (folders that may not be imported from), `in_process`,
`launcher` (the first word of every command of the submission), `command` (the words it stands for), `gate` and `limits`
(for `slop_code_usage`), `test_folders` (folders of the tests that are no data), `test_code` (files of the tests that no
call hands over), `only` (node ids to run; null: all), `seed` (of the order of tests and of `random`; null: neither) and
`quarantined` (node ids).
If `SLOP_CODE_TEMPLATE` is set, the process is a collected template (`slop_code_collected_template`).
"""

from __future__ import annotations

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
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

VARIABLE, TEMPLATE_VARIABLE = "SLOP_CODE_JUDGE", "SLOP_CODE_TEMPLATE"
TEXT_LIMIT, TEXT_BUDGET, TEXT_LIMIT_OVER_BUDGET = 64 * 1024, 16 * 1024 * 1024, 1024
SESSION_OUTPUT, FIXTURE_OUTPUT = 64 * 1024, 16 * 1024 * 1024
OUTPUT_LIMIT, LINE_SIZE = 16 * 1024, 256 * 1024
MAX_CALLS, CALL_LIMIT = 20, 1024
QUARANTINED = "quarantined"


class ImportGuard:
    """Keeps files of the submission from running inside the judge's process."""

    def __init__(self, guard: Iterable[str], allow: Iterable[str]) -> None:
        self.guarded = _both_forms(guard)
        self.allowed = _both_forms(allow)

    def install(self) -> None:
        sys.addaudithook(self.hook)
        original = importlib.machinery.FileFinder.find_spec

        # A .pyc may contain any file name, so the audit hook alone could be deceived: its real path is checked here.
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
    """The first commands that the running test started, shell-quoted."""

    def __init__(self, launcher: str, command: Sequence[str]) -> None:
        self.launcher, self.command = launcher, command
        self.commands: list[str] = []
        self.omitted = 0

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen":
            return
        if len(self.commands) >= MAX_CALLS:
            self.omitted += 1
            return
        try:
            self.commands.append(self.quoted(args[1]))
        except (TypeError, ValueError):  # invalid arguments: subprocess itself raises
            self.omitted += 1

    def quoted(self, argv: Any) -> str:
        if isinstance(argv, str | bytes | os.PathLike):
            return bounded(os.fsdecode(argv), CALL_LIMIT)
        words = [bounded(os.fsdecode(word), CALL_LIMIT) for word in argv[: CALL_LIMIT // 2]]
        if words and os.path.basename(words[0]) == self.launcher:
            words[:1] = self.command
        return bounded(shlex.join(words), CALL_LIMIT)

    def take(self) -> list[str]:
        """Returns the commands, and clears them for the next test."""
        calls = [*self.commands, *([f"[... {self.omitted} more]"] if self.omitted else [])]
        self.commands, self.omitted = [], 0
        return calls


class Reporter:
    """Writes the stream, a line for each event, and bounds the texts in all reports."""

    def __init__(self, settings: Mapping[str, Any], calls: Calls) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = _template.open_stream() if _template else os.open(settings["stream"], flags, 0o600)
        self.tests = self.root = os.path.abspath(settings["tests"])
        self.relative_files: dict[str, str] = {}
        self.markers: dict[str, list[str]] = {}
        self.reports: dict[str, list[pytest.TestReport]] = {}
        self.text_size = 0
        self.calls = calls
        self.choose(settings)

    def choose(self, settings: Mapping[str, Any]) -> None:
        """Which tests run, and in which order."""
        only = settings.get("only")
        self.only = None if only is None else frozenset(only)
        self.seed, self.quarantined = settings.get("seed"), frozenset(settings.get("quarantined", ()))

    def write(self, kind: str, **values: Any) -> None:
        rest = json.dumps({"kind": kind, **values}).encode("ascii") + b"\n"
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]

    def nodeid(self, nodeid: str) -> str:
        file, separator, name = nodeid.partition("::")
        if file not in self.relative_files:
            path = os.path.normpath(os.path.join(self.root, file))
            self.relative_files[file] = os.path.relpath(path, self.tests) if _inside(path, {self.tests}) else file
        return self.relative_files[file] + separator + name

    def bounded(self, text: str) -> str:
        """Also bounds all texts of a session together, because the size of a report is limited."""
        limit = TEXT_LIMIT if self.text_size < TEXT_BUDGET else TEXT_LIMIT_OVER_BUDGET
        short = bounded(text, limit)
        self.text_size += len(json.dumps(short))
        return short

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """A subtest that passed must not hide a subtest that failed."""
        return ("", "", "") if type(report).__name__ == "SubtestReport" and not report.failed else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Runs after all other plugins, so that these reorder and deselect as if all tests ran in this pytest."""
        yield
        if _template:
            self.choose(_template.serve(session))
        if self.only is not None:
            items[:] = [item for item in items if self.nodeid(item.nodeid) in self.only]
        if self.seed is not None:
            items[:] = shuffled(items, self.seed)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            names = dict.fromkeys(mark.name for mark in item.iter_markers())
            names.pop(QUARANTINED, None)  # only the settings decide this, never a marker in the tests
            quarantine = [QUARANTINED] if self.nodeid(item.nodeid) in self.quarantined else []
            self.markers[item.nodeid] = [*quarantine, *names]
        tests = [{"nodeid": self.nodeid(name), "markers": marks} for name, marks in self.markers.items()]
        for chunk in _chunks(tests):
            self.write("collected", tests=chunk)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for chunk in _chunks([self.nodeid(item.nodeid) for item in items]):
            self.write("deselected", nodeids=chunk)

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
        (reports := self.reports.setdefault(report.nodeid, [])).append(report)
        if report.when != "teardown":
            return
        status, xpassed = _status(reports)
        calls, details = self.calls.take(), {}
        if status != "passed":
            details = {"calls": calls, "output": self.bounded(bounded(_captured_output(report), OUTPUT_LIMIT))}
        messages = [_message(part) for part in reports if part.outcome != "passed" and part.longrepr]
        self.write(
            "result",
            nodeid=self.nodeid(report.nodeid),
            status=status,
            xpassed=xpassed,
            duration_ms=1000 * sum(part.duration for part in reports),
            message=None if status == "passed" else bounded("\n".join(messages), TEXT_LIMIT),
            markers=self.markers.get(report.nodeid, []),
            **getattr(report, "slop_code_usage", {}),
            **details,
        )
        del self.reports[report.nodeid]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.write("finish", exitstatus=int(exitstatus))


def shuffled(items: Sequence[pytest.Item], seed: int) -> list[pytest.Item]:
    """Shuffles files, and functions and classes within files; seed 0 reverses them. A class keeps its order."""
    files: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        file, _, name = item.nodeid.partition("::")
        first, inside, _ = name.partition("[")[0].partition("::")
        files.setdefault(file, {}).setdefault(first if inside else name, []).append(item)
    rng = random.Random(seed)

    def shuffle(values: Iterable[Any]) -> list[Any]:
        ordered = list(values)
        return rng.sample(ordered, len(ordered)) if seed else ordered[::-1]

    return [item for units in shuffle(files.values()) for unit in shuffle(units.values()) for item in unit]


def _status(reports: Sequence[pytest.TestReport]) -> tuple[str, bool]:
    """Fail closed: a test passed only if every stage ran and passed, and it is not marked xfail."""
    if any(report.failed and report.when != "call" for report in reports):
        return "error", False
    if any(report.failed for report in reports):
        return "failed", False
    stages = [report for report in reports if type(report).__name__ != "SubtestReport"]
    if any(report.skipped for report in stages):
        return "skipped", False
    if any(hasattr(report, "wasxfail") for report in stages):
        return "failed", True
    complete = [report.when for report in stages if report.passed] == ["setup", "call", "teardown"]
    return ("passed" if complete else "error"), False


def _message(report: pytest.TestReport) -> str:
    """A skip is reported as file, line and reason."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return report.longreprtext


def _chunks(values: Sequence[Any]) -> Iterable[list[Any]]:
    """Chunks that fit into a line of the stream: at least one, even for no values."""
    chunk: list[Any] = []
    size = 0
    for value in values:
        chunk.append(value)
        size += len(json.dumps(value))
        if size > LINE_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk or not values:
        yield chunk


def _captured_output(last: pytest.TestReport) -> str:
    """The output of all stages, which the report of the last stage contains."""
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
    """pytest reads all captured output into memory, so it is bounded here; `capfd` and its like have a larger limit."""
    manager = config.pluginmanager.getplugin("capturemanager")
    session = getattr(manager, "_global_capturing", None)
    session_captures = [getattr(session, "out", None), getattr(session, "err", None)]

    def snap(self: Any) -> bytes:
        self._assert_state("snap", ("started", "suspended"))
        limit = SESSION_OUTPUT if any(self is capture for capture in session_captures) else FIXTURE_OUTPUT
        output = bounded_output(self.tmpfile.fileno(), limit)
        if output:
            self.tmpfile.seek(0)
            self.tmpfile.truncate()
        return output

    _replace(pytest_capture.FDCaptureBinary, "snap", snap)
    _replace(pytest_capture.FDCapture, "snap", lambda self: snap(self).decode("utf-8", "replace"))


def detach_stdin() -> None:
    """Only pytest and its debugger read the user's input; processes that tests start read /dev/null."""
    sys.stdin = os.fdopen(os.dup(0), errors="replace")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    if _template:
        _template.before_tests()


def pytest_configure(config: pytest.Config) -> None:
    if _settings is None:
        raise pytest.UsageError(f"{VARIABLE} names no settings for the judge")
    os.environ["TMPDIR"] = _settings["tmpdir"]
    tempfile.tempdir = None
    bound_captures(config)
    # pytest would fail on files that a submission left in `tmp_path`. The box is removed with all of them anyway.
    _replace(pytest_tmpdir, "cleanup_dead_symlinks", lambda _root: None)
    reporter = Reporter(_settings, Calls(_settings.get("launcher", ""), _settings.get("command", ())))
    reporter.root = str(config.rootpath)
    sys.addaudithook(reporter.calls.hook)
    config.pluginmanager.register(reporter, "slop_code_reporter")
    for name in ("data_folders", "tests_folder_report", "usage", "folder_access", "process_exit"):
        config.pluginmanager.import_plugin(f"slop_code_{name}")
    if (omit := getattr(config.option, "json_report_omit", None)) is not None:
        config.option.json_report_omit = [*omit, "log", "streams"]


def _prepare(path: str) -> dict[str, Any]:
    global _template
    with open(path, encoding="utf-8") as file:
        settings: dict[str, Any] = json.load(file)
    if TEMPLATE_VARIABLE in os.environ:
        _template = importlib.import_module("slop_code_collected_template").CollectedTemplate(settings)
    os.environ.clear()
    os.environ.update(settings["environment"])
    detach_stdin()
    if settings["in_process"]:
        sys.path.insert(0, settings["guard"][0])
    else:
        ImportGuard(settings["guard"], [settings["tests"]]).install()
    return settings


_template: Any = None
"""The template that this process is, or was forked from; None in a cold judge, and in one of an imported template."""

_settings = _prepare(os.environ.pop(VARIABLE)) if VARIABLE in os.environ else None
