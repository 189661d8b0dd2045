"""Books for sale."""

from collections.abc import Iterator
from functools import cached_property

type Price = int
type Books = dict[str, Price]


class Shelf:
    class Full(Exception):
        """There is no room for a book."""

    def __init__(self, place: str, room: int = 3) -> None:
        self.place, self.room = place, room
        self.books: Books = {}

    def add(self, title: str, price: Price) -> None:
        if len(self.books) >= self.room:
            raise Shelf.Full(f"{self.place}: no room for {title!r}")
        self.books[title] = price

    @cached_property
    def label(self) -> str:
        return f"{self.place} ({", ".join(self.titles())})"

    @property
    def total(self) -> Price:
        return sum(self.books.values())

    def titles(self) -> Iterator[str]:
        def by_price(title: str) -> Price:
            return self.books[title]

        yield from sorted(self.books, key=by_price)


def shown(price: Price) -> str:
    """As in "9.00", and never as total."""
    return f"{price // 100}.{price % 100:02}"
