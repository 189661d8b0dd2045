"""Judge and subject: what a sandbox has to do, whichever it is."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from slop_code.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from slop_code.execution.process import Completed
    from slop_code.execution.spec import EnvironmentSpec

TESTS_DIR = ".evaluation_tests"
REPORTS_DIR = ".scbench"
BUILT_IN = {
    "none": "slop_code.execution.backends.none:NoSandbox",
    "bubblewrap": "slop_code.execution.backends.bubblewrap:Bubblewrap",
}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Layout:
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

    def place(self, name: str, host: Path) -> str:
        return f"{self.judge}/{name}" if self.judge else str(host)

    @property
    def tests(self) -> str:
        return f"{self.workspace}/{TESTS_DIR}"

    @property
    def reports(self) -> str:
        return f"{self.workspace}/{REPORTS_DIR}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupJob:
    """One command of the subject's set-up: with network, without tests."""

    submission: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    scratch: Path
    """The same folder for all commands; `layer` in it receives what they change in the workspace."""

    subject_env: Path
    """Mounted writable where the subject will find it."""

    timeout: float
    hidden: Sequence[Path] = ()
    """Host paths that stay out of sight, wherever they lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeJob:
    """One run of pytest."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    """Of the judge's process alone; what it hands to the subject is the judge's business."""

    submission: Path | None
    """None: there is no subject, only tests to be collected."""

    layers: Sequence[Path]
    """What set-up left in the workspace, the uppermost first."""

    tests: Path
    shown: Path
    """What of the tests folder the subject sees from the start."""

    reports: Path
    subject_env: Path | None
    files: Mapping[str, Path]
    """The judge's own files and folders, by the names under which `Layout.place` puts them."""

    uv_cache: Path
    scratch: Path
    timeout: float
    hidden: Sequence[Path] = ()
    """Host paths the subject may not see, wherever they lie."""

    @property
    def collecting(self) -> bool:
        """Without a subject the judge may leave compiled tests beside the tests."""
        return self.submission is None


@dataclass(frozen=True, slots=True)
class Judged:
    done: Completed
    isolation: Mapping[str, Any]
    """What was really in force, for the record."""


class Sandbox(Protocol):
    name: str

    def __init__(self, spec: EnvironmentSpec) -> None: ...

    def layout(self, session: Path) -> Layout: ...

    def subject_env(self, path: Path) -> str:
        """Where the subject finds its own environment, which the host keeps at `path`."""

    def missing(self) -> str | None:
        """Why this sandbox cannot work on this machine, with what to do; None when it can."""

    def set_up(self, job: SetupJob) -> Completed: ...

    def judge(self, job: JudgeJob) -> Judged: ...


def sandbox_name(spec: EnvironmentSpec) -> str:
    return "docker" if spec.type == "docker" else "none" if spec.isolation == "none" else "bubblewrap"


def sandbox_for(spec: EnvironmentSpec) -> Sandbox:
    """The sandbox an environment names; loaded late, so that others cost nothing."""
    sandbox = _sandbox_class(sandbox_name(spec), spec)(spec)
    if problem := sandbox.missing():
        raise InfrastructureError(problem)
    return sandbox


def _sandbox_class(name: str, spec: EnvironmentSpec) -> type[Sandbox]:
    """Our own, else one that another package brings under the entry point `slop_code.sandboxes`."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found: type[Sandbox] = getattr(importlib.import_module(module), attribute)
        return found
    from importlib.metadata import entry_points

    for entry in entry_points(group="slop_code.sandboxes", name=name):
        loaded: type[Sandbox] = entry.load()
        return loaded
    raise InfrastructureError(f"environment {spec.name!r}: no sandbox {name!r} in this installation; use -e local")
