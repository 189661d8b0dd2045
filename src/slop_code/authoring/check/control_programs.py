"""Control programs: submissions that solve nothing, so that tests must fail with them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.authoring.check.workbench import EvaluationRequest
from slop_code.execution.environment import SetupSpec

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.evaluation.config import CheckpointConfig, ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec

COMMAND = "sh"


@dataclass(frozen=True, slots=True)
class ControlProgram:
    name: str
    about: str
    """A phrase for messages."""

    script: str | None = None
    """A shell script, since every environment has a shell; None stands for no file at all."""

    fails: bool = False
    """True where its exit status is not 0."""

    def environment(self, spec: EnvironmentSpec) -> EnvironmentSpec:
        """The environment without set-up; the command changes to `sh` where there is a script."""
        command = {} if self.script is None else {"command": COMMAND}
        commands = spec.commands.model_copy(update=command)
        return spec.model_copy(update={"commands": commands, "setup": SetupSpec(timeout=spec.setup.timeout)})

    def write(self, folder: Path, problem: ProblemConfig, spec: EnvironmentSpec) -> Path:
        """Writes the submission to a new subfolder."""
        submission = folder / self.name
        submission.mkdir(parents=True)
        entry = os.path.normpath(spec.entry(problem.entry_file)[-1])
        if self.script is not None and not entry.startswith(("/", "..")):
            path = submission / entry
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.script, encoding="utf-8")
        return submission

    def request(
        self,
        problem: ProblemConfig,
        spec: EnvironmentSpec,
        checkpoint: CheckpointConfig,
        folder: Path,
        only: tuple[str, ...] | None = None,
    ) -> EvaluationRequest:
        submission = self.write(folder, problem, spec)
        return EvaluationRequest(checkpoint, submission, environment=self.environment(spec), only=only)


def _failing(status: int) -> str:
    return f'echo "error: this cannot be done" >&2\nexit {status}\n'


CONTROLS = (
    ControlProgram("empty", "a submission without files", fails=True),
    ControlProgram("silent", "a program that prints nothing and ends with status 0", "exit 0\n"),
    ControlProgram(
        "echo", "a program that prints its arguments and standard input", '[ $# -eq 0 ] || printf "%s\\n" "$*"\ncat\n'
    ),
    ControlProgram("fails-1", "a program that always fails with a message and status 1", _failing(1), fails=True),
    ControlProgram("fails-2", "a program that always fails with a message and status 2", _failing(2), fails=True),
)
CRASH = ControlProgram(
    "crash",
    "a program that prints another traceback each time and ends with status 99",
    'text="Traceback (most recent call last): process $$"\necho "$text"\necho "$text" >&2\nexit 99\n',
    fails=True,
)
"""Only for the step strength: a test may check only that no traceback is printed, or that output is the same twice."""

PREVIOUS = "previous"
"""The control that is the reference of the previous checkpoint."""
