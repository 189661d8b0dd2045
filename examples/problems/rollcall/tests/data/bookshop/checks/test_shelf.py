"""Tests of the shop, which are nothing but sources here."""

from shop.shelf import Shelf


class TestShelf:
    def test_a_full_shelf_takes_no_book(self) -> None:
        shelf = Shelf("back", room=0)
        try:
            shelf.add("Emma", 900)
        except Shelf.Full:
            return
        raise AssertionError


def test_label() -> None:
    shelf = Shelf("front")
    shelf.add("Emma", 900)
    assert shelf.label == "front (Emma)"


def helper() -> None:
    test_label()
