"""Workspace of an agent in a sandbox of another system: what the agent gets there, and what is evaluated of it here.

Nothing in such a sandbox is believed, not even its tar: a program there may print any archive. What comes out of it is
a submission, and a submission that cannot be read or unpacked fails every test, as otherwise an agent could cancel a
bad score. There is no score where the call of the sandbox itself fails. An agent that can bring that about, as by
ending its sandbox, can cancel a score; each bridge says where it can tell that apart.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from slop_code.bridges.shared_evaluator import evaluate_with_retries
from slop_code.bridges.specification import specification
from slop_code.errors import InfrastructureError, SubmissionError, UsageError
from slop_code.evaluation.evaluator.submission_source import submission_folder
from slop_code.evaluation.reward_values import refused_rewards, rewards_of
from slop_code.evaluation.staging import ASSETS
from slop_code.execution.assets import regular_files
from slop_code.execution.cache import Cache
from slop_code.execution.sandbox import TESTS_DIR
from slop_code.reporting.score_text import score_explanation, score_metadata

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from slop_code.evaluation.config import ProblemConfig
    from slop_code.execution.environment import EnvironmentSpec

    Run = Callable[[list[str]], Awaitable[tuple[int, str]]]
    """Runs a command in the sandbox, within `COMMAND_S` seconds: its exit status and standard output."""

ASSETS_FOLDER = f"{TESTS_DIR}/{ASSETS}"
"""Below the workspace, as in an evaluation. Files of a submission in this folder are not evaluated."""

MAX_PACKED, MAX_UNPACKED = 256 << 20, 2 << 30
"""Bytes of a workspace."""

CHUNK = 6 << 20
"""Bytes of the archive that one command prints; with base64, fewer than the 10 MiB that Inspect takes."""

COMMAND_S, READ_S = 600, 1200
"""Seconds for each command in the sandbox, and for reading the packed workspace out of it."""

MAX_PATH = 4096

AGENT_ERRORS = (TimeoutError, ValueError, PermissionError, FileNotFoundError, NotADirectoryError)
"""Errors of commands that an agent can cause: by what they print, how long they take, or a folder that is gone."""

_PACK = """cd -- "$1" || exit 9
archive=$(mktemp) || exit 9
tar --hard-dereference -czf "$archive" . 2>/dev/null || tar -czf "$archive" . 2>/dev/null
printf %s "$archive"
"""


def pack_command(folder: str) -> list[str]:
    """Packs a folder of the sandbox into a temporary file there, and prints its path.

    The status of tar is not looked at: it is not 0 if a file changes or may not be read, which is no reason to leave
    out the others. Whether the archive is complete is seen when it is unpacked.
    """
    return ["sh", "-c", _PACK, "sh", folder]


def archive_path(status: int, printed: str) -> str:
    """Refuses text that is no path: as an argument of the next command it would look like a failure of the sandbox."""
    if status != 0 or not printed.startswith("/") or not printed.isprintable() or len(printed.encode()) > MAX_PATH:
        raise SubmissionError(f"the workspace cannot be packed in the sandbox (exit status {status})")
    return printed


async def fetch_workspace(run: Run, folder: str, packed: IO[bytes]) -> None:
    """Packs a folder of the sandbox and writes the archive to `packed`, through commands alone.

    Functions of sandboxes that read files are not used: some follow links on this machine, and their errors do not
    say whether the agent or the sandbox failed. Raises SubmissionError for all that an agent can cause, and lets
    other errors of `run` through. Any command may be repeated.
    """
    path = archive_path(*await _command(run, pack_command(folder)))
    try:
        async with asyncio.timeout(READ_S):
            await _read(run, path, packed)
    except TimeoutError as error:
        raise SubmissionError(f"the workspace cannot be read within {READ_S} s") from error
    finally:
        with contextlib.suppress(Exception):  # a file that stays in the sandbox changes no score
            await run(["rm", "-f", "--", path])


async def _read(run: Run, path: str, packed: IO[bytes]) -> None:
    script = 'dd if="$1" bs="$2" skip="$3" count=1 2>/dev/null | base64'
    for number in range(MAX_PACKED // CHUNK + 1):
        status, printed = await _command(run, ["sh", "-c", script, "sh", path, str(CHUNK), str(number)])
        if status != 0:
            raise SubmissionError(f"the workspace cannot be read out of the sandbox (exit status {status})")
        try:
            part = base64.b64decode("".join(printed.split()), validate=True)
        except ValueError as error:
            raise SubmissionError("the workspace cannot be read out of the sandbox") from error
        if len(part) > CHUNK:
            raise SubmissionError("the sandbox gave more than it was asked for")
        await asyncio.to_thread(packed.write, part)
        if len(part) < CHUNK:
            return
    raise SubmissionError(f"the workspace has more than {MAX_PACKED >> 20} MiB when it is packed")


async def _command(run: Run, argv: list[str]) -> tuple[int, str]:
    try:
        return await run(argv)
    except AGENT_ERRORS as error:
        raise SubmissionError(f"the workspace cannot be read: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class CheckpointScore:
    """The rewards of a checkpoint, or the reason why there are none."""

    rewards: dict[str, float] = field(default_factory=dict)
    """They are empty after an infrastructure failure, which is no reward of 0."""

    explanation: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


async def score_workspace(
    packed: IO[bytes], problem: ProblemConfig, checkpoint: str, environment: str | EnvironmentSpec | None
) -> CheckpointScore:
    """Evaluates a packed workspace in boxes of its own, on this machine."""
    stack = contextlib.ExitStack()
    try:
        unpacked = submission_folder(packed, Cache.default(), max_bytes=MAX_UNPACKED, any_links=True)
        folder = await asyncio.to_thread(stack.enter_context, unpacked)
        results = await evaluate_with_retries(folder, problem, checkpoint, environment)
    except SubmissionError as error:
        return refused_workspace(str(error))
    except InfrastructureError as error:
        return unscored(str(error))
    finally:
        await asyncio.to_thread(stack.close)
    return CheckpointScore(rewards_of(results), score_explanation(results), score_metadata(results))


def refused_workspace(reason: str) -> CheckpointScore:
    """A workspace that is no submission: the agent's fault, and 0 for everything."""
    return CheckpointScore(refused_rewards(), reason, {"refused": reason})


def unscored(reason: str) -> CheckpointScore:
    return CheckpointScore(explanation=f"infrastructure failure: {reason}", metadata={"infrastructure_failure": reason})


def first_checkpoints(problem: ProblemConfig, count: int | None) -> list[str]:
    names = list(problem.checkpoints)
    if count is not None and not (isinstance(count, int) and 1 <= count <= len(names)):
        raise UsageError(f"checkpoints: expected a number from 1 to {len(names)}, found {count!r}")
    return names[:count]


def absolute_environment(given: str | None) -> str | None:
    """A path stays right when the other system changes the working directory; a name stays a name."""
    return str(Path(given).absolute()) if given is not None and "/" in given else given


def task_text(problem: ProblemConfig, checkpoint: str) -> str:
    """The specification of a checkpoint; with the first one, where the static assets are."""
    text = specification(problem, checkpoint)
    if checkpoint != next(iter(problem.checkpoints)):
        return f"{text}\n"
    notes = ["Write the program into the current folder. Later tasks extend it."]
    if problem.static_assets:
        names = ", ".join(problem.static_assets)
        notes.append(f"Files that the program may use are in {ASSETS_FOLDER}: {names}.")
        notes.append("When the program is evaluated, SCBENCH_ASSETS_DIR names that folder. It is not set here.")
    return "\n".join([text, "", *notes, ""])


def visible_files(problem: ProblemConfig) -> dict[str, bytes]:
    """Static assets by their paths below the workspace: all that an agent sees of a problem besides its texts."""
    return {
        str(PurePosixPath(ASSETS_FOLDER, name, relative)): file.read_bytes()
        for name, root in problem.assets.items()
        for relative, file in regular_files(root)
    }
