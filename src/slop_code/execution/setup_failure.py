"""Set-up failures: whether the submission or the infrastructure is at fault, by evidence."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError, SlopCodeError, SlowSetupError, SubmissionSetupError
from slop_code.execution.sandbox import UnusableSetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from slop_code.execution.process import ProcessResult
    from slop_code.execution.sandbox import Sandbox

PROBE_PACKAGE = "iniconfig"
"""Part of the locked test tools, so that every index that slop-code works with has it."""

PROBE_S = 120.0
NOT_FOUND = 127
"""Exit code of a shell that cannot find a program."""

PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
"""A word that is a program, and neither a path nor another part of the shell's language."""

INDEX_HAS_NO_SUCH = "was not found in the package registry"
NO_PYTHON = "No interpreter found"
UNSATISFIABLE = 1
"""Exit code of uv for requirements that cannot be met. For all that keeps it from finding out, it is 2."""

REQUIREMENTS = "{requirements}"
FETCH_FAILED = "Failed to fetch"


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
    """`{env}` stands for the Python environment, `{tmp}` for the folder of temporary files, REQUIREMENTS for the file
    with requirements that were read from a lock."""

    kind: StepKind
    first: bool = False
    """The first command, so that no code of the submission has run before it."""

    def with_paths(self, paths: Mapping[str, str]) -> SetupStep:
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

    def __init__(self, step: SetupStep, done: ProcessResult, timeout: float) -> None:
        limit = f"did not end within the {timeout:g} s of setup.timeout"
        how = limit if done.exit_code is None else f"exited with {done.exit_code}"
        super().__init__(f"`{step.shown}` {how}\n{done.output.strip() or 'it printed nothing'}")
        self.step, self.done = step, done


def is_worth_repeating(error: SetupStepError) -> bool:
    """A download may fail once by chance. The submission can print this too, and gains one more attempt by it."""
    return error.step.kind is not StepKind.TOOL and FETCH_FAILED in error.done.output


def setup_error(
    sandbox: Sandbox, error: SetupStepError, probe: Callable[[Sequence[str]], ProcessResult]
) -> SlopCodeError:
    """The error to raise. `probe` runs a command in a new box of the same kind, without the submission.

    A step that would be the submission's fault, and that a time limit ended, is a SlowSetupError.
    """
    reading, kind = sandbox.spec.setup.on_failure, error.step.kind
    ours = InfrastructureError(f"set-up: {error}")
    if reading == "infrastructure" or kind is StepKind.TOOL:
        return ours
    if reading == "verdict":
        return SubmissionSetupError(str(error))
    if kind is StepKind.PACKAGES and error.done.exit_code != UNSATISFIABLE:
        return ours
    reason = _missing_program(sandbox, error, probe) or _index_failure(sandbox, probe)
    if reason is not None:
        return InfrastructureError(f"set-up: {reason}: {error}")
    return SlowSetupError(str(error)) if error.done.exit_code is None else SubmissionSetupError(str(error))


def damaged_environment(sandbox: Sandbox, steps: Sequence[SetupStep], damage: ValueError) -> SlopCodeError:
    """The error to raise where all steps succeeded, and the environment that they made cannot be used."""
    reason = f"the set-up succeeded, and left no usable environment: {damage}"
    reading = sandbox.spec.setup.on_failure
    could_cause_it = any(step.kind in (StepKind.OWN_CODE, StepKind.COMMAND) for step in steps)
    # Any other damage is that of a container engine's own objects, which no submission can reach.
    if not isinstance(damage, UnusableSetupError) or not could_cause_it or reading == "infrastructure":
        return InfrastructureError(f"set-up: {reason}")
    return SlowSetupError(reason) if damage.late and reading != "verdict" else SubmissionSetupError(reason)


def _missing_program(
    sandbox: Sandbox, error: SetupStepError, probe: Callable[[Sequence[str]], ProcessResult]
) -> str | None:
    """A command of the environment whose program is nowhere is a mistake in the environment.

    A build can exit with this code too. So it counts only if the command begins with the name of a program that a box
    without the submission lacks. A later command may need what an earlier one installed, or code of the submission
    removed.
    """
    if not error.step.first or error.done.exit_code != NOT_FOUND:
        return None
    try:
        word = shlex.split(error.step.argv[-1])[0]
    except (ValueError, IndexError):
        return None
    if not PROGRAM.fullmatch(word):
        return None
    shell = sandbox.spec.local.shell or "/bin/sh"
    done = probe([shell, "-c", 'command -v -- "$1"', "sh", word])
    return None if done.exit_code == 0 else f"{word} is not installed in this environment"


def _index_failure(sandbox: Sandbox, probe: Callable[[Sequence[str]], ProcessResult]) -> str | None:
    """Why the index gives no answer; None: it does. It is asked for a package that is known to exist."""
    install = ["uv", "pip", "install", "--no-config", "--no-cache", "--no-deps", "--python", sandbox.subject_python()]
    done = probe([*install, "--target", "{tmp}/probe", PROBE_PACKAGE])
    if done.exit_code == 0 or INDEX_HAS_NO_SUCH in done.output:
        return None
    if sandbox.spec.interpreter() is None and NO_PYTHON in done.output:
        return None  # an image without Python: its commands do not depend on this index
    how = f"within {PROBE_S:g} s" if done.exit_code is None else f"for {PROBE_PACKAGE}: {done.output.strip()[-500:]}"
    return f"the package index gives no answer {how}"
