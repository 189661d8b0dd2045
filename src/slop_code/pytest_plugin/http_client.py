"""HTTP requests on loopback, bounded in time and size whatever the server sends."""

from __future__ import annotations

import http.client
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from json import dumps, loads
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from .failure_messages import cut, escape_unprintable
from .submission_calls import BLOCK, MAX_OUTPUT_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOST = "127.0.0.1"
MAX_JSON_BYTES = 8 * 1024 * 1024
"""Parsed values take up to forty times the memory of their text."""
NOT_GIVEN: Any = object()


@dataclass(frozen=True)
class Response:
    status: int
    headers: http.client.HTTPMessage = field(repr=False)
    body: bytes = field(repr=False)
    asked: str

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The test fails if the body is not JSON, or if an object in it has a duplicate key."""
        __tracebackhide__ = True
        if len(self.body) > MAX_JSON_BYTES:
            self._fail(f"a body of JSON, at most {MAX_JSON_BYTES} bytes", f"{len(self.body)} bytes")
        try:
            return loads(self.body, object_pairs_hook=_unique, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
        return self._fail("a body of JSON", f"{escape_unprintable(self.text)}\n\n{escape_unprintable(reason)}")

    def expect(self, status: int, json: Any = NOT_GIVEN) -> Response:
        """The test fails unless the status and, if given, the JSON value of the body are equal to these."""
        __tracebackhide__ = True
        if self.status != status or (json is not NOT_GIVEN and not json_equal(json, self.json())):
            expected = f"{status}" if json is NOT_GIVEN else f"{status} {escape_unprintable(dumps(json, default=repr))}"
            self._fail(expected, f"{self.status} {escape_unprintable(self.text)}")
        return self

    def _fail(self, expected: str, actual: str) -> NoReturn:
        __tracebackhide__ = True
        pytest.fail(f"{self.asked}\n\nexpected: {expected}\n\nfound: {actual}")


def json_equal(expected: Any, actual: Any) -> bool:
    """Equality of JSON: 1 equals 1.0 and differs from true. Other values, such as `approx`, use their own `==`."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(json_equal(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list | tuple) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(json_equal, expected, actual))
    if isinstance(expected, int | float) and isinstance(expected, bool) is not isinstance(actual, bool):
        return False
    return bool(expected == actual)


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"a key that stands twice in an object: {cut(duplicate, 200)!r}")
    return parsed


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def send_request(
    port: int, method: str, path: str, body: bytes | None, headers: Mapping[str, str], end: float
) -> Response:
    """Sends a request without proxies and redirects. The response is bounded in size and time."""
    with _BoundedSocket() as connected:
        connected.end = end
        connected.settimeout(connected.left())
        connected.connect((HOST, port))
        connection = http.client.HTTPConnection(HOST, port)
        connection.sock = connected
        connection.request(method, path, body, dict(headers))
        try:
            with connection.getresponse() as response:
                content = b"".join(iter(lambda: response.read(BLOCK), b""))
                if response.length:  # bytes that were announced and never sent
                    raise http.client.IncompleteRead(content, response.length)
        except (ValueError, OverflowError) as error:  # such as a chunk of -5 bytes
            raise http.client.HTTPException(f"no HTTP: {error}") from error
        return Response(response.status, response.headers, content, request_line(method, path, body))


class _BoundedSocket(socket.socket):
    """Bounds size and time of the whole response, whatever its headers say.

    A server that sends a byte now and then cannot extend the deadline, nor can a chunk of -1 bytes.
    """

    end = 0.0
    received = 0

    def left(self) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.left())
        count = super().recv_into(*args)
        self.received += count
        if self.received > MAX_OUTPUT_BYTES:
            raise OSError(f"an answer of more than {MAX_OUTPUT_BYTES} bytes")
        return count


def request_line(method: str, path: str, body: bytes | None) -> str:
    content = f" {cut(body.decode('utf-8', 'replace'), 1000)}" if body else ""
    return escape_unprintable(f"asked: {method} {path}{content}")
