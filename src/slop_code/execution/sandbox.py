"""Judge and subject: what a sandbox has to do, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from slop_code.errors import InfrastructureError
from slop_code.execution.entry_points import plugin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.process import ProcessResult
    from slop_code.execution.progress_events import ProgressCallback

TESTS_DIR = ".evaluation_tests"
REPORTS_DIR = ".scbench"
BUILT_IN = {
    "none": "slop_code.execution.unsandboxed:Unsandboxed",
    "bubblewrap": "slop_code.execution.bubblewrap.boxes:BubblewrapSandbox",
    "docker": "slop_code.execution.docker.docker_sandbox:DockerSandbox",
}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class BoxLayout:
    """Where things are, as the tests and the submission see them."""

    workspace: str
    tmp: str
    home: str
    """The same name in both boxes, and a folder of its own in each: programs obey what lies in their home."""

    tools: str
    """A folder with uv, for the subject's PATH."""

    launcher: tuple[str, ...] = ()
    """Comes before every command of the subject."""

    judge: str | None = None
    """Where the judge's own files appear: apart from any folder the subject can rename; None: where they are."""

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
    """The tests' locked environment, ready to be run without network."""

    kept: Path
    """Its folder in the cache: the constraints, and whatever the sandbox needs to find the rest."""

    python: str
    """The judge's interpreter, where the judge finds it."""

    python_version: str
    versions: Mapping[str, str]

    @property
    def constraints(self) -> Path:
        return self.kept / "requirements.txt"


@dataclass(frozen=True, slots=True)
class PreparedSubject:
    """What set-up made for a submission."""

    kept: Path | None = None
    """A folder in the cache, in the sandbox's own form; None: there was nothing to do."""

    workspace: bool = False
    """Whether the workspace, too, is as set-up left it."""

    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupJob:
    """The subject's set-up: with network, without tests."""

    submission: Path
    environment: Mapping[str, str]
    scratch: Path
    """What is left here becomes `PreparedSubject.kept`."""

    keep_workspace: bool
    hidden: Sequence[Path] = ()
    """Host paths that stay out of sight, wherever they lie."""


class SetupBox(Protocol):
    """Where set-up runs, one command after the other."""

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult: ...


class ToolBuilder(Protocol):
    """Where uv makes the tests' environment, for the interpreter that the judge will have."""

    folder: str
    """Where uv may make things that are not kept."""

    def put(self, name: str, text: str) -> str:
        """A file for uv to read; where uv finds it."""

    def python(self) -> tuple[str, str]:
        """Where the judge finds its interpreter, and its version."""

    def uv(self, tool: str, arguments: Sequence[str]) -> str:
        """What `uv` or `uvx` printed on its standard output; an infrastructure failure unless it succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeJob:
    """One run of pytest."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    """Of the judge's process alone; what it hands to the subject is the judge's business."""

    submission: Path | None
    """None: there is no subject, only tests to be collected."""

    subject: PreparedSubject
    tests: Path
    shown: Path
    """What of the tests folder the subject sees from the start."""

    reports: Path
    tools: Path
    """`ToolEnvironment.kept`."""

    files: Mapping[str, Path]
    """The judge's own files and folders, by the names under which `BoxLayout.judge_path` puts them."""

    scratch: Path
    timeout: float
    hidden: Sequence[Path] = ()
    """Host paths the subject may not see, wherever they lie."""

    interactive: bool = False
    """The judge reads the evaluator's standard input."""

    @property
    def collecting(self) -> bool:
        """Without a subject the judge may leave compiled tests beside the tests."""
        return self.submission is None


@dataclass(frozen=True, slots=True)
class JudgeResult:
    done: ProcessResult
    isolation: Mapping[str, Any]
    """What was really in force, for the record."""


class Sandbox(Protocol):
    name: str

    def __init__(self, spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback) -> None: ...

    def unavailable_reason(self) -> str | None:
        """Why this sandbox cannot work on this machine, with what to do; None when it can."""

    def image(self) -> str | None:
        """The digest of the image both boxes are made of, where there is one."""

    def identity(self) -> Sequence[object]:
        """What everything that is made here once and kept depends on: interpreter, machine, image."""

    def layout(self, session: Path) -> BoxLayout: ...

    def variables(self) -> Mapping[str, str]:
        """What programs find in their environment before anything of ours."""

    def subject_env(self, kept: Path) -> str:
        """Where the subject finds its own environment, which `kept` holds."""

    def subject_python(self) -> str:
        """The interpreter for that environment, as uv is to be told."""

    def tool_builder(self, scratch: Path) -> AbstractContextManager[ToolBuilder]: ...

    def setup_box(self, job: SetupJob) -> AbstractContextManager[SetupBox]:
        """What was done in it is kept when the block ends well."""

    def check_tools(self, kept: Path) -> None:
        """A ValueError when what the tool_builder made is gone or damaged."""

    def check_subject(self, kept: Path) -> None:
        """A ValueError when what the setup_box made is gone or damaged."""

    def judge(self, job: JudgeJob) -> JudgeResult: ...


def launcher_settings(layout: BoxLayout, output: int) -> str:
    """What `slopbox run` reads before each call."""
    return f"tests={layout.tests}\nworkspace={layout.workspace}\noutput={output}\n"


def sandbox_name(spec: EnvironmentSpec) -> str:
    return "docker" if spec.type == "docker" else "none" if spec.isolation == "none" else "bubblewrap"


def sandbox_for(spec: EnvironmentSpec, cache: Cache, progress: ProgressCallback = lambda _: None) -> Sandbox:
    """The sandbox an environment names; loaded late, so that others cost nothing."""
    sandbox = _sandbox_class(sandbox_name(spec), spec)(spec, cache, progress)
    if reason := sandbox.unavailable_reason():
        raise InfrastructureError(reason)
    return sandbox


def _sandbox_class(name: str, spec: EnvironmentSpec) -> type[Sandbox]:
    """Our own, else one that another package brings under the entry point `slop_code.sandboxes`."""
    found: type[Sandbox] | None = plugin("slop_code.sandboxes", name, BUILT_IN)
    if found is not None:
        return found
    raise InfrastructureError(f"environment {spec.name!r}: no sandbox {name!r} in this installation; use -e local")
