"""Collected template: the judge's own pytest run up to the first test, in a box without a submission.

The judge's plugin loads it as `slop_code_collected_template` if `SLOP_CODE_TEMPLATE` is set. It stops at the end of the
collection and serves from there. A forked judge goes on with the tests that it is to run; what a cold judge would have
made or written before is made and written in it: the stream, the log, files of captured output, start times.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
import tempfile
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from _pytest import timing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

OUTPUT, STREAM = "slop_code_output", "slop_code_stream"
OWN_SETTINGS = ("stream", "only", "seed", "quarantined")
"""Settings that each judge has of its own; the others must be those of the template."""

HIDDEN = ("ctypes", "ctypes._endian", "_ctypes", "slop_code_fork_server", "slop_code_supervisor",
          "slop_code_judge_privileges", "slop_code_import_probes", "slop_code_collected_template")  # fmt: skip
FAILED = 125
MAX_SIZE, MAX_REASONS, MAX_REASON_SIZE = 64 << 20, 3, 1000


class CollectedTemplate:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Called before pytest has opened anything."""
        self.present = {*sys.modules} - {"slop_code_collected_template"}
        self.fork_server: Any = importlib.import_module("slop_code_fork_server")
        self.server = self.fork_server.take_socket()
        self.settings = dict(settings)
        self.errors = self.fork_server.high_descriptor(2)
        output = os.memfd_create(OUTPUT)
        for number in (1, 2):
            os.dup2(output, number)
        os.close(output)
        atexit.register(self.refuse_at_exit)
        self.cwd = os.getcwd()
        self.output: bytes = b""
        private = [*settings["guard"], settings["tmpdir"], settings["environment"].get("HOME", settings["tmpdir"])]
        self.probes = importlib.import_module("slop_code_import_probes").Probes(settings["tests"], private)
        if settings["in_process"]:
            self.refuse(["the tests import the submission (in_process: true)"])
        self.probes.start()

    def refuse_at_exit(self) -> NoReturn:
        self.refuse(["pytest ended before the tests were collected"])

    def refuse(self, reasons: list[str]) -> NoReturn:
        """The answer has the first reasons; the log of the template has them all, and the output of pytest."""
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        lines = [f"no collected template: {reason}\n" for reason in reasons]
        outputs = [content(number) for number in (1, 2) if link(number).startswith(f"/memfd:{OUTPUT}")]
        write_all(self.errors, "".join(lines).encode("utf-8", "replace") + b"".join(outputs[:1]))
        self.fork_server.answer(self.server, refused="; ".join(reasons[:MAX_REASONS])[:MAX_REASON_SIZE])
        os._exit(0)

    def open_stream(self) -> int:
        """Stands for the stream, with the number that the stream has in a cold judge."""
        return os.memfd_create(STREAM)

    def serve(self, session: pytest.Session) -> dict[str, Any]:
        """The settings of a new judge, in which alone it returns."""
        reasons = self.probes.stop()
        if session.testsfailed:
            reasons.append("the tests cannot be collected without a submission")
        sys.stdout.flush()
        plan = Descriptors(self.fork_server)
        reasons += leftovers(self.cwd) + captured_functions(self.probes)
        reasons += [f"{path} was left open before the first test" for path in plan.unknown]
        if reasons:
            self.refuse(reasons)
        evaluation = self.fork_server.serve(self.server, "collected", plan.numbers)
        request = evaluation.request
        os.dup2(evaluation.log, 2)
        try:
            atexit.unregister(self.refuse_at_exit)
            self.check(request)
            plan.replace(evaluation.log, request["settings"]["stream"])
            restart_clocks(session.config)
            self.fork_server.restart_logging()
            for name in HIDDEN:
                if name not in self.present:
                    sys.modules.pop(name, None)
        except BaseException as error:  # noqa: BLE001  (no test may run in a process that was not set up)
            os.write(2, f"the judge cannot go on from its template: {type(error).__name__}: {error}\n".encode())
            os._exit(FAILED)
        settings: dict[str, Any] = request["settings"]
        return settings

    def check(self, request: Mapping[str, Any]) -> None:
        """A judge of other tests, options or settings than the template's would give a wrong verdict."""
        argv = list(request["argv"])
        if argv[argv.index("pytest") + 1 :] != sys.argv[1:]:
            raise ValueError("the arguments of pytest are not those of the template")
        names = {*request["settings"], *self.settings} - {*OWN_SETTINGS}
        different = sorted(n for n in names if request["settings"].get(n) != self.settings.get(n))
        if different or request["cwd"] != self.cwd:
            raise ValueError(f"not the settings of the template: {', '.join(different or ['cwd'])}")


class Descriptors:
    """Everything that is open in the template, and what a judge has in its place."""

    def __init__(self, fork_server: Any) -> None:
        self.fork_server = fork_server
        self.outputs: list[int] = []
        self.nulls: list[int] = []
        self.captures: list[tuple[int, str]] = []
        self.streams: list[int] = []
        self.unknown: list[str] = []
        for number in map(int, os.listdir("/proc/self/fd")):
            if number < fork_server.FIRST_HIGH_DESCRIPTOR:
                self.classify(number)
        self.numbers = [*self.outputs, *self.nulls, *self.streams, *(number for number, _ in self.captures)]

    def classify(self, number: int) -> None:
        try:
            path = link(number)
        except FileNotFoundError:  # that of the list itself
            return
        if path.startswith(f"/memfd:{OUTPUT}"):
            self.outputs.append(number)
        elif path.startswith(f"/memfd:{STREAM}"):
            self.streams.append(number)
        elif path == os.devnull:
            self.nulls.append(number)
        elif path.endswith(" (deleted)") and is_empty_file(number):
            self.captures.append((number, os.path.dirname(path)))
        else:
            self.unknown.append(path)

    def replace(self, log: int, stream: str) -> None:
        """The open files of the template itself are never written to: all judges would share them."""
        text = content(self.outputs[0])
        events = content(self.streams[0])
        self.fork_server.replace_descriptors(log, self.outputs, self.nulls)
        for number, folder in self.captures:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                os.dup2(file.fileno(), number, inheritable=os.get_inheritable(number))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(stream, flags, 0o600)
        os.dup2(opened, self.streams[0], inheritable=False)
        os.close(opened)
        write_all(self.outputs[0], text)
        write_all(self.streams[0], events)


def link(number: int) -> str:
    return os.readlink(f"/proc/self/fd/{number}")


def content(number: int) -> bytes:
    return os.pread(number, min(os.fstat(number).st_size, MAX_SIZE), 0)


def write_all(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]


def is_empty_file(number: int) -> bool:
    """A file of pytest's capture, from which it has taken everything."""
    return os.fstat(number).st_size == 0 and os.lseek(number, 0, os.SEEK_CUR) == 0


def leftovers(cwd: str) -> list[str]:
    """What a fork would not copy, or would share."""
    reasons = []
    if len(os.listdir("/proc/self/task")) > 1:
        reasons.append("a thread was left running before the first test")
    try:
        os.waitpid(-1, os.WNOHANG)
        reasons.append("a process was left before the first test")
    except ChildProcessError:
        pass
    if any(any(signal.getitimer(t)) for t in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)):
        reasons.append("a timer was left running before the first test")
    if os.getcwd() != cwd:
        reasons.append("the working directory was changed before the first test")
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        if any(line.split()[1][1::2] == "ws" for line in maps):
            reasons.append("memory that processes share was mapped before the first test")
    return reasons


def captured_functions(probes: Any) -> list[str]:
    """Modules that have imported a function while a probe stood for it get the function itself."""
    reasons = []
    for name, original in probes.originals.items():
        probe = probes.replaced[name]
        for owner in gc.get_referrers(probe):
            if isinstance(owner, dict) and owner is not probes.replaced:
                for key in list(owner):
                    if owner[key] is probe:
                        owner[key] = original
            elif not isinstance(owner, dict | FrameType):
                reasons.append(f"os.{name} was kept before the first test")
    return reasons


def restart_clocks(config: pytest.Config) -> None:
    """Durations count from here on. Plugins that are not known here have not read a clock; the probes saw to that."""
    config.pluginmanager.getplugin("terminalreporter")._session_start = timing.Instant()
    if (report := getattr(config, "_json_report", None)) is not None:
        report._start_time = time.time()
    if (ctrf := getattr(config, "_ctrf", None)) is not None:
        ctrf._report.start()
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "LogXML":
            plugin.suite_start = timing.Instant()
    timeouts = sys.modules.get("pytest_timeout")
    if timeouts is not None and (limit := config.stash.get(timeouts.SESSION_TIMEOUT_KEY, 0)):
        config.stash[timeouts.SESSION_EXPIRE_KEY] = time.time() + limit
