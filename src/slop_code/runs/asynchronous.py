"""The same from a coroutine: for a training loop that has other things to do meanwhile."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from slop_code.runs.background import Background
from slop_code.runs.evaluate_run import evaluate_run
from slop_code.runs.run_control import RunControl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from slop_code.runs.background import Told
    from slop_code.runs.evaluate_run import Runs
    from slop_code.runs.job_records import SubmissionOutcome


async def evaluate_run_async(runs: Runs, **options: Any) -> AsyncIterator[SubmissionOutcome]:
    """As `evaluate_run`, with its options. At most `workers` run at a time.

    When the task that waits for an outcome is cancelled, or the generator is closed, what runs is ended and cleaned
    up before the cancellation goes on.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[Told] = asyncio.Queue()
    control: RunControl = options.pop("control", None) or RunControl()

    def tell(value: Told) -> None:
        loop.call_soon_threadsafe(arrived.put_nowait, value)

    outcomes = inspect.unwrap(evaluate_run)(runs, control=control, **options)
    background = Background(outcomes, control, tell)
    try:
        while (value := await arrived.get()) is not None:
            if isinstance(value, BaseException):
                raise value
            yield value
    finally:
        background.stop()
        await _ended(background)


async def _ended(background: Background) -> None:
    """However often whoever waits is cancelled meanwhile."""
    joining = asyncio.ensure_future(asyncio.to_thread(background.join))
    cancelled: asyncio.CancelledError | None = None
    while not joining.done():
        try:
            await asyncio.shield(joining)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
