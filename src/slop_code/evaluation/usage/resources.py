"""Records of what a test used: processor time, memory, and the limits that struck."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from slop_code._safe_text import escape_control
from slop_code.evaluation.reports.raw_test import MAX_REPORTED_DURATION, ReportError
from slop_code.evaluation.result_files.stored_record import FrozenRecord

CALL_LIMIT = 1024
MAX_STRUCK = 16

LimitKind = Literal["memory", "processes", "disk", "output", "out_of_memory"]
"""`out_of_memory` is the kernel's out-of-memory killer."""

Seconds = Annotated[float, Field(ge=0, le=MAX_REPORTED_DURATION)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class Usage(FrozenRecord):
    """What was used while a test ran. None: it cannot be known."""

    cpu_s: Seconds | None
    """Processor time of the submission's processes."""

    wait_s: Seconds | None
    """Time that the submission's processes were ready to run and waited for a processor, added up."""

    memory_bytes: Count | None
    """The highest memory of all processes of the submission together."""

    processes: Count | None
    """The highest number of processes and threads of the submission."""

    written_bytes: Count | None
    """Bytes that the submission wrote, to files, pipes and sockets."""

    disk_bytes: Count | None
    """The highest use of the space that `limits.disk` bounds, since the boxes were opened."""

    judge_cpu_s: Seconds
    judge_wait_s: Seconds
    others_cpu_s: Seconds
    """Processor time of everything else on the machine."""

    stolen_s: Seconds
    """Time that the host of a virtual machine took from its processors while they had work, added up."""

    processors: Annotated[float, Field(gt=0, lt=1 << 31)]
    """Processors that the submission may use at a time; less than 1 if `limits.cpus` is."""


class StruckLimit(FrozenRecord):
    """A limit of the environment that a test's calls reached."""

    kind: LimitKind
    limit: Count | None
    """It is None for the limit of the machine, which is not ours."""

    call: str | None
    """The beginning of the command, shell-quoted, or None if no call was running or it is not known which."""


class TestTimeout(FrozenRecord):
    """The time limit that ended a test."""

    __test__ = False

    kind: Literal["call", "test"]
    """`test` is the limit of the checkpoint, `call` a limit in the test's own code, such as that of a call."""

    limit_s: Seconds


class Resources(FrozenRecord):
    """The members of a test's line in the stream that say what it used."""

    usage: Usage | None = None
    limits: tuple[StruckLimit, ...] = Field(default=(), max_length=MAX_STRUCK)
    timeout: TestTimeout | None = None

    def with_memory_limit(self, memory_limit: int) -> Resources:
        """The same, where the kernel killed for this limit: the spawner sees the kill, but not the limit."""
        own = {"kind": "memory", "limit": memory_limit}
        limits = [struck.model_copy(update=own if struck.kind == "out_of_memory" else {}) for struck in self.limits]
        return self.model_copy(update={"limits": tuple(limits)})


NO_RESOURCES = Resources.model_construct()  # builds no validator while modules are loaded


def parse_resources(line: dict[str, Any]) -> Resources:
    """Raises ReportError for members of another type."""
    members = {name: line[name] for name in Resources.model_fields if line.get(name) is not None}
    if not members:
        return NO_RESOURCES
    try:
        parsed = Resources.model_validate(members)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ReportError(f"result: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    limits = tuple(struck.model_copy(update={"call": _escaped(struck.call)}) for struck in parsed.limits)
    return parsed.model_copy(update={"limits": limits})


def _escaped(call: str | None) -> str | None:
    return None if call is None else escape_control(call, CALL_LIMIT)
