"""The corkboard service."""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from board import answer
from store import Store

ADDRESS = ("127.0.0.1", 8080)


class Handler(BaseHTTPRequestHandler):
    store: Store

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, value = answer(self.store, self.command, self.path, body)
        payload = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        if payload:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_POST = do_PUT = do_DELETE = handle_request  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Requests are not worth a line each."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    Handler.store = Store(parser.parse_args().data)
    ThreadingHTTPServer(ADDRESS, Handler).serve_forever()


if __name__ == "__main__":
    main()
