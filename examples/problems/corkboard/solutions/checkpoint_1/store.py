"""Notes in a directory."""

import json
import threading
from pathlib import Path
from typing import Any

Note = dict[str, Any]


class Store:
    """Every change is on disk before the method returns."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "notes.json"
        self._lock = threading.Lock()
        saved = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
        self._last: int = saved.get("last", 0)
        self._notes: dict[int, Note] = {note["id"]: note for note in saved.get("notes", [])}

    def all(self) -> list[Note]:
        with self._lock:
            return [self._notes[number] for number in sorted(self._notes)]

    def get(self, number: int) -> Note | None:
        with self._lock:
            return self._notes.get(number)

    def add(self, fields: Note) -> Note:
        with self._lock:
            self._last += 1
            self._notes[self._last] = {"id": self._last, **fields}
            self._save()
            return self._notes[self._last]

    def remove(self, number: int) -> bool:
        with self._lock:
            found = self._notes.pop(number, None) is not None
            self._save()
            return found

    def _save(self) -> None:
        content = {"last": self._last, "notes": list(self._notes.values())}
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.replace(self._file)
