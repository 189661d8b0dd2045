"""Fork server: a process with pytest in memory that is forked for each evaluation.

Three kinds of processes run this code, which is loaded as `slop_code_fork_server`:

- The template. It answers on a SOCK_SEQPACKET socket, whose number is in `SLOP_CODE_TEMPLATE`. It sends one packet when
  it is ready (`ready`: `imported` or `collected`, and `memory`: its bytes) or is not (`refused`: the reason). Then it
  forks a supervisor for each packet `{"evaluate": 1}` with four descriptors: memory file with the request, log,
  lifeline, status.
- The supervisor (`slop_code_supervisor`), one per evaluation. It starts the boxes, enters the namespaces of the judge's
  box and forks the judge; it writes the exit status (4 bytes) to the status pipe. Whatever fails before leaves that
  pipe without one. The end of the lifeline ends everything of the evaluation.
- The judge. `serve` returns in this process only.

Nothing that a judge can write reaches the template: they have no writable memory in common, and no descriptor except
those that the judge replaces.

The request is a JSON object: `boxes` (the command of the boxes, in which the word `{hold}` stands for the number of a
descriptor that this command alone inherits; null: no boxes), `argv` (the judge's command), `cwd`, `environment`,
`settings` (of the judge's plugin), `filter` (the filter of system calls, base64; null without boxes) and `file_size`.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

VARIABLE = "SLOP_CODE_TEMPLATE"
MAX_PACKET = 4096
REAP_MS = 1000
NO_PROCESS = -1
FIRST_HIGH_DESCRIPTOR = 200
"""The server's own descriptors are above it, so that pytest's have the numbers that they have in a cold judge."""

OWN_SETTINGS = ("stream", "only", "seed", "quarantined")
"""Settings that each judge has of its own; the others must be those of its template."""

HIDDEN = ("ctypes", "ctypes._endian", "_ctypes", "slop_code_fork_server", "slop_code_supervisor",
          "slop_code_judge_privileges", "slop_code_import_probes", "slop_code_template_state",
          "slop_code_imported_template", "slop_code_collected_template")  # fmt: skip
"""Modules that only templates need: tests see no trace of them, and may import their own."""

supervisor: Any = None
"""The module `slop_code_supervisor`, which `take_socket` loads."""


@dataclass(frozen=True)
class Evaluation:
    """Request and log of one forked judge."""

    request: dict[str, Any]
    log: int
    """Descriptor for its output."""


def take_socket() -> socket.socket:
    global supervisor
    number = int(os.environ.pop(VARIABLE))
    server = socket.socket(fileno=high_descriptor(number))
    os.close(number)
    supervisor = importlib.import_module("slop_code_supervisor")
    supervisor.privileges = importlib.import_module("slop_code_judge_privileges")
    return server


def high_descriptor(number: int) -> int:
    """A copy that no program inherits. Fails where processes may not have as many descriptors."""
    return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_HIGH_DESCRIPTOR)


def answer(server: socket.socket, **packet: str | int) -> None:
    try:
        server.send(json.dumps(packet).encode())
    except OSError:  # the evaluator is gone
        os._exit(0)


def resident_memory() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def freeze_memory() -> None:
    """The garbage collector of a judge leaves the objects alone that exist now: it would copy all their memory."""
    gc.collect()
    gc.freeze()


def serve(server: socket.socket, kind: str, kept: Iterable[int] = ()) -> Evaluation:
    """Answers requests until the evaluator closes the socket. Returns only in a new judge.

    The judge keeps the descriptors in `kept`; all others are closed in it.
    """
    template, supervisors = os.getpid(), set[int]()
    answer(server, ready=kind, memory=resident_memory())
    poll = select.poll()
    poll.register(server, select.POLLIN)
    while True:
        ready = poll.poll(REAP_MS if supervisors else None)
        supervisors -= {pid for pid in supervisors if has_ended(pid)}
        if not ready:
            continue
        data, descriptors = supervisor.receive(server, MAX_PACKET, 4)
        if not data:
            os._exit(0)  # supervisors die with this process
        if _is_evaluation(data) and len(descriptors) == 4:
            pid = fork()
            if pid == 0:
                server.close()
                return Evaluation(*supervisor.supervise(template, descriptors, frozenset(kept)))
            supervisors |= {pid} - {NO_PROCESS}
        for descriptor in descriptors:
            os.close(descriptor)


def has_ended(supervisor: int) -> bool:
    """A test can stop its own process group, in which the supervisor is; that must not keep it from ending in time."""
    pid, status = os.waitpid(supervisor, os.WNOHANG | os.WUNTRACED)
    if pid and os.WIFSTOPPED(status):
        os.kill(supervisor, signal.SIGCONT)
        return False
    return pid != 0


def fork() -> int:
    try:
        return os.fork()
    except OSError:  # the status pipe ends without a status
        return NO_PROCESS


def _is_evaluation(data: bytes) -> bool:
    try:
        return bool(json.loads(data) == {"evaluate": 1})
    except ValueError:
        return False


def replace_descriptors(log: int, outputs: Iterable[int], nulls: Iterable[int]) -> None:
    """In a judge, its outputs become the log, and `nulls` new descriptors of /dev/null. Programs inherit 0, 1 and 2."""
    for number in outputs:
        os.dup2(log, number, inheritable=number <= 2)
    os.close(log)
    for number in nulls:
        null = os.open(os.devnull, fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE)
        os.dup2(null, number, inheritable=number <= 2)
        os.close(null)


def restart_process() -> None:
    """In a judge: what modules have noted about the process when they were imported."""
    # Times of log records are relative to the import of `logging`.
    now = time.time_ns() if isinstance(logging._startTime, int) else time.time()  # type: ignore[attr-defined]
    logging._startTime = now  # type: ignore[attr-defined]
    threading.main_thread()._native_id = threading.get_native_id()  # type: ignore[attr-defined]


def hide_modules(present: Container[str]) -> None:
    """`present` has the modules that a cold judge would have, too."""
    for name in HIDDEN:
        if name not in present:
            sys.modules.pop(name, None)


def fail(error: BaseException) -> NoReturn:
    """In a judge that was not set up: no test may run, and Python's own exit status would be that of failed tests."""
    try:
        os.write(2, f"the judge cannot go on from its template: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(supervisor.FAILED)
