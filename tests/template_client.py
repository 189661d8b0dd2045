"""Client of a template's protocol, and a folder in which cold and forked judges run the same tests."""

import importlib.metadata
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from slop_code.evaluation.command import judge_sources
from slop_code.evaluation.staging import SETTINGS_VARIABLE

TEMPLATE_VARIABLE = "SLOP_CODE_TEMPLATE"
ANSWER_S = 120
PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "pytest_timeout", "pytest_json_report",
            "pytest_metadata", "pytest_json_ctrf", "jsonschema", "jsonschema_specifications", "referencing", "rpds_py",
            "attrs", "typing_extensions")  # fmt: skip
"""The test tools, as far as the tests need them."""

FRAME = re.compile(r".*slop_code_imported_template.py.*\n(    exec.*\n)?( +[~^]+\n)?")
"""The outermost frame of a judge from an imported template, in tracebacks of errors that no test reports."""

TIMES = re.compile(r"\b\d+(\.\d+)?(e-\d+)?s?\b|0x[0-9a-f]+")


class Template:
    """A template process. `answer` is its first packet; None if it ended without one."""

    def __init__(self, argv, environment, cwd, log):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(ANSWER_S)
        variables = {**environment, TEMPLATE_VARIABLE: str(theirs.fileno())}
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                argv, cwd=cwd, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                pass_fds=[theirs.fileno()],
            )  # fmt: skip
        theirs.close()
        packet = self.socket.recv(1 << 16)
        self.answer = json.loads(packet) if packet else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.wait(ANSWER_S)

    def start(self, request, log):
        return StartedEvaluation(self, json.dumps(request).encode(), log)

    def evaluate(self, request, log):
        return self.start(request, log).wait()


class StartedEvaluation:
    def __init__(self, template, request, log, packet=b'{"evaluate": 1}'):
        memory = os.memfd_create("request")
        os.write(memory, request)
        lifeline, self.lifeline = os.pipe()
        self.status, status = os.pipe()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        descriptors = [memory, output, lifeline, status]
        socket.send_fds(template.socket, [packet], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def wait(self):
        """The exit status; None if there is none."""
        ready, _, _ = select.select([self.status], [], [], ANSWER_S)
        assert ready, "the evaluation does not end"
        data = os.read(self.status, 4)
        os.close(self.status)
        self.abandon()
        return int.from_bytes(data, sys.byteorder) if data else None

    def abandon(self):
        if self.lifeline is not None:
            os.close(self.lifeline)
            self.lifeline = None


@dataclass(frozen=True)
class Judged:
    exit_code: int | None
    folder: Path

    @property
    def log(self):
        return (self.folder / "pytest.log").read_text("utf-8", "replace")

    @property
    def stream(self):
        path = self.folder / "stream.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def statuses(self):
        return {line["nodeid"].partition("::")[2]: line["status"] for line in self.stream if line["kind"] == "result"}

    @property
    def messages(self):
        return "\n".join(line["message"] or "" for line in self.stream if line["kind"] == "result")

    @property
    def comparable(self):
        """Everything that it left, without times, addresses and measurements."""
        reports = {}
        for name in ("pytest-report.json", "ctrf-report.json"):
            path = self.folder / name
            reports[name] = without_times(json.loads(path.read_text())) if path.exists() else None
        lines = [without_times(line) for line in self.stream]
        log = [TIMES.sub("N", line) for line in FRAME.sub("", self.log).splitlines()]
        return {"exit": self.exit_code, "stream": lines, "log": log, **reports}


MEASURED = {"duration", "duration_ms", "usage", "created", "start", "stop", "timestamp", "reportId"}


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(part) for key, part in value.items() if key not in MEASURED or key == "kind"}
    if isinstance(value, list):
        return [without_times(part) for part in value]
    return TIMES.sub("N", value) if isinstance(value, str) else value


def make_tool_environment(prefix: Path) -> None:
    """Installed packages, in an environment of their own."""
    packages = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (prefix / "pyvenv.cfg").write_text(
        f"home = {Path(sys.executable).resolve().parent}\ninclude-system-site-packages = false\n"
    )
    for name in PACKAGES:
        distribution = importlib.metadata.distribution(name)
        for part in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(distribution.locate_file(part))
            if source.is_dir():
                shutil.copytree(source, packages / part, copy_function=link_or_copy)
            else:
                link_or_copy(source, packages / part)
    script = Path(sys.executable).with_name("pytest").read_text().partition("\n")[2]
    (prefix / "bin" / "pytest").write_text(f"#!{prefix}/bin/python\n{script}")
    (prefix / "bin" / "pytest").chmod(0o755)


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


class JudgeFolder:
    """Every judge finds the same workspace at the same path, as in a box."""

    def __init__(self, root: Path, files):
        self.root, self.files = root, {name: dedent(text) for name, text in files.items()}
        self.workspace = root / "workspace"
        self.tests = self.workspace / ".evaluation_tests"
        self.reports = self.workspace / ".scbench"
        self.runs = 0
        make_tool_environment(root / "tools")
        self.python, self.pytest = ([str(root / "tools" / "bin" / name)] for name in ("python", "pytest"))
        for name, source in judge_sources().items():
            target = root / "path" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        self.reset()

    def reset(self):
        for folder in (self.workspace, self.root / "tmp", self.root / "home"):
            folder.mkdir(exist_ok=True)
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for name, text in self.files.items():
            target = self.tests / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.reports.mkdir()

    def settings(self, **changes):
        return {
            "stream": str(self.reports / "stream.jsonl"),
            "environment": {"PATH": os.environ["PATH"], "HOME": str(self.root / "home"), "SEEN": "by the tests"},
            "tmpdir": str(self.root / "tmp"),
            "guard": [str(self.workspace), str(self.root / "tmp")],
            "tests": str(self.tests),
            "test_folders": ["."],
            "in_process": False,
            "gate": None,
            "launcher": "slop-run",
            **changes,
        }

    def arguments(self, *further):
        return [
            "-c", os.devnull, f"--rootdir={self.tests}", f"--confcutdir={self.tests}",
            "-p", "slop_code_own_packages", "-p", "slop_code_fixtures", "-p", "slop_code_judge",
            "-p", "no:cacheprovider", "-vv", "--timeout=60",
            "--ctrf=.scbench/ctrf-report.json", "--json-report", "--json-report-file=.scbench/pytest-report.json",
            *further, str(self.tests),
        ]  # fmt: skip

    def environment(self, settings):
        (self.root / "settings.json").write_text(json.dumps(settings))
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.root / "path"),
            "PYTHONSAFEPATH": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTHONHASHSEED": "0",
            SETTINGS_VARIABLE: str(self.root / "settings.json"),
        }

    def request(self, *further, **changes):
        settings = self.settings(**changes)
        return {
            "boxes": None,
            "argv": ["uvx", "--with=pytest", "pytest", *self.arguments(*further)],
            "cwd": str(self.workspace),
            "environment": self.environment(settings),
            "settings": settings,
            "filter": None,
            "file_size": 0,
        }

    def imported(self):
        argv = [*self.python, str(self.root / "path" / "slop_code_imported_template.py")]
        environment = self.environment(self.settings())
        del environment[SETTINGS_VARIABLE]
        return Template(argv, environment, self.workspace, self.root / "template.log")

    def collected(self, *further, prefix=(), **changes):
        """`prefix`: the command of a box around the template."""
        self.reset()
        environment = self.environment(self.settings(**changes))
        argv = [*prefix, *self.pytest, *self.arguments(*further)]
        return Template(argv, environment, self.workspace, self.root / "template.log")

    def cold(self, *further, **changes):
        self.reset()
        environment = self.environment(self.settings(**changes))
        log = self.root / "pytest.log"
        with log.open("wb") as output:
            done = subprocess.run(
                [*self.pytest, *self.arguments(*further)], cwd=self.workspace, env=environment, check=False,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=ANSWER_S,
            )  # fmt: skip
        return self.keep(done.returncode if done.returncode >= 0 else 128 - done.returncode, log)

    def forked(self, template, *further, **changes):
        self.reset()
        log = self.root / "pytest.log"
        return self.keep(template.evaluate(self.request(*further, **changes), log), log)

    def keep(self, exit_code, log):
        self.runs += 1
        folder = self.root / f"out-{self.runs}"
        shutil.copytree(self.reports, folder)
        if log.exists():
            log.rename(folder / "pytest.log")
        return Judged(exit_code, folder)
