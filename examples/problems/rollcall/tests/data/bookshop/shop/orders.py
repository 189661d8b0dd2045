"""Orders of customers."""

from shop.shelf import Shelf, shown

try:
    import winsound
except ImportError:

    def ring() -> None:
        print("ding")

else:

    def ring() -> None:
        winsound.Beep(880, 100)


class Queue[T]:
    def __init__(self) -> None:
        self.waiting: list[T] = []

    def put(self, order: T) -> None:
        self.waiting.append(order)

    async def take(self) -> T | None:
        return self.waiting.pop(0) if self.waiting else None

    if __debug__:

        def check(self) -> bool:
            return len(self.waiting) < 100


async def serve(shelf: Shelf, queue: Queue[str]) -> None:
    while (title := await queue.take()) is not None:
        price = shelf.books.pop(title)
        print(f"{title}: {shown(price=price)}")
        ring()
