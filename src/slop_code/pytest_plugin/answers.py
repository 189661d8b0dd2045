"""Requests on loopback that end whatever the server sends, and what they were answered."""

from __future__ import annotations

import http.client
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from json import dumps, loads
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from .calls import BLOCK, MOST_BYTES
from .wording import cut, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOST = "127.0.0.1"
MOST_JSON = 8 * 1024 * 1024
"""Values take up to forty times the memory of their text."""
NOTHING: Any = object()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage = field(repr=False)
    body: bytes = field(repr=False)
    asked: str

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Fails where it is no JSON, or where it could be read in more than one way."""
        __tracebackhide__ = True
        if len(self.body) > MOST_JSON:
            self._fail(f"a body of JSON, at most {MOST_JSON} bytes", f"{len(self.body)} bytes")
        try:
            return loads(self.body, object_pairs_hook=_unique, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
        return self._fail("a body of JSON", f"{visible(self.text)}\n\n{visible(reason)}")

    def expect(self, status: int, json: Any = NOTHING) -> Answer:
        """Fails unless the status and, if given, the value of the body are equal to these."""
        __tracebackhide__ = True
        if self.status != status or (json is not NOTHING and not same(json, self.json())):
            wanted = f"{status}" if json is NOTHING else f"{status} {visible(dumps(json, default=repr))}"
            self._fail(wanted, f"{self.status} {visible(self.text)}")
        return self

    def _fail(self, expected: str, found: str) -> NoReturn:
        __tracebackhide__ = True
        pytest.fail(f"{self.asked}\n\nexpected: {expected}\n\nfound: {found}")


def same(wanted: Any, found: Any) -> bool:
    """As JSON has it: 1 and 1.0 are one number, 1 and true are not. Others, such as `approx`, decide themselves."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(same(wanted[key], found[key]) for key in wanted)
    if isinstance(wanted, list | tuple) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(same, wanted, found))
    if isinstance(wanted, int | float) and isinstance(wanted, bool) is not isinstance(found, bool):
        return False
    return bool(wanted == found)


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"a key that stands twice in an object: {cut(twice, 200)!r}")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def ask(port: int, method: str, path: str, body: bytes | None, headers: Mapping[str, str], end: float) -> Answer:
    """One request; no proxy is used, and no redirect followed. The server's answer is bounded in size and time."""
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
                if response.length:  # still to come, but for the end
                    raise http.client.IncompleteRead(content, response.length)
        except (ValueError, OverflowError) as error:  # such as a chunk of -5 bytes
            raise http.client.HTTPException(f"no HTTP: {error}") from error
        return Answer(response.status, response.headers, content, asked(method, path, body))


class _BoundedSocket(socket.socket):
    """Size and time are those of the whole answer, whatever it says of itself.

    A server that sends a byte now and then does not put the end off; a chunk of -1 bytes would be read without end.
    """

    end = 0.0
    came = 0

    def left(self) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.left())
        count = super().recv_into(*args)
        self.came += count
        if self.came > MOST_BYTES:
            raise OSError(f"an answer of more than {MOST_BYTES} bytes")
        return count


def asked(method: str, path: str, body: bytes | None) -> str:
    content = f" {cut(body.decode('utf-8', 'replace'), 1000)}" if body else ""
    return visible(f"asked: {method} {path}{content}")
