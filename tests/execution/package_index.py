"""A package index on loopback, with packages that fail in every way that uv tells apart."""

from __future__ import annotations

import contextlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

METADATA = "Metadata-Version: 2.2\nName: {name}\nVersion: 1.0\n"
BACKEND = "def build_wheel(*args):\n    raise SystemExit('gcc: command not found')\n"
BUILD_SYSTEM = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"


def wheel(name: str) -> bytes:
    info = f"{name}-1.0.dist-info"
    files = {
        f"{info}/METADATA": METADATA.format(name=name),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
        return stream.getvalue()


def sdist(name: str, project: str) -> bytes:
    """Its build fails. Without a `[project]`, that build is also what tells its dependencies."""
    files = {"PKG-INFO": METADATA.format(name=name), "pyproject.toml": BUILD_SYSTEM + project, "backend.py": BACKEND}
    if not project:
        files["PKG-INFO"] = files["PKG-INFO"].replace("2.2", "2.1")
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}-1.0/{path}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        return stream.getvalue()


FILES = {
    "good-1.0-py3-none-any.whl": wheel("good"),
    "stalls-1.0-py3-none-any.whl": wheel("stalls"),
    "unbuildable-1.0.tar.gz": sdist("unbuildable", "[project]\nname = 'unbuildable'\nversion = '1.0'\n"),
    "unreadable-1.0.tar.gz": sdist("unreadable", ""),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    end: threading.Event

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        folder, name = self.path.strip("/").split("/", 1)
        if folder == "simple":
            links = "".join(f'<a href="/files/{file}" data-core-metadata="true">{file}</a>' for file in self._of(name))
            self._answer(links.encode(), "text/html")
        elif name.endswith(".metadata"):
            self._answer(METADATA.format(name=name.split("-")[0]).encode(), "text/plain")
        else:
            self._answer(FILES[name], "application/octet-stream", stalls=name.startswith("stalls-"))

    def _of(self, package: str) -> list[str]:
        return [file for file in FILES if file.startswith(f"{package}-") and file.endswith((".whl", ".gz"))]

    def _answer(self, body: bytes, kind: str, *, stalls: bool = False) -> None:
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[: len(body) // 2] if stalls else body)
        if stalls:
            self.end.wait()
            self.close_connection = True


@contextlib.contextmanager
def serve_index() -> Iterator[str]:
    """Its address, as uv takes it."""
    handler = type("OwnHandler", (Handler,), {"end": threading.Event()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        finally:
            handler.end.set()
            server.shutdown()
