"""Outcomes from a thread of their own: what is evaluated never waits for whoever reads."""

from __future__ import annotations

import contextlib
import functools
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, ParamSpec, cast

from slop_code.runs.run_control import RunControl

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from slop_code.runs.job_records import SubmissionOutcome

    Told = SubmissionOutcome | BaseException | None
    PassedByTest = Generator[SubmissionOutcome, None, None]

Options = ParamSpec("Options")


class Background:
    """Tells each outcome, then the error that ended it, or None."""

    def __init__(self, outcomes: PassedByTest, control: RunControl, tell: Callable[[Told], object]) -> None:
        self._outcomes, self._control, self._tell = outcomes, control, tell
        self._ended = False
        self._thread = threading.Thread(target=self._work, name="slop-code run")
        self._thread.start()

    def _work(self) -> None:
        end: BaseException | None = None
        try:
            with contextlib.closing(self._outcomes):
                for outcome in self._outcomes:
                    self._tell(outcome)
        except BaseException as error:  # noqa: BLE001  (it is raised where it is waited for)
            end = error
        self._ended = True
        self._tell(end)

    def stop(self) -> None:
        """A control may outlive what it controls: one that came to its end by itself was not stopped."""
        if not self._ended:
            self._control.stop()

    def join(self) -> None:
        self._thread.join()


def in_background(outcomes: Callable[Options, PassedByTest]) -> Callable[Options, PassedByTest]:
    """For a generator with a `control` among its options; closing it stops what runs, and waits for the end."""

    @functools.wraps(outcomes)
    def reading(*args: Options.args, **options: Options.kwargs) -> PassedByTest:
        control = cast("RunControl | None", options.get("control")) or RunControl()
        options["control"] = control
        arrived: SimpleQueue[Told] = SimpleQueue()
        background = Background(outcomes(*args, **options), control, arrived.put)
        try:
            while (value := arrived.get()) is not None:
                if isinstance(value, BaseException):
                    raise value
                yield value
        finally:
            background.stop()
            background.join()

    return reading
