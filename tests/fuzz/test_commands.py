"""Commands over folders with results that anyone may have written: words and an exit status, never a traceback."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from hypothesis import strategies as st

from slop_code.cli.main import run
from slop_code.evaluation.report import CorrectnessResults
from slop_code.runs.checkpoint_lines import CheckpointLine, read_lines, write_lines
from slop_code.runs.read_results import read_runs
from tests.factories import write_run
from tests.fuzz.odd_input import PIECES, TERMINAL, answered, as_json, damaged, edited, fuzzed, odd_text
from tests.reporting.html_runs import Shape, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DATA = Path(__file__).parents[1] / "data" / "results"
STORED = (DATA / "stored" / "evaluation.json").read_bytes()
MAX_OUTPUT = 4 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("commands")
    for name in ("one", "two"):
        for number in (1, 2):
            shutil.copytree(DATA / "stored", base / name / "words" / f"checkpoint_{number}")
    return base


def called(*argv: str | Path) -> tuple[int, bytes, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([os.fspath(word) for word in argv])
    out.flush()
    said: bytes = out.buffer.getvalue()  # type: ignore[attr-defined]
    assert "Traceback" not in err.getvalue(), err.getvalue()
    assert status in (0, 1, 2, 3)
    assert not TERMINAL.search(err.getvalue())
    assert len(said) < MAX_OUTPUT
    return status, said, err.getvalue()


def plain(said: bytes) -> None:
    assert not TERMINAL.search(said.decode())


def strict_json(text: str | bytes) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def is_json(said: bytes) -> None:
    plain(said)
    if said:
        strict_json(said)


def is_xml(said: bytes) -> None:
    plain(said)
    ElementTree.fromstring(said)


def is_csv(said: bytes) -> None:
    widths = {len(row) for row in csv.reader(io.StringIO(said.decode(), newline=""))}
    assert len(widths) == 1


COMMANDS: dict[str, tuple[Callable[[bytes], None], Sequence[str]]] = {
    "show": (plain, ["show", "one/words/checkpoint_1", "-v"]),
    "show one": (plain, ["show", "one/words/checkpoint_1", "shouts"]),
    "show json": (is_json, ["show", "one/words/checkpoint_1", "--json"]),
    "verify": (plain, ["verify", "one"]),
    "verify json": (is_json, ["verify", "one", "--json"]),
    "compare": (plain, ["compare", "one", "two", "-v"]),
    "compare json": (is_json, ["compare", "two", "one", "--json"]),
    "compare page": (plain, ["compare", "one", "two", "-o", "compare.html"]),
    "report": (plain, ["report", "one", "two", "-o", "report.html"]),
    "junit": (is_xml, ["export", "one", "--format", "junit"]),
    "ctrf": (is_json, ["export", "one", "--format", "ctrf"]),
    "csv": (is_csv, ["export", "one", "--format", "csv"]),
    "markdown": (plain, ["export", "one", "two", "--format", "markdown"]),
}

stored = st.one_of(edited(json.loads(STORED)).map(as_json), damaged(STORED))


@st.composite
def consistent(draw: st.DrawFn) -> bytes:
    """A result that loads, with odd texts wherever there is one."""
    document = json.loads(STORED)
    document["problem_name"], document["evidence"] = draw(odd_text), draw(odd_text)
    document["isolation"] = {draw(odd_text): draw(odd_text)}
    document["provenance"]["platform"] = draw(odd_text)
    for number, test in enumerate(document["tests"]):
        for name in ("id", "file_path", "checkpoint", "failure_message", "output"):
            if draw(st.booleans()) or not test.get(name, ""):
                test[name] = draw(odd_text)
        test["id"] += str(number)
        test["calls"], test["markers"] = [draw(odd_text)], [draw(odd_text)]
        test["duration_ms"] = draw(st.floats(0, 1e15))
    for name in ("passed", "pass_counts", "total_counts", "infrastructure_failure"):
        del document[name]
    results = CorrectnessResults.model_validate(document)
    return json.dumps(results.model_dump(mode="json")).encode()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_answer_for_damaged_results(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    check, argv = COMMANDS[name]

    @fuzzed(5, first=stored | consistent(), second=st.none() | stored | consistent())
    def examples(first: bytes, second: bytes | None) -> None:
        for raw, number in ((first, 1), (second or STORED, 2)):
            Path(f"one/words/checkpoint_{number}/evaluation.json").write_bytes(raw)
        status, said, err = called(*argv)
        if status in (2, 3) and err.startswith("slop-code: "):
            assert len(err.splitlines()) < 20  # what it had written by then is no document
        else:
            check(said)
        for page in Path().glob("*.html"):
            _whole_page(page)

    examples()


def _whole_page(page: Path) -> None:
    """The texts of others are data in it: none is an element, whatever it says."""
    shape = Shape(page.read_text("utf-8"))
    assert shape.elements.count(("/html",)) == 1
    assert not any(element[0] == "comment" for element in shape.elements[1:])
    for name, text in shape.texts.items():
        if name.startswith("data"):
            strict_json(json.dumps(unpacked(text)))
    page.unlink()


LINES = Path("one") / "checkpoint_results.jsonl"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The summary of a run, as an evaluation leaves it."""
    run_folder = write_run(tmp_path_factory.mktemp("lines") / "one", {"words": ["+-", "-+"]})
    known = [entry.line for entry in next(iter(read_runs([run_folder]))).entries()]
    write_lines(run_folder / LINES.name, known)
    return (run_folder / LINES.name).read_bytes()


def test_commands_answer_for_damaged_summary_lines(folder: Path, lines: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for number in (1, 2):
        Path(f"one/words/checkpoint_{number}/evaluation.json").write_bytes(STORED)
    first, *rest = lines.splitlines(keepends=True)
    line = edited(json.loads(first)).map(lambda one: as_json(one) + b"\n" + b"".join(rest))

    @fuzzed(2, raw=damaged(lines) | line, command=st.sampled_from(sorted(COMMANDS)))
    def examples(raw: bytes, command: str) -> None:
        LINES.write_bytes(raw)
        try:
            found = answered(lambda: read_lines(LINES))
            called(*COMMANDS[command][1])
        finally:
            LINES.unlink()
        if found is not None:
            write_lines(LINES.with_name("again"), found)
            again = read_lines(LINES.with_name("again"))
            assert sorted(again, key=CheckpointLine.model_dump_json) == sorted(
                found, key=CheckpointLine.model_dump_json
            )

    examples()


@fuzzed(words=st.lists(st.sampled_from([*PIECES, "show", "export", "-o", "--format", "csv", "--json"]), max_size=4))
def test_words_that_a_person_typed(folder: Path, words: list[str]) -> None:
    with contextlib.chdir(folder):
        status, _, _ = called("show", *words)
    assert status in (0, 2, 3)
