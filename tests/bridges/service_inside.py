"""A reward service without a server: its queue and its application, whose scheduler starts nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slop_code.bridges.service import service_queue
from slop_code.bridges.service.app import RewardService, service_app
from slop_code.bridges.service.durable_jobs import DurableJobs
from slop_code.bridges.service.nemo_gym import add_nemo_gym
from slop_code.bridges.service.server_inputs import QueueSettings
from slop_code.bridges.service.service_metrics import ServiceMetrics
from slop_code.execution.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from slop_code.bridges.service.request_bounds import RequestLimits
    from slop_code.runs.jobs.scheduler import SchedulerContext


def idle_scheduler(_jobs: object, context: SchedulerContext) -> Iterator[Any]:
    """In the place of `run_jobs`: runs until the control ends it."""
    with context.control.wake_queue() as changed:
        while not context.control.finishing:
            changed.get()
    yield from ()


@contextlib.contextmanager
def open_queue(problems: Path, folder: Path) -> Iterator[service_queue.ServiceQueue]:
    queue = service_queue.ServiceQueue(QueueSettings(workers=1, problems_dir=problems), Cache(folder))
    with contextlib.closing(queue):
        yield queue


@dataclass(slots=True)
class SentRequest:
    """A request to the application. Its client stays until it is cancelled."""

    task: asyncio.Task[None]
    messages: list[dict[str, Any]] = field(default_factory=list)
    waiting: bool = False
    """The application has read the body, and waits for the evaluation or for the end of the connection."""

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.messages).decode()

    def json(self) -> Any:
        return json.loads(self.text)


class ServiceInside:
    """The application, called as a server would do it."""

    def __init__(self, queue: service_queue.ServiceQueue, state: Path, limits: RequestLimits) -> None:
        self.queue, self.durable = queue, DurableJobs(state, queue)
        service = RewardService(queue, self.durable, ServiceMetrics(queue), limits)
        self._app = service_app(service)
        add_nemo_gym(self._app, service)

    def send(
        self, method: str, target: str, body: bytes = b"", *, content_type: str = "", server: Any = None
    ) -> SentRequest:
        path, _, query = target.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
            "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(b"content-type", content_type.encode())], "client": ("127.0.0.1", 1), "server": server,
        }  # fmt: skip
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])
        del body

        async def receive() -> dict[str, Any]:
            if (part := next(parts, None)) is not None:
                return part
            sent.waiting = True
            return await asyncio.get_running_loop().create_future()

        async def note(message: Any) -> None:
            sent.messages.append(message)

        sent = SentRequest(asyncio.ensure_future(self._app(scope, receive, note)))
        return sent

    async def ask(self, method: str, target: str, body: bytes = b"", **options: Any) -> SentRequest:
        sent = self.send(method, target, body, **options)
        await sent.task
        return sent
