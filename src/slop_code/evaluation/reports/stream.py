"""The stream: JSON lines that the judge writes after every event, so that they are kept if it is killed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from slop_code._io import open_regular
from slop_code.evaluation.reports.raw_test import (
    XPASSED,
    RawTest,
    ReportError,
    duration_in,
    load_object,
    member,
    objects,
    optional_text,
    status_of,
)
from slop_code.evaluation.roster import RosterEntry, entries_from, normal_nodeid
from slop_code.evaluation.usage.resources import NO_RESOURCES, Resources, parse_resources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE_LIMIT = 2 * 1024 * 1024
"""Larger than any line of the plugin, even if every character of its texts is escaped."""

TOTAL_LIMIT = 256 * 1024 * 1024
_MAX_FAULTS = 20


@dataclass(slots=True)
class Stream:
    results: dict[str, RawTest] = field(default_factory=dict)
    """Results by node id."""

    resources: dict[str, Resources] = field(default_factory=dict)
    """What each test used, by node id; tests of which nothing is known are left out."""

    refused: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Paths that were not handed over, each with the reason, by the node id of the test."""

    last_started: str | None = None

    collected: tuple[RosterEntry, ...] = ()
    deselected: set[str] = field(default_factory=set)
    loaded: tuple[str, ...] | None = None
    """Files of the tests folder that pytest had loaded after the collection."""

    import_roots: tuple[str, ...] = ()
    """Folders of the tests folder that were in `sys.path` then."""

    collection_errors: list[str] = field(default_factory=list)
    finished: int | None = None
    faults: list[str] = field(default_factory=list)
    """Errors in the file itself, without its name."""

    @property
    def running(self) -> str | None:
        """The test that was started last, if it has no result."""
        return None if self.last_started in self.results else self.last_started

    def add_fault(self, fault: str) -> None:
        if len(self.faults) < _MAX_FAULTS:
            self.faults.append(fault)


def read_stream(path: Path) -> Stream:
    stream = Stream()
    try:
        with open_regular(path) as file:
            _read(file, stream)
    except FileNotFoundError:
        stream.add_fault("is missing")
    except OSError as error:
        stream.add_fault(f"cannot be read: {error.strerror}")
    return stream


def _read(file: BinaryIO, stream: Stream) -> None:
    for number, line in enumerate(_lines(file), start=1):
        if line is None:
            stream.add_fault(f"is larger than {TOTAL_LIMIT} bytes")
            return
        try:
            if len(line) > LINE_LIMIT:
                raise ReportError(f"longer than {LINE_LIMIT} bytes")
            _take(load_object(line), stream)
        except ValueError as error:
            stream.add_fault(f"line {number}: {error}")


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Complete lines, of which long ones are cut after LINE_LIMIT; None at the end if the file exceeds TOTAL_LIMIT."""
    total = 0
    while line := file.readline(LINE_LIMIT + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            total += len(rest)
            if total > TOTAL_LIMIT:
                break
            rest = file.readline(LINE_LIMIT + 1)
        total += len(rest)
        if total > TOTAL_LIMIT:
            yield None
            return
        if rest.endswith(b"\n"):
            yield line


def _take(line: dict[str, Any], stream: Stream) -> None:
    kind = line.get("kind")
    match kind:
        case "start":
            stream.last_started = normal_nodeid(member(line, "nodeid", str, kind))
        case "collected":
            stream.collected += entries_from(objects(line, "tests", kind))
        case "deselected":
            member(line, "nodeids", list, kind)
            stream.deselected.update(map(normal_nodeid, _texts(line, "nodeids", kind)))
        case "loaded":
            stream.loaded, stream.import_roots = _texts(line, "files", kind), _texts(line, "import_roots", kind)
        case "result":
            _take_result(line, stream)
        case "refused":
            paths = objects(line, "paths", kind)
            pairs = [(member(path, "path", str, kind), member(path, "reason", str, kind)) for path in paths]
            stream.refused[normal_nodeid(member(line, "nodeid", str, kind))] = tuple(pairs)
        case "collect_error":
            nodeid = member(line, "nodeid", str, kind)
            stream.collection_errors.append(f"{nodeid}: {optional_text(line, 'message') or 'no message'}")
        case "finish":
            stream.finished = member(line, "exitstatus", int, kind)
        case _:
            raise ReportError("of no known kind")


def _take_result(line: dict[str, Any], stream: Stream) -> None:
    nodeid = normal_nodeid(member(line, "nodeid", str, "result"))
    resources = parse_resources(line)
    if nodeid in stream.results:
        raise ReportError(f"{nodeid} is reported twice")
    status = status_of(member(line, "status", str, "result"))
    xpassed = status == "failed" and line.get("xpassed") is True
    message = XPASSED if xpassed else optional_text(line, "message")
    stream.results[nodeid] = RawTest(
        nodeid=nodeid,
        status=status,
        duration_ms=duration_in(line, "duration_ms", "result"),
        markers=_texts(line, "markers", "result"),
        message=None if status == "passed" else message,
        xpassed=xpassed,
        calls=_texts(line, "calls", "result"),
        output=optional_text(line, "output"),
    )
    if resources != NO_RESOURCES:
        stream.resources[nodeid] = resources


def _texts(line: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    texts = line.get(key) or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ReportError(f"{where}: {key} is not a list of texts")
    return tuple(texts)
