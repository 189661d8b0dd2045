"""Collected template: the judge's own pytest run up to the first test, in a box without a submission.

The judge's plugin loads it as `slop_code_collected_template` if `SLOP_CODE_TEMPLATE` is set. It stops at the end of the
collection and serves from there. A forked judge goes on with the tests that it is to run. What a cold judge would have
made or written before is made and written in it: the stream, the log, files of captured output, start times.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from _pytest import timing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

MAX_REASONS, MAX_REASON_SIZE = 3, 1000


class CollectedTemplate:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Called before pytest has opened anything."""
        self.present = {*sys.modules} - {"slop_code_collected_template"}
        self.fork_server: Any = importlib.import_module("slop_code_fork_server")
        self.state: Any = importlib.import_module("slop_code_template_state")
        self.server = self.fork_server.take_socket()
        self.settings = dict(settings)
        self.errors = self.fork_server.high_descriptor(2)
        output = os.memfd_create(self.state.OUTPUT)
        for number in (1, 2):
            os.dup2(output, number)
        os.close(output)
        atexit.register(self.refuse_at_exit)
        self.cwd, self.ignored = os.getcwd(), self.state.ignored_signals()
        private = [*settings["guard"], settings["tmpdir"], settings["environment"].get("HOME", settings["tmpdir"])]
        self.probes = importlib.import_module("slop_code_import_probes").Probes(settings, private)
        if settings["in_process"]:
            self.refuse(["the tests import the submission (in_process: true)"])
        # Before anything of the tests is imported: they import such modules anew, as in a cold judge.
        self.fork_server.hide_modules(self.present)
        self.probes.start()

    def refuse_at_exit(self) -> NoReturn:
        self.refuse(["pytest ended before the tests were collected"])

    def refuse(self, reasons: list[str]) -> NoReturn:
        """The answer has the first reasons; the log of the template has them all, and the output of pytest."""
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        lines = [f"no collected template: {reason}\n" for reason in reasons]
        state = self.state
        outputs = [state.content(n) for n in (1, 2) if state.link(n).startswith(f"/memfd:{state.OUTPUT}")]
        state.write_all(self.errors, "".join(lines).encode("utf-8", "replace") + b"".join(outputs[:1]))
        self.fork_server.answer(self.server, refused="; ".join(reasons[:MAX_REASONS])[:MAX_REASON_SIZE])
        os._exit(0)

    def open_stream(self) -> int:
        """Stands for the stream, with the number that the stream has in a cold judge."""
        return os.memfd_create(self.state.STREAM)

    def before_tests(self) -> None:
        """Called when all plugins are loaded, and nothing of the tests: the garbage collector sees their objects."""
        self.fork_server.freeze_memory()

    def serve(self, session: pytest.Session) -> dict[str, Any]:
        """The settings of a new judge, in which alone it returns."""
        reasons = self.probes.stop()
        if session.testsfailed:
            reasons.append("the tests cannot be collected without a submission")
        sys.stdout.flush()
        plan = self.state.Descriptors(self.fork_server, (self.server.fileno(), self.errors))
        reasons += self.state.leftovers(self.cwd, self.ignored) + self.state.captured_functions(self.probes)
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
            self.fork_server.restart_process()
        except BaseException as error:  # noqa: BLE001  (no test may run in a process that was not set up)
            self.fork_server.fail(error)
        settings: dict[str, Any] = request["settings"]
        return settings

    def check(self, request: Mapping[str, Any]) -> None:
        """A judge of other tests, options or settings than the template's would give a wrong verdict."""
        argv = list(request["argv"])
        if argv[argv.index("pytest") + 1 :] != sys.argv[1:]:
            raise ValueError("the arguments of pytest are not those of the template")
        names = {*request["settings"], *self.settings} - {*self.fork_server.OWN_SETTINGS}
        different = sorted(n for n in names if request["settings"].get(n) != self.settings.get(n))
        if different or request["cwd"] != self.cwd:
            raise ValueError(f"not the settings of the template: {', '.join(different or ['cwd'])}")


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
