"""Output of a submission on its way into messages, pages and exported files."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import strategies as st

from slop_code.authoring.check.findings import Finding, Location, StepOutcome
from slop_code.authoring.check.steps import CheckReport, StepReport, step
from slop_code.pytest_plugin.failure_messages import diff, escape_unprintable, side_by_side
from slop_code.pytest_plugin.http_client import HOST, Response, json_equal, send_request
from slop_code.pytest_plugin.submission_calls import CompletedCall
from slop_code.reporting.failures.headline import headline
from slop_code.reporting.sarif import sarif
from tests.fuzz.odd_input import TERMINAL, damaged, fuzzed, odd_text, odd_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_LENGTH = 100_000
SCHEMA = json.loads((Path(__file__).parents[1] / "data/schemas/sarif-2.1.0.json").read_text())
SARIF = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
SOUND = [
    b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\nContent-Type: application/json\r\n\r\n{"a": 1}',
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.0 404 Not Found\r\n\r\nnothing here",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\nContent-Length: 99999999999999999999\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[int, list[bytes]]]:
    """Answers each request with the bytes that stand in the list, and hangs up."""
    waiting: list[bytes] = []
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    if not waiting:
                        return
                    connection.sendall(waiting.pop())
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], waiting
        waiting.clear()
        with socket.create_connection(listener.getsockname()) as last:
            last.sendall(b"end")
        thread.join()


@fuzzed(2, raw=st.sampled_from(SOUND).flatmap(lambda raw: damaged(raw) | st.just(raw)) | st.binary(max_size=80))
def test_any_http_answer_is_a_response_or_an_error(server: tuple[int, list[bytes]], raw: bytes) -> None:
    port, waiting = server
    waiting[:] = [raw]
    try:
        answer = send_request(port, "GET", "/", None, {}, time.monotonic() + 30)
    except (http.client.HTTPException, OSError):
        return
    assert 100 <= answer.status <= 999
    assert answer.body in raw or b"chunked" in raw.lower()
    expected(answer, 200, {"a": 1})


def expected(answer: Response, status: int, value: Any) -> None:
    """It is so, or the test fails in words that can be shown."""
    failure = failure_of(lambda: answer.expect(status, value))
    assert failure is not None or answer.status == status


def failure_of(call: Callable[[], object]) -> str | None:
    """The message it fails with, bounded and for any terminal."""
    try:
        call()
    except pytest.fail.Exception as failed:
        message = str(failed)
    else:
        return None
    assert not TERMINAL.search(message)
    assert len(message) < MAX_LENGTH
    return message


bodies = st.one_of(
    odd_values.map(lambda one: json.dumps(one).encode()), damaged(b'{"a": [1, 2.0, null, "x"]}'), st.binary()
)


@fuzzed(body=bodies, value=odd_values, path=odd_text)
def test_json_of_an_answer(body: bytes, value: Any, path: str) -> None:
    answer = Response(200, http.client.HTTPMessage(), body, escape_unprintable(f"asked: GET {path}"))
    expected(answer, 200, value)
    expected(answer, 404, value)
    if failure_of(answer.json) is None:
        assert json.loads(body) == answer.json()
        assert json_equal(json.loads(body), answer.json())


@fuzzed(wanted=odd_text, found=odd_text, times=st.sampled_from([1, 30, 3000]), argument=odd_text)
def test_what_was_expected_and_found(wanted: str, found: str, times: int, argument: str) -> None:
    done = CompletedCall(["python", argument], 0, found * times, wanted)
    failure = failure_of(lambda: done.expect(wanted * times))
    assert (failure is None) is (wanted * times == found * times)
    assert not TERMINAL.search(headline(failure or ""))
    assert not TERMINAL.search(repr(done))
    left, right = side_by_side(wanted * times, found * times)
    assert (left == right) <= (wanted * times == found * times or len(left) > 40 or len(wanted * times) > 500)
    shown = diff("stdout", wanted * times, found * times)
    assert shown is None or not TERMINAL.search(shown)


@fuzzed(2, message=odd_text, file=odd_text, test=odd_text, line=st.none() | st.integers(-1, 10**9), problem=odd_text)
def test_any_finding_is_valid_sarif(message: str, file: str, test: str, line: int | None, problem: str) -> None:
    rule = step("reference").rules[0]
    finding = Finding(
        rule, Location(file.encode("utf-8", "replace").decode().replace("\0", ""), line), message, test=test or None
    )
    report = CheckReport(
        problem, Path("/problems/one"), "local", (StepReport("reference", StepOutcome((finding,)), 1.0),)
    )
    text = json.dumps(sarif([report], 1, Path("/problems")))
    document = json.loads(text)
    SARIF.validate(document)
    assert not TERMINAL.search(document["runs"][0]["results"][0]["message"]["text"])
    json.dumps(document, ensure_ascii=False).encode()
