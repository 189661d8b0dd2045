"""What the service answers, without HTTP."""

import json
import re
from collections import Counter
from typing import Any
from urllib.parse import parse_qs, urlsplit

from store import Note, Store

Answer = tuple[int, dict[str, Any] | None]

NO_PATH: Answer = (404, {"error": "no such path"})
NOT_ALLOWED: Answer = (405, {"error": "method not allowed"})


class BadRequest(Exception):  # noqa: N818
    pass


def answer(store: Store, method: str, target: str, body: bytes) -> Answer:
    path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
    try:
        if path == "/health":
            return (200, {"status": "ok"}) if method == "GET" else NOT_ALLOWED
        if path == "/notes":
            return collection(store, method, query.get("tag", [""])[0].lower(), body)
        if path == "/tags":
            return (200, {"tags": tag_counts(store)}) if method == "GET" else NOT_ALLOWED
        match = re.fullmatch(r"/notes/(\d+)", path)
        return single(store, method, int(match[1]), body) if match else NO_PATH
    except BadRequest as error:
        return 400, {"error": str(error)}


def collection(store: Store, method: str, tag: str, body: bytes) -> Answer:
    if method == "GET":
        return 200, {"notes": [note for note in store.all() if not tag or tag in note["tags"]]}
    if method == "POST":
        fields = parsed(body)
        return 201, store.add({"text": text_of(fields), "tags": tags_of(fields)})
    return NOT_ALLOWED


def single(store: Store, method: str, number: int, body: bytes) -> Answer:
    if method not in ("GET", "PUT", "DELETE"):
        return NOT_ALLOWED
    note = store.get(number)
    if note and method == "PUT":
        note = store.change(number, changes(parsed(body)))
    if note and method == "DELETE" and store.remove(number):
        return 204, None
    return (200, note) if note else (404, {"error": f"no note {number}"})


def tag_counts(store: Store) -> dict[str, int]:
    return Counter(tag for note in store.all() for tag in note["tags"])


def changes(fields: Note) -> Note:
    readers = {"text": text_of, "tags": tags_of}
    found = {name: read(fields) for name, read in readers.items() if name in fields}
    if not found:
        raise BadRequest("nothing to change")
    return found


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


def tags_of(fields: Note) -> list[str]:
    tags = fields.get("tags", [])
    if not isinstance(tags, list) or not all(is_word(tag) for tag in tags):
        raise BadRequest("tags must be a list of words")
    return sorted({tag.lower() for tag in tags})


def is_word(tag: object) -> bool:
    return isinstance(tag, str) and re.fullmatch(r"[A-Za-z0-9-]+", tag) is not None
