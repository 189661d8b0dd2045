"""Tags, changes and filters."""

from typing import Any

import pytest

Board = Any


def texts(answer: tuple[int, Any]) -> list[str]:
    status, listing = answer
    assert status == 200, f"expected 200, found {status} {listing}"
    return [note["text"] for note in listing["notes"]]


def test_a_note_has_tags(board: Board) -> None:
    number = board.pin("paint", tags=["home", "garden"])
    note = {"id": number, "text": "paint", "tags": ["garden", "home"]}
    board.expect("GET", f"/notes/{number}", status=200, value=note)


def test_a_note_without_tags_has_an_empty_list(board: Board) -> None:
    number = board.pin("plain")
    board.expect("GET", f"/notes/{number}", status=200, value={"id": number, "text": "plain", "tags": []})


@pytest.mark.parametrize(
    ("change", "text", "tags"),
    [
        ({"text": "after"}, "after", ["a"]),
        ({"tags": ["b"]}, "before", ["b"]),
        ({"text": "after", "tags": []}, "after", []),
    ],
)
def test_change(board: Board, change: object, text: str, tags: list[str]) -> None:
    number = board.pin("before", tags=["a"])
    note = {"id": number, "text": text, "tags": tags}
    board.expect("PUT", f"/notes/{number}", change, status=200, value=note)
    board.expect("GET", f"/notes/{number}", status=200, value=note)


def test_filter(own_board: Board) -> None:
    own_board.pin("one", tags=["red"])
    own_board.pin("two", tags=["blue"])
    own_board.pin("three", tags=["blue", "red"])
    assert texts(own_board.ask("GET", "/notes?tag=red")) == ["one", "three"]
    assert texts(own_board.ask("GET", "/notes?tag=green")) == []


def test_tags_are_counted(own_board: Board) -> None:
    own_board.expect("GET", "/tags", status=200, value={"tags": {}})
    own_board.pin("one", tags=["red"])
    number = own_board.pin("two", tags=["blue", "red"])
    own_board.expect("GET", "/tags", status=200, value={"tags": {"blue": 1, "red": 2}})
    own_board.expect("DELETE", f"/notes/{number}", status=204)
    own_board.expect("GET", "/tags", status=200, value={"tags": {"red": 1}})


@pytest.mark.functionality
def test_tags_are_lower_case_and_once(board: Board) -> None:
    number = board.pin("x", tags=["Zoo", "apple", "zoo"])
    note = {"id": number, "text": "x", "tags": ["apple", "zoo"]}
    board.expect("GET", f"/notes/{number}", status=200, value=note)


@pytest.mark.functionality
def test_filter_ignores_case(own_board: Board) -> None:
    own_board.pin("one", tags=["To-Do"])
    own_board.pin("two")
    assert texts(own_board.ask("GET", "/notes?tag=TO-DO")) == ["one"]


@pytest.mark.functionality
def test_changes_survive_a_restart(own_board: Board) -> None:
    number = own_board.pin("before", tags=["a"])
    own_board.ask("PUT", f"/notes/{number}", {"text": "after", "tags": ["b", "c"]})
    own_board.restart()
    note = {"id": number, "text": "after", "tags": ["b", "c"]}
    own_board.expect("GET", f"/notes/{number}", status=200, value=note)
    own_board.expect("GET", "/tags", status=200, value={"tags": {"b": 1, "c": 1}})


@pytest.mark.error
@pytest.mark.parametrize("tags", ["home", [7], ["two words"], [""]])
def test_tags_are_wrong(board: Board, tags: object) -> None:
    error = {"error": "tags must be a list of words"}
    board.expect("POST", "/notes", {"text": "x", "tags": tags}, status=400, value=error)


@pytest.mark.error
def test_nothing_to_change(board: Board) -> None:
    number = board.pin("x")
    board.expect("PUT", f"/notes/{number}", {}, status=400, value={"error": "nothing to change"})


@pytest.mark.error
def test_unknown_note_comes_before_a_wrong_body(board: Board) -> None:
    board.expect("PUT", "/notes/999999", {"text": ""}, status=404, value={"error": "no note 999999"})


@pytest.mark.regression
def test_listing_without_filter_has_every_note(own_board: Board) -> None:
    own_board.pin("one", tags=["red"])
    own_board.pin("two")
    assert texts(own_board.ask("GET", "/notes")) == ["one", "two"]
