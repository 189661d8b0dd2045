"""What the service answers, without HTTP."""

import json
import re
from typing import Any

from store import Note, Store

Answer = tuple[int, dict[str, Any] | None]

NO_PATH: Answer = (404, {"error": "no such path"})
NOT_ALLOWED: Answer = (405, {"error": "method not allowed"})


class BadRequest(Exception):  # noqa: N818
    pass


def answer(store: Store, method: str, path: str, body: bytes) -> Answer:
    try:
        if path == "/health":
            return (200, {"status": "ok"}) if method == "GET" else NOT_ALLOWED
        if path == "/notes":
            return collection(store, method, body)
        match = re.fullmatch(r"/notes/(\d+)", path)
        return single(store, method, int(match[1])) if match else NO_PATH
    except BadRequest as error:
        return 400, {"error": str(error)}


def collection(store: Store, method: str, body: bytes) -> Answer:
    if method == "GET":
        return 200, {"notes": store.all()}
    if method == "POST":
        return 201, store.add({"text": text_of(parsed(body))})
    return NOT_ALLOWED


def single(store: Store, method: str, number: int) -> Answer:
    if method not in ("GET", "DELETE"):
        return NOT_ALLOWED
    if method == "DELETE" and store.remove(number):
        return 204, None
    note = store.get(number)
    return (200, note) if note else (404, {"error": f"no note {number}"})


def parsed(body: bytes) -> Note:
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BadRequest("body is not a JSON object")
    return value


def text_of(fields: Note) -> str:
    text = fields.get("text")
    if not isinstance(text, str) or not text.strip():
        raise BadRequest("text must be a non-empty string")
    return text.strip()
