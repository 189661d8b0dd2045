"""Notes and their life over a restart."""

from typing import Any

import pytest

Board = Any


def without_tags(note: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in note.items() if key != "tags"}


def test_health(board: Board) -> None:
    board.expect("GET", "/health", status=200, value={"status": "ok"})


def test_a_new_note_is_answered(own_board: Board) -> None:
    status, note = own_board.ask("POST", "/notes", {"text": "buy milk"})
    assert (status, without_tags(note)) == (201, {"id": 1, "text": "buy milk"})


def test_a_note_can_be_read(board: Board) -> None:
    number = board.pin("water the plants")
    status, note = board.ask("GET", f"/notes/{number}")
    assert (status, without_tags(note)) == (200, {"id": number, "text": "water the plants"})


def test_all_notes_by_rising_id(own_board: Board) -> None:
    for text in ("one", "two", "three"):
        own_board.pin(text)
    status, listing = own_board.ask("GET", "/notes")
    assert status == 200
    assert [(note["id"], note["text"]) for note in listing["notes"]] == [(1, "one"), (2, "two"), (3, "three")]


def test_a_deleted_note_is_gone(board: Board) -> None:
    number, other = board.pin("old"), board.pin("new")
    board.expect("DELETE", f"/notes/{number}", status=204)
    board.expect("GET", f"/notes/{number}", status=404, value={"error": f"no note {number}"})
    assert board.ask("GET", f"/notes/{other}")[0] == 200


def test_notes_survive_a_restart(own_board: Board) -> None:
    number = own_board.pin("still here")
    own_board.restart()
    status, note = own_board.ask("GET", f"/notes/{number}")
    assert (status, without_tags(note)) == (200, {"id": number, "text": "still here"})


@pytest.mark.functionality
def test_ids_are_not_given_twice(own_board: Board) -> None:
    numbers = [own_board.pin("first"), own_board.pin("second")]
    own_board.expect("DELETE", f"/notes/{numbers[-1]}", status=204)
    own_board.restart()
    own_board.expect("GET", "/notes/2", status=404, value={"error": "no note 2"})
    assert [*numbers, own_board.pin("third")] == [1, 2, 3]


@pytest.mark.functionality
@pytest.mark.parametrize(
    ("written", "kept"),
    [("  spaced  out \n", "spaced  out"), ('"quoted" \u00e9\u4e16', '"quoted" \u00e9\u4e16')],
)
def test_text_is_kept(board: Board, written: str, kept: str) -> None:
    status, note = board.ask("GET", f"/notes/{board.pin(written)}")
    assert (status, note["text"]) == (200, kept)


@pytest.mark.error
@pytest.mark.parametrize("raw", [b"", b"{", b'["text"]'])
def test_body_is_not_an_object(board: Board, raw: bytes) -> None:
    board.expect("POST", "/notes", raw=raw, status=400, value={"error": "body is not a JSON object"})


@pytest.mark.error
@pytest.mark.parametrize("body", [{}, {"text": " \t"}, {"text": 7}])
def test_text_is_wrong(board: Board, body: object) -> None:
    board.expect("POST", "/notes", body, status=400, value={"error": "text must be a non-empty string"})


@pytest.mark.error
@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/notes/999999", 404, "no note 999999"),
        ("DELETE", "/notes/999999", 404, "no note 999999"),
        ("GET", "/notes/seven", 404, "no such path"),
        ("DELETE", "/notes", 405, "method not allowed"),
    ],
)
def test_wrong_request(board: Board, method: str, path: str, status: int, error: str) -> None:
    board.expect(method, path, status=status, value={"error": error})
