"""Starts the shop."""

import asyncio

from shop.orders import Queue, serve
from shop.shelf import Shelf


def main() -> None:
    shelf = Shelf("front")
    shelf.add("Emma", 900)
    queue: Queue[str] = Queue()
    queue.put("Emma")
    asyncio.run(serve(shelf, queue))


if __name__ == "__main__":
    main()
