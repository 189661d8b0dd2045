"""HTTP server of the reward service: its sockets, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from slop_code.bridges.service.app import RewardService, service_app
from slop_code.bridges.service.durable_jobs import DurableJobs
from slop_code.bridges.service.nemo_gym import add_nemo_gym
from slop_code.bridges.service.request_bounds import RequestLimits
from slop_code.bridges.service.service_metrics import ServiceMetrics
from slop_code.bridges.service.service_queue import ServiceQueue
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from slop_code.bridges.service.server_inputs import QueueSettings
    from slop_code.execution.cache import Cache

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
HOST_NAMES = frozenset({"127.0.0.1", "[::1]", "localhost"})
"""Names in the header Host of a server that only this machine can reach."""

OTHER_VERSION = {"127.0.0.1": "::1", "localhost": "::1", "::1": "127.0.0.1", "0.0.0.0": "::"}
"""Addresses of the other version of IP, by the host that was given. A server on `::` serves both versions."""

NO_SUCH_ADDRESS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
"""Errors on a machine without that version of IP: nobody else can listen there either."""

MAX_PORTS = 10
"""Ports that are tried where any will do: the kernel looks only for one that is free for one version of IP."""

BACKLOG = 1024
OTHER_CONNECTIONS = 256
"""Connections beyond those whose evaluations are queued."""

MAX_HEADER_BYTES = 64 << 10
HEADER_S = 10.0
"""Seconds in which the first request of a connection has to begin, with its whole header."""

KEEP_ALIVE_S = 30.0
"""Seconds in which every further request of a connection has to begin."""

SEND_S = 60.0
"""Seconds in which a client has to read a part of an answer."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    queue: QueueSettings
    state: Path
    """Folder of the durable jobs, and of the token that was made."""

    host: str = "127.0.0.1"
    port: int | None = 8080
    """The port, or None for no TCP socket."""

    unix_socket: Path | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    token_file: Path | None = None
    """File of the token, for clients on this machine."""

    drain_s: float = 600.0
    """Seconds for which SIGTERM lets requests end."""

    def __post_init__(self) -> None:
        if self.port is not None and self.host not in LOOPBACK and self.limits.token is None:
            raise UsageError(
                f"--host {self.host}: other machines can reach it, so requests need a token; leave out --no-token"
            )


@dataclass(frozen=True, slots=True)
class ServerStart:
    addresses: list[str]
    token_file: str | None
    """None if the token is that of the variable, or requests need none."""

    problems: int
    resumed: int
    """Durable jobs of an earlier server that it goes on with."""

    damaged: int
    """Durable jobs that cannot be read."""


class _TimedConnection(H11Protocol):
    """Closes a connection on which no request begins, or no answer is read: uvicorn waits for both without a limit."""

    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request(HEADER_S)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._silence.cancel()
        self._wait_for_request(KEEP_ALIVE_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._silence.cancel()
        self._stop_waiting_for_reader()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_waiting_for_reader()

    def _wait_for_reader(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(SEND_S, self._abort_if_unread, unread)

    def _abort_if_unread(self, unread: int) -> None:
        """An answer that is read slowly is not given up."""
        if self.transport.get_write_buffer_size() < unread:
            self._wait_for_reader()
        else:
            self.transport.abort()  # to close it would wait for the reader

    def _stop_waiting_for_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()

    def _wait_for_request(self, seconds: float) -> None:
        self._silence = self.loop.call_later(seconds, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class _Server(uvicorn.Server):
    """Without handlers of its own: they would raise the signal once more at the end."""

    def __init__(self, config: uvicorn.Config, listeners: Iterable[socket.socket]) -> None:
        super().__init__(config)
        self._listeners = [each.dup() for each in listeners if each.family != socket.AF_UNIX]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """The ports stay taken until the process ends: set-up of accepted requests could listen there otherwise."""
        for each in self._listeners:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
            each.shutdown(socket.SHUT_RD)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: ServerSettings, cache: Cache, started: Callable[[ServerStart], None]) -> None:
    """Serves until a signal, which lets requests end; a second one cancels them.

    `started` is called when it listens.
    """
    listeners, reserved = _sockets(settings)
    bound = settings.unix_socket and _file_id(settings.unix_socket)
    try:
        queue = await asyncio.to_thread(ServiceQueue, settings.queue, cache)
        try:
            durable = DurableJobs(settings.state, queue)
            try:
                resumed, damaged = await asyncio.to_thread(durable.resume)
                service = RewardService(queue, durable, ServiceMetrics(queue), settings.limits)
                server = _server(settings, service, listeners)
                _end_on_signals(server, service)
                problems = len(queue.inputs.problem_names())
                addresses = [_address(each) for each in listeners]
                token_file = str(settings.token_file.absolute()) if settings.token_file else None
                started(ServerStart(addresses, token_file, problems, resumed, damaged))
                await server.serve(listeners)
            finally:
                durable.closing()
        finally:
            await asyncio.to_thread(queue.close)
        durable.close()
    finally:
        for each in (*listeners, *reserved):
            each.close()
        if settings.unix_socket is not None and bound == _file_id(settings.unix_socket):
            settings.unix_socket.unlink()  # another one is of a server that was started meanwhile


def _server(settings: ServerSettings, service: RewardService, listeners: Iterable[socket.socket]) -> _Server:
    app = service_app(service)
    add_nemo_gym(app, service)
    return _Server(
        uvicorn.Config(
            app,
            log_level="error",
            http=_TimedConnection,
            timeout_keep_alive=int(KEEP_ALIVE_S),
            ws="none",
            access_log=False,
            lifespan="off",
            backlog=BACKLOG,
            limit_concurrency=settings.queue.max_jobs + OTHER_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            timeout_graceful_shutdown=int(settings.drain_s),
            server_header=False,
        ),
        listeners,
    )


def _end_on_signals(server: _Server, service: RewardService) -> None:
    """Until the loop is closed: a signal while the queue is closed would leave boxes and folders otherwise."""

    def end() -> None:
        if server.should_exit:
            server.force_exit = True
            for task in tuple(server.server_state.tasks):  # from Python 3.12 on, the server waits for them even so
                task.cancel()
        server.should_exit = service.draining = True

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as SIGHUP is under nohup
            asyncio.get_running_loop().add_signal_handler(number, end)


def _sockets(settings: ServerSettings) -> tuple[list[socket.socket], list[socket.socket]]:
    """Those that listen, and those that only reserve an address.

    Open before anything else, so that an address that is taken is said at once.
    """
    listeners: list[socket.socket] = []
    reserved: list[socket.socket] = []
    try:
        if settings.port is not None:
            listener, reserved = _tcp_sockets(settings.host, settings.port)
            listeners.append(listener)
        if settings.unix_socket is not None:
            listeners.append(_unix_socket(settings.unix_socket))
    except OSError as error:
        for each in (*listeners, *reserved):
            each.close()
        where = settings.unix_socket if listeners or settings.port is None else f"{settings.host}:{settings.port}"
        raise UsageError(
            f"{where}: cannot listen: {error.strerror or error}; give another --port or --socket"
        ) from error
    if not listeners:
        raise UsageError("nothing to listen on: give --port or --socket")
    return listeners, reserved


def _tcp_sockets(host: str, port: int) -> tuple[socket.socket, list[socket.socket]]:
    """The listener, and a socket that reserves its port for the other version of IP, where the machine has that.

    Set-up of a submission has the host's network. It could listen there, and get the token of a client that asks for
    `localhost`.
    """
    tries = 1 if port else MAX_PORTS
    while True:
        tries -= 1
        listener = _bound_socket(host, port)
        try:
            listener.listen(BACKLOG)
            return listener, _reserve(host, listener.getsockname()[1])
        except OSError as error:
            listener.close()
            if tries == 0 or error.errno != errno.EADDRINUSE:
                raise


def _reserve(host: str, port: int) -> list[socket.socket]:
    address = OTHER_VERSION.get(host)
    try:
        return [] if address is None else [_bound_socket(address, port, reuse=False)]
    except OSError as error:
        if error.errno in NO_SUCH_ADDRESS:
            return []
        raise OSError(error.errno, f"{error.strerror} on {address}") from error


def _bound_socket(host: str, port: int, *, reuse: bool = True) -> socket.socket:
    """Without `reuse` nobody else can bind the address, also while the socket does not listen.

    Such a socket is of one version of IP only; another one on `::` serves both.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not reuse)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


def _unix_socket(path: Path) -> socket.socket:
    """For this user alone. A socket that a killed server left is replaced, any other file is not."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode) and not _answers(path):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _file_id(path: Path) -> tuple[int, int] | None:
    """Device and inode; None where there is no such file."""
    with contextlib.suppress(FileNotFoundError):
        return (status := path.lstat()).st_dev, status.st_ino
    return None


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _address(listener: socket.socket) -> str:
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{name}"
    return f"http://[{name[0]}]:{name[1]}" if ":" in name[0] else f"http://{name[0]}:{name[1]}"
