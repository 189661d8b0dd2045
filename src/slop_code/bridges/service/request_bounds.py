"""Bounds of every request: who may ask, and how large and how slow a body may be. Plain ASGI, before any parsing."""

from __future__ import annotations

import asyncio
import hmac
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from slop_code.bridges.service.queue_records import SHUTTING_DOWN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from slop_code.bridges.service.service_records import Fault

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN_PATHS = frozenset({"/health", "/ready"})
"""They say that the service is there, its version, and how busy it is."""

TOO_LARGE = "a body of more than {} bytes; the operator sets the limit (--max-request)"
NO_TOKEN = (
    "no token, or a wrong one; send the header Authorization: Bearer TOKEN; "
    "the server printed the file of its token when it started, unless its operator chose the token by a variable"
)
"""Names no path, because the client may be hostile."""

BODY_S = 60.0
"""Seconds in which a body has to arrive."""

MAX_BODIES_IN_MEMORY = 8
"""Bodies of the largest size, or more smaller ones; a body counts until it is unpacked or answered."""

RELEASE_BODY = "slop_code.release_body"
"""Key of the scope: a function to call when nothing keeps the body any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    max_bytes: int = 32 << 20
    """Maximum size of a body."""

    token: str | None = None
    """The token that requests need, or None if they need none."""

    hosts: frozenset[str] | None = None
    """Names in the header Host, or None for any. A page of another site could otherwise be resolved to this machine."""


class RefusedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class RequestBounds:
    """Middleware."""

    def __init__(self, app: App, limits: RequestLimits, refused: Callable[[int], None]) -> None:
        """`refused` is called with the status of each refusal."""
        self._app, self._limits, self._refused = app, limits, refused
        self._bytes = 0
        """Bytes of all bodies in memory."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        own, arrived, started = 0, False, False
        deadline = time.monotonic() + BODY_S

        async def bounded_receive() -> Message:
            nonlocal own, arrived
            try:  # after the body, the next message is the end of the connection
                async with asyncio.timeout(None if arrived else max(0.0, deadline - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(408, f"the body took longer than {BODY_S:g} s") from None
            if message["type"] != "http.request":
                return message
            arrived = not message.get("more_body", False)
            size = len(message.get("body", b""))
            own, self._bytes = own + size, self._bytes + size
            if own > self._limits.max_bytes:
                raise RefusedError(413, TOO_LARGE.format(self._limits.max_bytes))
            if self._bytes > MAX_BODIES_IN_MEMORY * self._limits.max_bytes:
                raise RefusedError(429, "too many large requests at a time; try again in 1 s")
            return message

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        def release() -> None:
            nonlocal own
            own, self._bytes = 0, self._bytes - own

        try:
            self._check_headers(scope)
            await self._app({**scope, RELEASE_BODY: release}, bounded_receive, watched_send)
        except ClientDisconnect:
            return
        except (RefusedError, asyncio.CancelledError) as error:
            if started:
                raise
            refused = error if isinstance(error, RefusedError) else RefusedError(503, SHUTTING_DOWN)
            self._refused(refused.status)
            await refusal(refused.status, str(refused))(scope, receive, send)
        finally:
            release()

    def _check_headers(self, scope: MutableMapping[str, Any]) -> None:
        headers = Headers(scope=scope)
        local = (scope.get("server") or ("", None))[1] is None  # a Unix socket has no name
        if not local and self._limits.hosts is not None:
            if _host(headers.get("host", "")) not in self._limits.hosts:
                raise RefusedError(421, "the header Host names another server; the operator sets the address (--host)")
            if "origin" in headers and _host(headers["origin"].partition("://")[2]) not in self._limits.hosts:
                raise RefusedError(403, "the request comes from a page of another site")
        if self._limits.token is not None and scope["path"] not in OPEN_PATHS:
            given = headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self._limits.token}".encode()):
                raise RefusedError(401, NO_TOKEN)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > self._limits.max_bytes:
            raise RefusedError(413, TOO_LARGE.format(self._limits.max_bytes))


def refusal(status: int, reason: str, retry_after: int | None = None, fault: Fault = "request") -> JSONResponse:
    """The connection stays open for a while, so that a client which still sends its body can read this."""
    headers = {"Retry-After": str(retry_after or 1)} if status == 429 else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": reason, **({"fault": fault} if status == 422 else {})}, status, headers)


def _host(value: str) -> str:
    """Without the port."""
    return value.rpartition(":")[0] if ":" in value.rpartition("]")[2] else value
