"""Judge templates: processes that have pytest in memory, and are forked for each evaluation.

A template runs in a box of its own, which no submission ever enters. An evaluation sends it a request with four
descriptors: the request itself, the log, a lifeline, and a pipe for the exit status. The template forks, and the child
enters the boxes of the evaluation. `evaluation/judge/fork_server.py` is the other side.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import socket
import struct
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from slop_code._io import tail
from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import check_cancelled, wait_for
from slop_code.execution.process import MAX_TAIL, ProcessResult, end_process, start_connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.process import Process
    from slop_code.execution.sandbox import TemplateSpec

logger = logging.getLogger(__name__)

DESCRIPTOR_VARIABLE = "SLOP_CODE_TEMPLATE"
"""Variable with the number of the template's socket."""

MAX_TEMPLATES = 8
MAX_MEMORY = 512 << 20
"""Resident bytes of a template. It does not grow: whatever happens in an evaluation happens in a child."""

MAX_REFUSALS = 10_000
MAX_PACKET = 65536
STATUS = struct.Struct("=i")
END_S = 30.0
"""Seconds for the end of all processes of an evaluation, on a busy machine, too; the template itself is ended then."""

LOCK_POLL_S = 0.05
MAX_STARTS = 3
"""Starts of a template that ends without an answer: what killed it may have been an accident."""

COLD_USES = 1
"""Evaluations before a template is started, which takes as long as a new judge: a single one does not need it."""


class TemplateLostError(InfrastructureError):
    """The template, or its child, ended without an exit status."""


class JudgeTemplate:
    """One template and the thread that started it.

    The thread lives as long as the template: the kernel ends the template's box with the thread that started it.
    """

    def __init__(self, spec: TemplateSpec, folder: Path, argv: Callable[[int], Sequence[str]]) -> None:
        self.spec, self.folder = spec, folder
        self._log = folder / "template.log"
        self._started, self._closing = threading.Event(), threading.Event()
        self._process: Process | None = None
        self._socket: socket.socket | None = None
        self._error: BaseException | None = None
        self.answered = True
        """Whether it was ready or gave a reason, or had the time for it."""

        self._thread = threading.Thread(target=self._live, args=(argv,), name="judge template", daemon=True)

    def start(self) -> str | None:
        """Wait until it is ready; returns why it cannot serve, or None."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            raise InfrastructureError(f"cannot start a judge template: {self._error}") from self._error
        assert self._socket is not None
        if not wait_for(self._socket.fileno(), self.spec.timeout):
            return f"it was not ready within {self.spec.timeout:g} s"
        try:
            answer = dict(json.loads(self._socket.recv(MAX_PACKET) or b"{}"))
        except (OSError, ValueError):
            answer = {}
        if answer.get("ready") != self.spec.kind:
            self.answered = "refused" in answer
            return str(answer.get("refused") or f"it is not ready: {tail(self._log, MAX_TAIL).strip()}")
        memory = int(answer.get("memory", 0))
        return f"it takes {memory >> 20} MiB of memory" if memory > MAX_MEMORY else None

    def evaluate(self, request: Mapping[str, Any], log: Path, timeout: float) -> ProcessResult:
        """Fork a judge for one evaluation, and wait for its end; after the timeout everything of it is killed."""
        check_cancelled()
        with contextlib.ExitStack() as stack:
            status, their_status = _pipe(stack)
            their_lifeline, lifeline = _pipe(stack)
            sink = stack.enter_context(log.open("wb"))
            content = stack.enter_context(_memory_file(json.dumps(request).encode()))
            self._send([content, sink, their_lifeline, their_status])
            their_lifeline.close()
            their_status.close()
            try:
                ended = wait_for(status.fileno(), timeout)
            finally:
                lifeline.close()  # cancelled or late, everything of this evaluation ends
                answers = _is_readable(status, END_S)
                if not answers:
                    logger.warning("a judge template does not end its evaluation, so it is ended itself")
                    self.close()
            answer = status.read(STATUS.size) if answers else None
        if not answers:
            raise TemplateLostError(
                f"the judge template did not answer within {timeout:g} s, so it was ended; evaluate it again"
            )
        if not ended:
            return ProcessResult(None, tail(log, MAX_TAIL))
        if answer is None or len(answer) != STATUS.size:
            message = tail(log, MAX_TAIL).strip() or "it left no message"
            raise TemplateLostError(f"the judge was lost; evaluate it again: {message}")
        return ProcessResult(STATUS.unpack(answer)[0], tail(log, MAX_TAIL))

    def _send(self, files: Sequence[IO[bytes]]) -> None:
        assert self._socket is not None
        try:
            socket.send_fds(self._socket, [b'{"evaluate": 1}'], [file.fileno() for file in files], socket.MSG_NOSIGNAL)
        except OSError as error:
            message = tail(self._log, MAX_TAIL).strip()
            raise TemplateLostError(f"the judge template ended; evaluate it again: {message}") from error

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None and not self._closing.is_set()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _live(self, argv: Callable[[int], Sequence[str]]) -> None:
        try:
            self._process, self._socket = start_connected(argv, self._log)
        except BaseException as error:  # noqa: BLE001 - `start` raises it again
            self._error = error
            return
        finally:
            self._started.set()
        self._closing.wait()
        self._socket.close()  # the template ends at once
        end_process(self._process)


@dataclass(slots=True)
class _Slot:
    """The template of one key."""

    template: JudgeTemplate | None = None
    refused: str | None = None
    starts: int = 0
    """Failed starts; from `MAX_STARTS` on there are no more, and a reason of the template's own counts as that many."""

    uses: int = 0
    users: int = 0
    mounted: object = None
    """The folders of the cache that the template has mounted."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    contexts: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Others wait while a template starts; a cancellation ends that wait."""
        while not self.lock.acquire(timeout=LOCK_POLL_S):
            check_cancelled()
        try:
            check_cancelled()
            yield
        finally:
            self.lock.release()

    def close(self) -> None:
        if self.template is not None:
            self.template.close()
            self.template = None
        self.contexts.close()


class TemplatePool:
    """Templates by key, at most `MAX_TEMPLATES`; the least recently used is ended first. Closed with the evaluator."""

    def __init__(self, max_templates: int = MAX_TEMPLATES) -> None:
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._lock = threading.Lock()
        self._max = max_templates
        self._closed = False

    @contextlib.contextmanager
    def use(
        self, spec: TemplateSpec, cache: Cache, argv: Callable[[Path, int], Sequence[str]], check: Callable[[], None]
    ) -> Iterator[JudgeTemplate | str | None]:
        """A template that is ready, or the reason why there is none, or None if it is not worth it yet.

        `argv` starts the template, given its folder and the number of its descriptor. `check` raises an error if the
        files that it has read were damaged.
        """
        slot = self._take(spec)
        if slot is None:
            yield None
            return
        try:
            with slot.locked():
                if slot.template is not None and not (slot.template.alive and slot.mounted == _mounted(cache)):
                    slot.close()
                if slot.template is None and slot.starts < MAX_STARTS and not self._closed:
                    self._start(slot, spec, cache, argv)
                    self._check(slot, check)
            yield slot.template or slot.refused
        finally:
            self._give_back(slot)

    def _start(self, slot: _Slot, spec: TemplateSpec, cache: Cache, argv: Callable[[Path, int], Sequence[str]]) -> None:
        slot.contexts, slot.mounted = contextlib.ExitStack(), _mounted(cache)
        folder = slot.contexts.enter_context(cache.session_folder())
        template = JudgeTemplate(spec, folder, lambda descriptor: argv(folder, descriptor))
        try:
            slot.refused = template.start()
        except BaseException:
            template.close()
            slot.contexts.close()
            raise
        slot.template = template
        slot.starts = slot.starts + 1 if not template.answered else 0 if slot.refused is None else MAX_STARTS
        logger.info("judge template, %s: %s", spec.kind, slot.refused or "ready")
        if slot.refused is not None:
            slot.close()

    def _check(self, slot: _Slot, check: Callable[[], None]) -> None:
        """Damage is found again at the end of the evaluation, and repaired; the template would stay as it is."""
        try:
            check()
        except BaseException:
            slot.close()
            slot.refused, slot.starts = None, 0
            raise

    def _take(self, spec: TemplateSpec) -> _Slot | None:
        with self._lock:
            if self._closed:
                return None
            slot = self._slots.setdefault(spec.key, _Slot())
            self._slots.move_to_end(spec.key)
            slot.uses += 1
            if slot.uses <= COLD_USES:
                return None
            slot.users += 1
            return slot

    def _give_back(self, slot: _Slot) -> None:
        with self._lock:
            slot.users -= 1
            idle = [(key, other) for key, other in self._slots.items() if other.users == 0]
            running = [(key, other) for key, other in idle if other.template is not None]
            count = sum(other.template is not None for other in self._slots.values())
            ended = [other for _, other in running[: max(0, count - self._max)]]
            for other in ended:
                other.users += 1  # nobody else ends it meanwhile
                other.uses = 0  # it starts again only where it is used several times
            for key, other in idle[: max(0, len(self._slots) - MAX_REFUSALS)]:
                if other.template is None:
                    del self._slots[key]
        for other in ended:
            with other.lock:
                other.close()
            with self._lock:
                other.users -= 1

    def close(self) -> None:
        with self._lock:
            self._closed = True
            slots = list(self._slots.values())
            self._slots.clear()
        for slot in slots:
            with slot.lock:
                slot.close()

    def __enter__(self) -> TemplatePool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _mounted(cache: Cache) -> object:
    return [(info.st_dev, info.st_ino) for info in map(os.stat, (cache.root, cache.sessions))]


def _pipe(stack: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    opened = os.fdopen(reader, "rb", 0), os.fdopen(writer, "wb", 0)
    return stack.enter_context(opened[0]), stack.enter_context(opened[1])


def _memory_file(content: bytes) -> IO[bytes]:
    """The request is in a file, since a packet is limited in size."""
    file = os.fdopen(os.memfd_create("request", os.MFD_CLOEXEC), "w+b")
    file.write(content)
    file.seek(0)
    return file


def _is_readable(stream: IO[bytes], seconds: float) -> bool:
    """Unlike `wait_for`, a cancellation does not end this wait."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
