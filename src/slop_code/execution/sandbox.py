"""Sandbox protocol, the records that travel through it, and the registry of sandboxes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from slop_code.errors import ConfigError, InfrastructureError
from slop_code.execution.entry_points import load_plugin, plugin_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec, Limits
    from slop_code.execution.process import ProcessResult
    from slop_code.execution.progress_events import ProgressCallback
    from slop_code.execution.templates import TemplatePool

TESTS_DIR = ".evaluation_tests"
REPORTS_DIR = ".scbench"
LOG = "pytest.log"
SUBJECT_BOX_ENDED = 124
"""Exit code of a judge whose subject's box ended first."""

ENTRY_POINTS = "slop_code.sandboxes"
"""Entry points of other packages, each a class that fulfils `Sandbox`; selected by `isolation: <name>`."""

BUILT_IN = {
    "none": "slop_code.execution.unsandboxed:Unsandboxed",
    "bubblewrap": "slop_code.execution.bubblewrap.bubblewrap_sandbox:BubblewrapSandbox",
    "docker": "slop_code.execution.docker.docker_sandbox:DockerSandbox",
}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class BoxLayout:
    """The boxes as the tests and the submission see them: paths, and processors."""

    workspace: str
    tmp: str
    home: str
    """The same path in both boxes, but a folder of its own in each, since programs obey files in their home."""

    tools: str
    """A folder with uv, for the subject's PATH."""

    launcher: str = ""
    """Name of the launcher, a command of the judge's box; empty if judge and subject share one box."""

    judge: str | None = None
    """Folder of the judge's own files, outside of any folder that the subject can rename; None for their host paths."""

    gate: str | None = None
    """Socket of `slopbox serve`, as the judge sees it, or None if nothing measures the subject's processes."""

    cpus: float | None = None
    """Processors that the subject may use at a time, or None for as many as there are."""

    def entrypoint(self, argv: Sequence[str]) -> list[str]:
        """The command for the tests; `argv` starts the submission in the subject's box.

        The launcher takes the place of the first word, so that no other word changes its position.
        """
        command, *rest = argv
        return [self.launcher or command, *(rest or [command] if self.launcher else rest)]

    def judge_path(self, name: str, host: Path) -> str:
        return f"{self.judge}/{name}" if self.judge else str(host)

    @property
    def tests(self) -> str:
        return f"{self.workspace}/{TESTS_DIR}"

    @property
    def reports(self) -> str:
        return f"{self.workspace}/{REPORTS_DIR}"


@dataclass(frozen=True, slots=True)
class ToolEnvironment:
    """The tests' locked environment, which needs no network any more."""

    entry: Path
    """Its cache entry: the constraints, and whatever the sandbox needs to find the rest."""

    python: str
    """Path of the judge's interpreter, as the judge sees it."""

    python_version: str
    versions: Mapping[str, str]
    resolved: str | None = None
    """The day on which packages of a problem without a lock were resolved."""

    @property
    def constraints(self) -> Path:
        return self.entry / "requirements.txt"


@dataclass(frozen=True, slots=True)
class PreparedSubject:
    """A submission's environment, as set-up left it."""

    entry: Path | None = None
    """Its cache entry, in a form that only the sandbox knows, or None if there was nothing to set up."""

    has_workspace: bool = False
    """Set-up changed the workspace too, and the entry has it."""

    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupJob:
    """The set-up of one submission, as a sandbox gets it: with network, without tests."""

    submission: Path
    environment: Mapping[str, str]
    scratch: Path
    """Becomes `PreparedSubject.entry`."""

    keep_workspace: bool
    hidden: Sequence[Path] = ()
    """Host paths that the submission must not see."""

    discard: bool = False
    """Nothing of it is kept."""


class UnusableSetupError(ValueError):
    """The set-up left content that cannot be used, such as a workspace that is too large."""

    def __init__(self, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late
        """A time limit struck: on a machine that is not busy, the content may be usable."""


class SetupBox(Protocol):
    """A box that runs the set-up commands of a submission in sequence."""

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult: ...

    def put(self, name: str, text: str) -> str:
        """Write a file into the box before any command runs, and return its path there."""


class ToolBuilder(Protocol):
    """An environment of uv, which builds the environment of the test tools for the judge's interpreter."""

    folder: str
    """Temporary folder of uv."""

    def put(self, name: str, text: str) -> str:
        """Write a file for uv, and return its path as uv sees it."""

    def python(self) -> tuple[str, str]:
        """Path of the judge's interpreter as the judge sees it, and its version."""

    def uv(self, tool: str, arguments: Sequence[str]) -> str:
        """The standard output of `uv` or `uvx`; an infrastructure failure unless the exit code is 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSpec:
    """A judge template, as the evaluation asks for it."""

    kind: str
    """An `imported` template has the test tools in memory. A `collected` one has the tests of one checkpoint, too."""

    key: str
    """Digest of everything that the template depends on."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    settings: str
    """The content of its `settings.json`."""

    timeout: float
    """Seconds until it must be ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmJudge:
    """Templates from which a judge may be forked, the best one first."""

    pool: TemplatePool
    specs: Sequence[TemplateSpec]
    check: Callable[[], None]
    """Raises an error if the staged tests or the test tools were damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One run of the judge, as the evaluation asks a session for it: independent of sandbox and submission."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    """Of the judge's process alone; the judge decides what the subject gets of it."""

    tests: Path
    shown: Path
    """The part of the tests folder that the subject sees from the start."""

    reports: Path
    tools: Path
    """`ToolEnvironment.entry`."""

    files: Mapping[str, Path]
    """The judge's own files and folders, by the names that `BoxLayout.judge_path` takes."""

    timeout: float
    entrypoint: Sequence[str] = ()
    """The argv that starts the submission in the subject's box."""

    test_code: Sequence[str] = ()
    """Files of the tests, relative to their folder, that no call hands over to the subject."""

    assumed_code: Collection[str] = ()
    """Those of them of which it is not known whether the tests load them."""

    interactive: bool = False
    """The judge reads the evaluator's standard input."""

    warm: WarmJudge | None = None
    """If it is None, or the sandbox has no templates, the judge is started anew."""


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """One run of the judge, as a sandbox gets it: the request, the submission and the scratch folder of the session."""

    request: JudgeRequest
    submission: Path | None
    """It is None if there is no subject, only tests to be collected."""

    subject: PreparedSubject
    scratch: Path
    hidden: Sequence[Path] = ()
    """Host paths that the subject must not see."""

    @property
    def collecting(self) -> bool:
        """Without a subject the judge may write bytecode next to the tests."""
        return self.submission is None

    @property
    def log(self) -> Path:
        return self.request.reports / LOG


@dataclass(frozen=True, slots=True)
class JudgeResult:
    done: ProcessResult
    isolation: Mapping[str, Any]
    """Isolation that was in effect, for the result."""

    reached_memory_limit: bool = False
    """The kernel killed a process of the subject's box because of the box's own memory limit.

    In containers it is only known if the box ended.
    """


class Sandbox(Protocol):
    """Two boxes of the same kind; `host_sandbox.HostSandbox` has most of it for sandboxes on this machine itself."""

    name: str
    spec: EnvironmentSpec
    cache: Cache
    progress: ProgressCallback

    def __init__(self, spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback) -> None: ...

    def unavailable_reason(self) -> str | None:
        """Why this sandbox cannot work on this machine, with what to do; None when it can."""

    def image(self) -> str | None:
        """Digest of the image that both boxes are made of; None without images."""

    @property
    def disk(self) -> str:
        """Folder whose disk everything is installed on, for a message."""

    def identity(self) -> Sequence[object]:
        """Part of the key of every cache entry made here: the judge's interpreter, machine, image."""

    def subject_identity(self) -> Sequence[object]:
        """The same for set-up results, with the submission's interpreter."""

    def layout(self, session: Path) -> BoxLayout: ...

    def variables(self) -> Mapping[str, str]:
        """Environment variables that programs have before any of ours."""

    def subject_env(self, entry: Path) -> str:
        """Path of the Python environment in this cache entry, as the subject sees it."""

    def subject_python(self) -> str:
        """The interpreter for that environment, as an argument of uv. Raises ConfigError if none fits the request."""

    def subject_version(self) -> str | None:
        """Version of that interpreter, or None if there is no Python."""

    def tool_builder(self, scratch: Path) -> AbstractContextManager[ToolBuilder]: ...

    def setup_box(self, job: SetupJob) -> AbstractContextManager[SetupBox]:
        """Its results are kept when the block ends without an error, unless the job says that they are discarded.

        Raises UnusableSetupError at the end of the block where results cannot be kept because of their content.
        """

    def check_tools(self, entry: Path) -> None:
        """Raise ValueError when what the tool builder made is gone or damaged."""

    def check_subject(self, entry: Path) -> None:
        """Raise ValueError when what the set-up box made is gone; UnusableSetupError when its content is damaged."""

    def judge(self, job: JudgeJob) -> JudgeResult: ...


def launcher_settings(layout: BoxLayout, request: JudgeRequest, limits: Limits) -> bytes:
    """The file that the launcher reads before each call."""
    command, entry = request.entrypoint[:-1], request.entrypoint[-1:]
    settings = {
        "tests": layout.tests, "workspace": layout.workspace, "command": "".join(command[:1]), "entry": "".join(entry),
        "memory": limits.memory, "processes": limits.processes, "output": limits.output,
    }  # fmt: skip
    code = [("assumed" if file in request.assumed_code else "code", file) for file in request.test_code]
    lines = [*settings.items(), *code]
    return os.fsencode("".join(f"{name}={value}\0" for name, value in lines))


def sandbox_name(spec: EnvironmentSpec) -> str:
    """`isolation` names a sandbox of another package; `strict` is the sandbox of the environment's type."""
    if spec.isolation not in ("strict", "none"):
        return spec.isolation
    return "docker" if spec.type == "docker" else "none" if spec.isolation == "none" else "bubblewrap"


def sandbox_for(spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback = lambda _: None) -> Sandbox:
    """Only the module of this sandbox is imported."""
    sandbox = _sandbox_class(sandbox_name(spec), spec)(spec, cache, progress)
    if reason := sandbox.unavailable_reason():
        raise InfrastructureError(reason)
    return sandbox


def _sandbox_class(name: str, spec: EnvironmentSpec) -> type[Sandbox]:
    sandbox: type[Sandbox] | None = load_plugin(ENTRY_POINTS, name, BUILT_IN)
    if sandbox is not None:
        return sandbox
    installed = ", ".join(["strict", "none", *plugin_names(ENTRY_POINTS)])
    raise ConfigError(f"environment {spec.name!r}: isolation: found {name!r}, expected one of {installed}")
