"""Environment files: the sandbox, set-up, commands and limits of submissions."""

from __future__ import annotations

import os
import re
import shlex
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo, field_validator

from slop_code._arguments import check_path
from slop_code._io import digest_of
from slop_code._suggestions import did_you_mean
from slop_code._yaml import ChoiceError, Environment, FileModel, Text, load_yaml_model
from slop_code.errors import UsageError
from slop_code.execution.docker.extra_mounts import extra_mounts, is_free
from slop_code.execution.entry_points import plugin_names
from slop_code.execution.python_version import PythonRequest, combined_request
from slop_code.execution.sandbox import ENTRY_POINTS as SANDBOXES

_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*(?:([KMG])(?:I?B)?|B)?", re.IGNORECASE)
_MULTIPLES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PLACEHOLDER = "{entry_file}"

JUDGE_FILE_SIZE = 1 << 30
"""Bytes of any file that the judge writes, in every sandbox."""

SETUP_FILE_SIZE = 2 << 30
"""Of any file that set-up writes: packages have libraries of more than 1 GiB."""

MAX_WORKSPACE = 2 << 30
"""Bytes of a submission's workspace, as set-up left it, where it is copied into memory for the tests."""

HANDED_SIZE = 1 << 30
"""Bytes of all files that tests hand over; they do not count against the subject's disk limit."""

SETUP_MEMORY = 8 << 30
SETUP_PROCESSES = 1000
MIN_INODES = 10_000


def parse_size(value: Any) -> int:
    """Bytes of a size that is given as a number or as text, such as `512M` or `1.5 GiB`; multiples are binary."""
    size: float | Fraction = 0
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        size = Fraction(match[1]) * _MULTIPLES[(match[2] or "").upper()]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        size = value
    if not 1 <= size < 1 << 63:
        raise ValueError("a size such as 512M or 1G")
    return int(size)


def _mounts(value: Any) -> Any:
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, dict) or (isinstance(entry, str) and entry is not value) for entry in entries):
        raise ValueError("a list or a mapping of mounts")
    extra_mounts(value)
    return value


def _workdir(value: str) -> str:
    if not is_free(value):
        raise ValueError("an absolute folder that is not the system's, such as /workspace")
    return value


def _isolation(value: str) -> str:
    names = ["strict", "none"]
    if value not in names and value not in (names := [*names, *plugin_names(SANDBOXES)]):
        raise ChoiceError(names)
    return value


def _shell_command(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a command line without NUL")
    return value


def _command_line(value: Any) -> Any:
    if isinstance(_shell_command(value), str):
        try:
            shlex.split(value)
        except ValueError as error:
            raise ValueError("a command line with its quotes closed") from error
    return value


Size = Annotated[int, BeforeValidator(parse_size)]
Mounts = Annotated[list[str | dict[str, Any]] | dict[str, Any], PlainValidator(_mounts)]
Seconds = Annotated[float, Field(ge=0.001, le=7 * 24 * 3600, allow_inf_nan=False)]
CommandLine = Annotated[str, BeforeValidator(_command_line)]
ShellCommand = Annotated[str, BeforeValidator(_shell_command)]


class DockerSpec(FileModel):
    image: str = Field(min_length=1)
    binary: str = "docker"
    workdir: Annotated[str, AfterValidator(_workdir)] = "/workspace"
    mount_workspace: bool = True
    extra_mounts: Mounts = Field(default_factory=dict)
    network: str | None = None
    user: Text | None = None
    runtime: Annotated[str, Field(min_length=1)] | None = None
    """For set-up and the submission, or None for the engine's default, which the tests always have."""


class VariablesSpec(FileModel):
    env: Environment = Field(default_factory=dict)
    include_os_env: bool = False


class SetupSpec(FileModel):
    commands: list[ShellCommand] = Field(default_factory=list)
    eval_commands: list[ShellCommand] = Field(default_factory=list)
    resume_commands: list[ShellCommand] = Field(default_factory=list)
    timeout: Seconds = 300.0
    """Seconds for all of set-up, the subject's Python environment included."""

    on_failure: Literal["evidence", "verdict", "infrastructure"] = "evidence"
    """Whose fault a failure of set-up is: found out by evidence, always the submission's, or never."""


class TimeoutsSpec(FileModel):
    """Seconds; that of set-up is `setup.timeout`. None stands for the problem's own timeout, or for none at all."""

    image: Seconds = 3600.0
    """For pulling the image."""

    tools: Seconds = 900.0
    """For each step of installing the test tools."""

    collection: Seconds = 120.0
    """For collecting the tests."""

    test: Seconds | None = None
    """For each test, instead of the problem's `timeout`."""

    session: Seconds | None = None
    """For pytest as a whole, instead of the problem's `session_timeout`."""

    evaluation: Seconds | None = None
    """For the whole evaluation, from installing the test tools to reading the reports."""


class CommandsSpec(FileModel):
    entry_file: str = Field(default=f"{_PLACEHOLDER}.py", min_length=1)
    command: CommandLine = "python"
    agent_command: str | None = None


class SnapshotSpec(FileModel):
    keep_globs: list[str] = Field(default_factory=list)
    ignore_globs: list[str] = Field(default_factory=list)
    compression: str | None = None
    archive_save_dir: str | None = None


class LocalSpec(FileModel):
    requires_tty: bool = False
    shell: str | None = None


class Limits(FileModel):
    """Limits of the submission while the tests run; sizes in bytes."""

    memory: Annotated[Size, Field(ge=1 << 20)] = 1 << 30
    cpus: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    processes: int = Field(default=256, ge=1)
    disk: Size = 200 << 20
    output: Size = 32 << 20


class EnvironmentSpec(FileModel):
    type: Literal["docker", "local"]
    name: str = Field(min_length=1)
    description: str = ""
    docker: DockerSpec | None = Field(default=None, validate_default=True)
    local: LocalSpec = Field(default_factory=LocalSpec)
    environment: VariablesSpec = Field(default_factory=VariablesSpec)
    setup: SetupSpec = Field(default_factory=SetupSpec)
    commands: CommandsSpec = Field(default_factory=CommandsSpec)
    snapshot: SnapshotSpec = Field(default_factory=SnapshotSpec)
    isolation: Annotated[str, AfterValidator(_isolation)] = "strict"
    """`strict` for the sandbox of this type, `none`, or the name of a sandbox of another package."""

    python: PythonRequest | None = None
    """Version or range of the submission's Python."""

    limits: Limits = Field(default_factory=Limits)
    timeouts: TimeoutsSpec = Field(default_factory=TimeoutsSpec)
    network: Literal["none", "full"] = "none"
    """While the tests run; set-up always has network."""

    @field_validator("docker")
    @classmethod
    def _docker_needs_an_image(cls, value: DockerSpec | None, info: ValidationInfo) -> DockerSpec | None:
        if value is None and info.data.get("type") == "docker":
            raise ValueError("a mapping with at least image, as type is docker")
        return value

    @classmethod
    def from_yaml(cls, path: Path | str) -> EnvironmentSpec:
        return load_yaml_model(check_path("path", path, "the path of an environment file"), cls)

    def entry(self, entry_file: str) -> list[str]:
        """The argv that starts a submission; a suffix that the problem's entry_file has already is not added again."""
        template = self.commands.entry_file
        suffix = template.rpartition(_PLACEHOLDER)[2] if _PLACEHOLDER in template else ""
        file = template.replace(_PLACEHOLDER, entry_file.removesuffix(suffix))
        command = shlex.split(self.commands.command)
        if not command and "/" not in file:
            file = f"./{file}"
        return [*command, file]

    def interpreter(self) -> str | None:
        """The Python that runs a submission, as the command names it; None for other languages."""
        words = self.entry("x")
        if self.runs_uv():
            return "python"
        return words[0] if os.path.basename(words[0]).startswith("python") else None

    def runs_uv(self) -> bool:
        """Whether the command is `uv run`."""
        words = self.entry("x")
        return os.path.basename(words[0]) == "uv" and words[1:2] == ["run"]

    def requiring(self, python: str | None) -> EnvironmentSpec:
        """The same environment for a checkpoint that requires this version of Python too."""
        return self if python is None else self.model_copy(update={"python": combined_request([self.python, python])})

    def python_request(self) -> str | None:
        """The Python that the environment asks for, also by a command such as `python3.12`, or None for any."""
        word = self.interpreter()
        if word is None:
            return None
        named = re.fullmatch(r"python(3\.[0-9]{1,5})", os.path.basename(word))
        return combined_request([self.python, named[1] if named and "/" not in word else None])

    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json", exclude={"description"}))


def check_environment(environment: Any) -> Path:
    """Raises UsageError for an argument of another type."""
    return check_path("environment", environment, "the name of an environment or the path of its file")


def shipped_environments() -> dict[str, str]:
    return {name: EnvironmentSpec.from_yaml(path).description for name, path in sorted(_shipped().items())}


def load_environment(name_or_path: str | Path) -> EnvironmentSpec:
    """A shipped environment by its name, or any other by its path."""
    return EnvironmentSpec.from_yaml(environment_file(name_or_path))


def environment_file(name_or_path: str | Path) -> Path:
    """The file of the environment; a UsageError where there is none."""
    shipped = _shipped()
    if file := shipped.get(os.fspath(name_or_path)):
        return file
    if os.path.exists(name_or_path):
        return Path(name_or_path)
    known = f"; shipped are {', '.join(sorted(shipped))}, any other is given by the path of its YAML file"
    raise UsageError(f"{name_or_path}: no such environment{did_you_mean(str(name_or_path), shipped) or known}")


def _shipped() -> dict[str, Path]:
    return {path.stem: path for path in (Path(__file__).parent / "environments").glob("*.yaml")}
