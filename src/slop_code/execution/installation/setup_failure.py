"""Set-up failures: whether the submission or the infrastructure is at fault, by evidence."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from slop_code.errors import InfrastructureError, SlopCodeError, SlowSetupError, SubmissionSetupError
from slop_code.execution.installation.install_failure import CauseKind, install_cause
from slop_code.execution.sandbox import UnusableSetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.process import ProcessResult

PROBE_PACKAGE = "iniconfig"
"""Part of the locked test tools, so that every index that slop-code works with has it."""

PROBE_S = 120.0
NOT_FOUND = 127
"""Exit code of a shell that cannot find a program."""

NOT_STARTED = (125, 126, NOT_FOUND)
"""Exit codes of boxes that cannot start the shell."""

PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
"""A word that is a program, and neither a path nor another part of the shell's language."""

INDEX_HAS_NO_SUCH = "was not found in the package registry"
HASH_MISMATCH = "Hash mismatch for"
BUILD_FAILED = "Failed to build"
UNSATISFIABLE = 1
"""Exit code of uv for requirements that cannot be met, and also for some downloads, builds and disks that fail."""

REQUIREMENTS = "{requirements}"
RESOLVED = "{resolved}"
FETCH_FAILED = ("Failed to fetch", "Failed to download")
INCOMPLETE = (*FETCH_FAILED, "has an invalid package format", "No space left on device")
"""Texts of a resolution that did not get the metadata of a package, whatever its exit code."""


class StepKind(Enum):
    TOOL = auto()
    """Nothing of the submission takes part."""

    PACKAGES = auto()
    """Installs packages of the index by well-formed names and versions; no code of the submission runs."""

    OWN_CODE = auto()
    """Code or files of the submission decide what happens."""

    COMMAND = auto()
    """A command of the environment, in the submission's workspace."""


@dataclass(frozen=True, slots=True)
class SetupStep:
    argv: Sequence[str]
    """`{env}` stands for the Python environment, `{tmp}` for the folder of temporary files, `{python}` for the
    submission's interpreter, REQUIREMENTS for a file with requirements, RESOLVED for one with the versions that uv
    chose. Not so in a COMMAND."""

    kind: StepKind
    first: bool = False
    """The first command, so that no code of the submission has run before it."""

    def with_paths(self, paths: Mapping[str, str]) -> SetupStep:
        if self.kind is StepKind.COMMAND:
            return self  # braces are part of the shell's language
        return replace(self, argv=[_with_paths(word, paths) for word in self.argv])

    @property
    def shown(self) -> str:
        return self.argv[-1] if self.kind is StepKind.COMMAND else shlex.join(self.argv)


def _with_paths(word: str, paths: Mapping[str, str]) -> str:
    for name, path in paths.items():
        word = word.replace(name, path)
    return word


class SetupStepError(SlopCodeError):
    """A step failed; nobody has been found at fault yet."""

    def __init__(self, step: SetupStep, done: ProcessResult, timeout: float, disk: str) -> None:
        """`disk` is where set-up writes."""
        limit = f"did not end within the {timeout:g} s of setup.timeout"
        how = limit if done.exit_code is None else f"exited with {done.exit_code}"
        super().__init__(f"`{step.shown}` {how}\n{done.output.strip() or 'it printed nothing'}")
        self.step, self.done, self.disk = step, done, disk

    def as_infrastructure(self, reason: str = "") -> InfrastructureError:
        """With advice, unless code of the submission could have printed what it would be based on."""
        is_own_output = self.step.kind in (StepKind.TOOL, StepKind.PACKAGES) and self.done.exit_code is not None
        cause = install_cause(self.done.output if is_own_output else "")
        advice = cause.advice(disk=self.disk, requirements="the submission's requirements")
        parts = ["set-up", *filter(None, [reason]), f"{advice}\n{self}" if advice else str(self)]
        return InfrastructureError(": ".join(parts))

    def as_verdict(self) -> SubmissionSetupError:
        """Without advice and without a path of this machine; only a package that the index lacks is named."""
        output = self.done.output
        is_resolution = self.step.kind is StepKind.PACKAGES and BUILD_FAILED not in output
        cause = install_cause(output if is_resolution and self.done.exit_code == UNSATISFIABLE else "")
        is_missing = cause.kind in (CauseKind.NO_PACKAGE, CauseKind.NO_VERSION)
        return SubmissionSetupError(f"{cause.fact}\n{self}" if is_missing else str(self))


class SetupProbe(Protocol):
    """New boxes with the settings of the one that failed, without the submission. Nothing of them is kept."""

    def run_without_submission(self, argv: Sequence[str]) -> ProcessResult:
        """Run a command in an empty workspace. Its words may have the names of paths that `SetupStep.argv` has."""

    def resolve_again(self) -> SetupStepError | None:
        """Repeat the steps, but only resolve the packages of the last one. Returns None if that succeeds."""


def is_worth_repeating(error: SetupStepError) -> bool:
    """A download may fail once by chance. The submission can print this too, and gains one more attempt by it."""
    return error.step.kind is not StepKind.TOOL and any(text in error.done.output for text in FETCH_FAILED)


def setup_error(spec: EnvironmentSpec, error: SetupStepError, probe: SetupProbe) -> SlopCodeError:
    """The error to raise.

    A step that would be the submission's fault, and that a time limit ended, is a SlowSetupError.
    """
    reading, kind = spec.setup.on_failure, error.step.kind
    if reading == "infrastructure" or kind is StepKind.TOOL:
        return error.as_infrastructure()
    if reading == "verdict":
        return error.as_verdict()
    reason = _package_failure(error, probe) if kind is StepKind.PACKAGES else _missing_program(spec, error, probe)
    reason = reason or (_disk_failure(spec, probe) if spec.interpreter() is None else _index_failure(probe))
    if reason is not None:
        return error.as_infrastructure(reason)
    return SlowSetupError(str(error)) if error.done.exit_code is None else error.as_verdict()


def damaged_environment(spec: EnvironmentSpec, steps: Sequence[SetupStep], damage: ValueError) -> SlopCodeError:
    """The error to raise where all steps succeeded, and the environment that they made cannot be used."""
    reason = f"the set-up succeeded, and left no usable environment: {damage}"
    reading = spec.setup.on_failure
    could_cause_it = any(step.kind in (StepKind.OWN_CODE, StepKind.COMMAND) for step in steps)
    # Any other damage is that of a container engine's own objects, which no submission can reach.
    if not isinstance(damage, UnusableSetupError) or not could_cause_it or reading == "infrastructure":
        return InfrastructureError(f"set-up: {reason}")
    return SlowSetupError(reason) if damage.late and reading != "verdict" else SubmissionSetupError(reason)


def _package_failure(error: SetupStepError, probe: SetupProbe) -> str | None:
    """Why packages that may well exist could not be installed; None if the submission asks for what there is not.

    No code of the submission itself runs in such a step. Builds of packages from the index may run, and could print
    any text that is looked for here: the index is trusted not to have packages that do so.
    """
    if error.done.exit_code != UNSATISFIABLE:
        return "uv was kept from installing the packages"
    if HASH_MISMATCH in error.done.output:
        return None  # the index has the package, but with another content than the submission demands
    if BUILD_FAILED in error.done.output and not any(text in error.done.output for text in INCOMPLETE):
        return None  # a package that nobody can install here; whoever may choose one could avoid every verdict
    again = probe.resolve_again()
    if again is None:
        return "the packages can be resolved, but not installed"
    is_resolution = again.step.kind is StepKind.PACKAGES and again.done.exit_code == UNSATISFIABLE
    if not is_resolution or any(text in again.done.output for text in INCOMPLETE):
        return "uv was kept from resolving the packages again"
    return None


def _missing_program(spec: EnvironmentSpec, error: SetupStepError, probe: SetupProbe) -> str | None:
    """A command of the environment whose program, or shell, is nowhere is a mistake in the environment.

    A build can exit with this code too. So it counts only if the command begins with the name of a program that a box
    without the submission lacks. A later command may need what an earlier one installed, or code of the submission
    removed.
    """
    if not error.step.first or error.done.exit_code not in NOT_STARTED:
        return None
    shell = spec.local.shell or "/bin/sh"
    if probe.run_without_submission([shell, "-c", ":"]).exit_code != 0:
        return f"the shell {shell} does not run in this environment"
    if error.done.exit_code != NOT_FOUND:
        return None
    try:
        word = shlex.split(error.step.argv[-1])[0]
    except (ValueError, IndexError):
        return None
    if not PROGRAM.fullmatch(word):
        return None
    done = probe.run_without_submission([shell, "-c", 'command -v -- "$1"', "sh", word])
    return None if done.exit_code == 0 else f"{word} is not installed in this environment"


def _index_failure(probe: SetupProbe) -> str | None:
    """Why the index gives no answer, or None if it does. It is asked for a package that is known to exist."""
    install = ["uv", "pip", "install", "--no-config", "--no-cache", "--no-deps", "--python", "{python}"]
    done = probe.run_without_submission([*install, "--target", "{tmp}/probe", PROBE_PACKAGE])
    if done.exit_code == 0 or INDEX_HAS_NO_SUCH in done.output:
        return None
    how = f"within {PROBE_S:g} s" if done.exit_code is None else f"for {PROBE_PACKAGE}: {done.output.strip()[-500:]}"
    return f"the package index gives no answer {how}"


def _disk_failure(spec: EnvironmentSpec, probe: SetupProbe) -> str | None:
    """Why nothing can be written; None if it can. Other languages do not depend on the index of Python packages."""
    done = probe.run_without_submission([spec.local.shell or "/bin/sh", "-c", "printf %1000000s > probe"])
    return None if done.exit_code == 0 else f"a box without the submission cannot write: {done.output.strip()[-500:]}"
