"""A model that answers by a script, with the interface of OpenAI, around a command.

Arguments: a JSON file with an answer for the first line of each prompt, and a command, in whose arguments `BASE_URL`
stands for the server.
"""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ANSWERS = json.loads(Path(sys.argv[1]).read_text())


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        title = body["messages"][-1]["content"].partition("\n")[0]
        message = {"role": "assistant", "content": ANSWERS[title]}
        answer = {
            "id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    status = subprocess.run([argument.replace("BASE_URL", url) for argument in sys.argv[2:]]).returncode
    server.shutdown()
sys.exit(status)
