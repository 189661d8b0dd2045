"""Places on the processors of this machine, which evaluations with the same cache divide among themselves."""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING

from slop_code.execution.cache import PLACES, open_lock, try_lock
from slop_code.execution.concurrency import available_cpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from slop_code.execution.cache import Cache


@contextlib.contextmanager
def processor_places(cache: Cache) -> Iterator[Callable[[int], int]]:
    """Yields a function that takes up to a number of free places, without waiting, and returns how many it took.

    There is a place for each processor. A place is a locked file, so that it is free again when its holder ends,
    however that happens. Where the cache cannot have locks, every place counts as free.
    """
    with contextlib.ExitStack() as held:

        def take(wanted: int) -> int:
            taken = 0
            for number in range(available_cpus()):
                if taken == wanted:
                    break
                try:
                    lock = open_lock(cache.root / PLACES / str(number))
                    held.callback(lock.close)
                    taken += try_lock(lock, fcntl.LOCK_EX)
                except OSError:
                    return min(wanted, available_cpus())
            return taken

        yield take
