"""Client of process 1 of a container, which is `slopbox init`, through the engine's command line."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import tail
from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import CancelToken, EvaluationCancelledError, cancel_scope, wait_for
from slop_code.execution.concurrency import start_thread
from slop_code.execution.docker.container_arguments import NET
from slop_code.execution.process import MAX_TAIL, PipedProcess, ProcessResult
from slop_code.execution.submission import TreeSummary
from slop_code.execution.trees.archive import pack_tree, unpack_reports
from slop_code.execution.uv import network_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slop_code.execution.docker.engine import Engine
    from slop_code.execution.sandbox import JudgeJob

START_S = 300.0
REPORTS_S = 120.0
LAST_OUTPUT_S = 5.0
STDIN_CHUNK = 4096
END_OF_STDIN = b"\4"


def wait_until_ready(engine: Engine, child: PipedProcess, log: Path, expected: TreeSummary | None = None) -> None:
    """Raise unless process 1 starts, and the mounted folder that it copied is the same as `expected`.

    A folder of the same name on the daemon's machine need not be the same folder.
    """
    line, until = b"", time.monotonic() + START_S
    with contextlib.suppress(TimeoutError):
        while not line.endswith(b"\n") and (byte := child.read(1, until)):
            line += byte
    match = re.fullmatch(rb"ready (\d+) (\d+) (\d+)\n", line)
    if match is None:
        raise engine.failure("run", last_output(child, log) or f"it did not start within {START_S:g} s")
    entries, size, checksum = map(int, match.groups())
    if expected is not None and TreeSummary(entries, size, checksum) != expected:
        raise InfrastructureError(
            "the daemon sees another folder in the submission's place; set docker.mount_workspace: false"
        )


def finish(
    engine: Engine, child: PipedProcess, log: Path, folders: Mapping[str, Path], timeout: float
) -> ProcessResult:
    """The exit code that process 1 sent after its files; that of the engine's command proves nothing."""
    in_time = child.answers(time.monotonic() + timeout)
    if not in_time:
        child.hang_up()
    until = time.monotonic() + REPORTS_S
    try:
        status = unpack_reports(lambda size: child.read(size, until), folders)
    except (EOFError, TimeoutError):
        # The log is mostly output of the tests, which says nothing about the failure.
        output = last_output(child, log)
        raise InfrastructureError(
            f"the judge's container ended before its tests did; was it, or {engine.binary}'s daemon, stopped?\n{output}"
        ) from None
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return ProcessResult(code if in_time else None, tail(log, MAX_TAIL))


def returned_folders(job: JudgeJob) -> dict[str, Path]:
    """Host folders for the files that the container sends back; bytecode of a collection goes next to its sources."""
    folders = {"reports": job.request.reports}
    if job.collecting:
        folders |= {"tests": job.request.tests, "plugin": job.request.files["plugin"]}
    return folders


@contextlib.contextmanager
def forward_stdin(child: PipedProcess) -> Iterator[None]:
    """While the block runs, the judge reads our standard input; its end is sent as the byte that terminals use."""
    token = CancelToken()

    def work() -> None:
        with cancel_scope(token), contextlib.suppress(EvaluationCancelledError):
            while wait_for(0, float("inf")):
                text = os.read(0, STDIN_CHUNK)
                child.send([text or END_OF_STDIN])
                if not text:
                    return

    join = start_thread(work)
    try:
        yield
    finally:
        token.cancel()
        join()
        token.close()


def last_output(child: PipedProcess, log: Path) -> str:
    """The end of what the engine's command printed."""
    child.hang_up()
    with contextlib.suppress(TimeoutError):
        while child.read(1 << 16, time.monotonic() + LAST_OUTPUT_S):
            pass
    return tail(log, MAX_TAIL).strip()


def certificate_variables() -> dict[str, str]:
    given = network_variables()
    if "SSL_CERT_FILE" in given and os.path.isfile(given["SSL_CERT_FILE"]):
        return {"SSL_CERT_FILE": f"{NET}/ca.pem", "SSL_CERT_DIR": ""}
    return {}


def certificates() -> Iterator[bytes]:
    """The host's certificates, where the package index needs them."""
    if certificate_variables():
        yield from pack_tree(Path(network_variables()["SSL_CERT_FILE"]).resolve(), "net/ca.pem")
