"""Table of hostile requests to the reward service: the name, the expected status and the raw bytes of each."""

from __future__ import annotations

import base64
import gzip
import json
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MAIN = "main.py"
ODD_VALUES: dict[str, Any] = {
    "null": None, "true": True, "minus": -1, "large": 10**30, "empty": "", "nul": "\0", "long": "x" * 100_000,
    "list": [], "object": {}, "nested": [[[[]]]], "float": 1.5, "surrogate": "\ud800", "markup": "<script>",
}  # fmt: skip
ODD_NAMES = {
    "parent": "../x", "absolute": "/x", "inner-parent": "a/../../x", "dots": "..", "dot": ".", "empty": "",
    "folder": "a/", "long": "n" * 300, "own-tests": ".evaluation_tests/../../x", "nul": "a\0b",
    "deep": "d/" * 3000 + "x", "double": "a//b/../../../x", "root": "/", "home": "~/x/../../../x",
    "proc": "/proc/self/mem", "surrogate": "\udcff", "evidence": "../.scbench/exit.json",
}  # fmt: skip
ODD_PATHS = {
    "root": "/", "etc": "/etc", "home": "~", "empty": "", "dot": ".", "parent": "..", "nul": "\0",
    "proc": "/proc/self/root",
    "cwd": "/proc/self/cwd", "missing": "/missing", "file": "/etc/passwd", "device": "/dev/null",
    "long": "/" + "x" * 5000,
    "relative": "../../../../etc", "many": "/.." * 500 + "/etc", "url": "file:///etc", "star": "/*",
    "newline": "/etc\n",
    "descriptor": "/proc/self/fd/3", "shm": "/dev/shm",
}  # fmt: skip
LINKS = {
    "absolute": "/etc/passwd",
    "parent": "../../etc/passwd",
    "proc": "/proc/self/environ",
    "dots": "..",
}
KINDS = {
    "symbolic link": tarfile.SYMTYPE, "hard link": tarfile.LNKTYPE, "character device": tarfile.CHRTYPE,
    "block device": tarfile.BLKTYPE, "pipe": tarfile.FIFOTYPE, "contiguous": tarfile.CONTTYPE,
    "sparse": tarfile.GNUTYPE_SPARSE, "unknown": b"Z", "multi-volume": b"M", "label": b"V",
}  # fmt: skip
FIELDS = ("problem", "checkpoint", "submission", "environment", "policy", "tests", "durable")


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", **fields: Any) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, link
    for key, value in fields.items():
        setattr(info, key, value)
    padding = -len(content) % tarfile.BLOCKSIZE
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + content + b"\0" * padding


END = b"\0" * 1024
ZEROS = gzip.compress(bytes(1 << 20)) * 64
"""Compressed in parts, which follow each other in a file; in one part it would take half a second."""


def archives() -> Iterator[tuple[str, bytes]]:
    """None of them is a plain tree of files."""
    for name, odd in ODD_NAMES.items():
        if name not in ("folder", "nul", "surrogate"):  # in an archive these are names as others
            yield f"name {name}", member(odd, b"x") + END
    for name, kind in KINDS.items():
        for where, target in LINKS.items() if "link" in name else [("", "")]:
            yield f"{name} {where}".strip(), member(MAIN, b"x") + member("l", kind=kind, link=target) + END
    yield "file through a link", member("d", kind=tarfile.SYMTYPE, link="/tmp") + member("d/x", b"x") + END
    yield "name twice", member(MAIN, b"1") + member(MAIN, b"2") + END
    yield "file and folder", member("a", b"1") + member("a/b", b"2") + END
    yield "folder and file", member("a/b", b"2") + member("a", b"1") + END
    yield "truncated header", member(MAIN, b"x")[:300]
    yield "truncated content", member(MAIN, b"x" * 5000)[:1000]
    yield "wrong checksum", b"\1" + member(MAIN, b"x")[1:] + END
    yield "no tar", b"PK\3\4" + b"\0" * 2000
    yield "large claim", member(MAIN, size=1 << 40) + END
    yield "huge claim", member(MAIN, size=(1 << 62)) + END
    yield "half of gzip", gzip.compress(member(MAIN, b"x" * 10_000) + END)[:60]
    yield "gzip in gzip", gzip.compress(gzip.compress(member(MAIN, b"x") + END))
    yield "zeros compressed", gzip.compress(member(MAIN, size=8 << 30)) + ZEROS
    yield "padding compressed", gzip.compress(member(MAIN, b"x") + END) + ZEROS
    yield "long name without end", member("././@LongLink", b"x" * 100, b"L")
    yield "pax path", pax({"path": "../../x"}) + member(MAIN, b"x") + END
    yield "pax size", pax({"size": "-5"}) + member(MAIN, b"x") + END
    yield "pax link", pax({"linkpath": "/etc/passwd"}) + member("l", kind=tarfile.SYMTYPE, link="a") + END


def pax(fields: dict[str, str]) -> bytes:
    lines = b""
    for key, value in fields.items():
        text = f" {key}={value}\n".encode()
        size = len(text) + 2
        lines += f"{size}".encode() + text
    return member("pax", lines, tarfile.XHDTYPE)


def order(**fields: Any) -> dict[str, Any]:
    return {"problem": "adding", "checkpoint": 1, "submission": {"files": {MAIN: ""}}, **fields}


def json_bodies() -> Iterator[tuple[str, bytes]]:
    """None of them is a request that can be evaluated."""
    allowed = {("environment", "null"), ("durable", "true"), ("tests", "list")}
    for field in FIELDS:
        for name, value in ODD_VALUES.items():
            if (field, name) not in allowed:
                yield f"{field} {name}", json.dumps(order(**{field: value})).encode()
    for name, odd in ODD_NAMES.items():
        yield f"file {name}", json.dumps(order(submission={"files": {odd: "x"}})).encode()
    for name, archive in archives():
        yield f"archive {name}", json.dumps(order(submission={"tar": base64.b64encode(archive).decode()})).encode()
    for field in FIELDS[:3]:
        yield f"without {field}", json.dumps({key: value for key, value in order().items() if key != field}).encode()
    yield "empty", b""
    yield "no json", b"{"
    yield "deep list", b"[" * 200_000
    yield "deep object", b'{"a":' * 100_000
    yield "text", b'"text"'
    yield "numbers", b"1" * 1_000_000
    yield "not utf-8", b'{"problem": "\xff"}'
    yield "key twice", b'{"problem": "adding", "problem": "../x", "checkpoint": 1, "submission": {"files": {}}}'
    yield "two ways", json.dumps(order(submission={"files": {}, "path": "/etc"})).encode()
    yield "more tests than allowed", json.dumps(order(tests=["x"] * 1001)).encode()
    yield "an option of pytest", json.dumps(order(tests=["-p", "os"])).encode()
    yield "a file of arguments", json.dumps(order(tests=["@/etc/passwd"])).encode()


def path_bodies() -> Iterator[tuple[str, int, bytes]]:
    for name, path in ODD_PATHS.items():
        status = 422 if name == "long" else 403
        yield f"path {name}", status, json.dumps(order(submission={"path": path})).encode()


def raw_requests() -> Iterator[tuple[str, int, bytes]]:
    """Damaged HTTP, which has status 400, and addresses that lead nowhere. `HOST` is replaced."""
    head = b"Host: HOST\r\n"
    lines = {
        "no http": (400, b"hello\r\n\r\n"),
        "unknown method": (405, b"STEAL /evaluate HTTP/1.1\r\n" + head + b"\r\n"),
        "unknown route": (404, b"GET /missing HTTP/1.1\r\n" + head + b"\r\n"),
        "get of a post": (405, b"GET /evaluate HTTP/1.1\r\n" + head + b"\r\n"),
        "parent in the address": (404, b"GET /../../etc/passwd HTTP/1.1\r\n" + head + b"\r\n"),
        "coded parent": (404, b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + head + b"\r\n"),
        "job parent": (404, b"GET /jobs/..%2f..%2fx HTTP/1.1\r\n" + head + b"\r\n"),
        "job lock": (404, b"GET /jobs/.lock HTTP/1.1\r\n" + head + b"\r\n"),
        "job long": (404, b"GET /jobs/" + b"a" * 5000 + b" HTTP/1.1\r\n" + head + b"\r\n"),
        "job delete": (404, b"DELETE /jobs/..%2f HTTP/1.1\r\n" + head + b"\r\n"),
        "job glob": (404, b"DELETE /jobs/* HTTP/1.1\r\n" + head + b"\r\n"),
        "job of zeros": (404, b"DELETE /jobs/" + b"0" * 32 + b" HTTP/1.1\r\n" + head + b"\r\n"),
        "long address": (400, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + head + b"\r\n"),
        "nul in the address": (404, b"GET /jobs/%00 HTTP/1.1\r\n" + head + b"\r\n"),
        "large header": (400, b"GET /problems HTTP/1.1\r\n" + head + b"X: " + b"a" * 300_000 + b"\r\n\r\n"),
        "many headers": (404, b"GET /missing HTTP/1.1\r\n" + head + b"X: a\r\n" * 9000 + b"\r\n"),
        "wrong host": (421, b"GET /problems HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        "no host": (400, b"GET /problems HTTP/1.1\r\n\r\n"),
        "negative length": (400, b"POST /evaluate HTTP/1.1\r\n" + head + b"Content-Length: -1\r\n\r\n"),
        "large length": (413, b"POST /evaluate HTTP/1.1\r\n" + head + b"Content-Length: 99999999999999\r\n\r\n"),
        "word length": (400, b"POST /evaluate HTTP/1.1\r\n" + head + b"Content-Length: many\r\n\r\n"),
        "two lengths": (400, b"POST /evaluate HTTP/1.1\r\n" + head
        + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        "length and chunks": (422, b"POST /evaluate HTTP/1.1\r\n" + head
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET"),
        "wrong chunk": (400, b"POST /evaluate HTTP/1.1\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n"),
        "unknown coding": (400, b"POST /evaluate HTTP/1.1\r\n" + head + b"Transfer-Encoding: zip\r\n\r\n"),
        "line ends in a header": (421, b"GET /problems HTTP/1.1\r\nHost: example.com\r\n HOST\r\n\r\n"),
        "upgrade": (404, b"GET /missing HTTP/1.1\r\n" + head + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n"),
        "tar without fields": (422, b"POST /evaluate HTTP/1.1\r\n" + head
        + b"Content-Type: application/x-tar\r\nContent-Length: 0\r\n\r\n"),
        "tar with unknown fields": (422, b"POST /evaluate?problem=adding&checkpoint=1&output=/x HTTP/1.1\r\n" + head
        + b"Content-Type: application/x-tar\r\nContent-Length: 0\r\n\r\n"),
        "tar of nothing": (422, b"POST /evaluate?problem=adding&checkpoint=1 HTTP/1.1\r\n" + head
        + b"Content-Type: application/x-tar\r\nContent-Length: 4\r\n\r\nnone"),
    }  # fmt: skip
    yield from ((name, status, request) for name, (status, request) in lines.items())


def all_requests() -> list[tuple[str, int, bytes]]:
    """Each as the bytes to send."""
    verify = {"nothing": b"{}", "text": b'{"verifier_metadata": "x"}', "list": b"[]"}
    durable = json.dumps({"requests": [order(durable=True)]}).encode()
    batch = {"none": b'{"requests": []}', "null": b"null", "durable": durable}
    names = json.dumps({"verify_responses": [{f"n{number}": 1 for number in range(2000)}]}).encode()
    aggregate = {"names": names, "text": b'{"verify_responses": "x"}', "texts": b'{"verify_responses": ["x"]}'}
    return [
        *((f"aggregate {name}", 422, post("/aggregate_metrics", body)) for name, body in aggregate.items()),
        *((name, 422, post("/evaluate", body)) for name, body in json_bodies()),
        *((name, status, post("/evaluate", body)) for name, status, body in path_bodies()),
        *((f"verify {name}", 422, post("/verify", body)) for name, body in verify.items()),
        *((f"batch {name}", 422, post("/evaluate/batch", body)) for name, body in batch.items()),
        *raw_requests(),
    ]


def post(route: str, body: bytes) -> bytes:
    return f"POST {route} HTTP/1.1\r\nHost: HOST\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
