"""The same from a coroutine: for a training loop that has other things to do meanwhile."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from slop_code.runs.control import Control
from slop_code.runs.evaluate import evaluate_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from slop_code.runs.evaluate import Runs
    from slop_code.runs.records import Outcome


async def evaluate_run_async(runs: Runs, **options: Any) -> AsyncIterator[Outcome]:
    """As `evaluate_run`, with its options. At most `workers` run at a time.

    When the task that waits for an outcome is cancelled, or the generator is closed, what runs is ended and cleaned
    up before the cancellation goes on.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Outcome | BaseException | None] = asyncio.Queue()
    control: Control = options.pop("control", None) or Control()

    def tell(value: Outcome | BaseException | None) -> None:
        loop.call_soon_threadsafe(arrived.put_nowait, value)

    def work() -> None:
        try:
            for outcome in evaluate_run(runs, control=control, **options):
                tell(outcome)
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            tell(error)
        else:
            tell(None)

    thread = threading.Thread(target=work, name="slop-code run")
    thread.start()
    try:
        while (value := await arrived.get()) is not None:
            if isinstance(value, BaseException):
                raise value
            yield value
    finally:
        control.stop()
        await asyncio.shield(asyncio.to_thread(thread.join))
