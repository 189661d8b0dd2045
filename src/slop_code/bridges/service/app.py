"""Routes of the reward service."""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from slop_code._version import __version__
from slop_code.bridges.service.api_document import add_request_schemas, answers, json_body
from slop_code.bridges.service.queue_records import EvaluationOutcome, QueueFullError
from slop_code.bridges.service.request_bodies import BodyError, parsed, read_body, read_request
from slop_code.bridges.service.request_bounds import RELEASE_BODY, RequestBounds, RequestLimits, refusal
from slop_code.bridges.service.server_inputs import ForbiddenPathError
from slop_code.bridges.service.service_records import (
    STATUS_CODES,
    BatchAnswer,
    BatchRequest,
    EvaluateRequest,
    EvaluationAnswer,
    JobAnswer,
    ProblemAnswer,
)
from slop_code.errors import ConfigError, InfrastructureError, SlopCodeError, SubmissionError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping

    from pydantic import BaseModel

    from slop_code.bridges.service.durable_jobs import DurableJobs
    from slop_code.bridges.service.queue_records import QueuedEvaluation
    from slop_code.bridges.service.request_bounds import Receive, Send
    from slop_code.bridges.service.service_metrics import ServiceMetrics
    from slop_code.bridges.service.service_queue import ServiceQueue
    from slop_code.bridges.service.service_records import Fault, ServiceState

CLIENT_GONE = 499
UNPACKING = 8
"""Submissions that are unpacked and read at a time."""

Result = TypeVar("Result")


@dataclass(slots=True)
class RewardService:
    """State that all routes share."""

    queue: ServiceQueue
    durable: DurableJobs
    metrics: ServiceMetrics
    limits: RequestLimits = field(default_factory=RequestLimits)
    draining: bool = False
    _unpacking: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(UNPACKING, "service-unpacking"))

    async def unpack(self, accept: Callable[[EvaluateRequest], Result], request: EvaluateRequest) -> Result:
        """Call `accept` in a thread that does nothing else, so that large submissions hold up no other answers."""
        return await asyncio.get_running_loop().run_in_executor(self._unpacking, accept, request)


def service_app(service: RewardService) -> FastAPI:
    app = FastAPI(
        title="slop-code reward service",
        version=__version__,
        redirect_slashes=False,
        docs_url=None,  # these pages load scripts of other sites
        redoc_url=None,
        description="Evaluates submissions. An infrastructure failure is never a reward of 0: it has status 503.",
    )
    app.add_middleware(RequestBounds, limits=service.limits, refused=service.metrics.refused)
    _add_errors(app, service)
    _add_evaluation(app, service)
    _add_jobs(app, service)
    _add_state(app, service)
    add_request_schemas(app)
    return app


def _add_errors(app: FastAPI, service: RewardService) -> None:
    @app.exception_handler(SlopCodeError)
    async def refuse(_request: Request, error: SlopCodeError) -> Response:
        status = status_of(error)
        service.metrics.refused(status)
        return refusal(status, str(error), getattr(error, "retry_after", None), fault_of(error))

    @app.exception_handler(HTTPException)
    async def refuse_route(_request: Request, error: HTTPException) -> Response:
        return refusal(error.status_code, f"{error.detail}; GET /openapi.json lists the routes")


def fault_of(error: SlopCodeError) -> Fault:
    """A submission that is refused is the fault of whoever wrote it, which may be a model."""
    return "submission" if isinstance(error, SubmissionError) else "request"


def status_of(error: SlopCodeError) -> int:
    """A wrong `config.yaml` is a mistake of the server's."""
    kinds = {QueueFullError: 429, ForbiddenPathError: 403, ConfigError: 500, UsageError: 422, InfrastructureError: 503}
    return next((status for kind, status in kinds.items() if isinstance(error, kind)), 500)


async def evaluated(
    service: RewardService, http_request: Request | None, request: EvaluateRequest
) -> EvaluationOutcome | None:
    began = time.monotonic()
    return await outcome_of(service, http_request, await submitted(service, request), began)


async def submitted(service: RewardService, request: EvaluateRequest) -> QueuedEvaluation:
    """If the task is cancelled meanwhile, the evaluation is withdrawn as soon as it is queued."""
    return await _or_undo(service.unpack(service.queue.submit, request), service.queue.withdraw)


async def _or_undo(work: Awaitable[Result], undo: Callable[[Result], object]) -> Result:
    """The result of the work. If this task is cancelled meanwhile, the work goes on, and its result is undone."""
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(partial(_undo, undo))
        raise


def _undo(undo: Callable[[Result], object], working: asyncio.Future[Result]) -> None:
    if not working.cancelled() and working.exception() is None:
        undo(working.result())


async def outcome_of(
    service: RewardService, http_request: Request | None, evaluation: QueuedEvaluation, began: float
) -> EvaluationOutcome | None:
    """None where the client went away, which cancels the evaluation unless others wait for it."""
    waiting: set[asyncio.Future[Any]] = {(ended := asyncio.wrap_future(evaluation.ended))}
    if http_request is not None:
        waiting.add(gone := asyncio.ensure_future(_disconnected(http_request)))
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            return None
        outcome = ended.result()
        service.metrics.answered(outcome, time.monotonic() - began)
        return outcome
    finally:
        if http_request is not None:
            gone.cancel()
        service.queue.withdraw(evaluation)


async def _disconnected(http_request: Request) -> None:
    while (await http_request.receive())["type"] != "http.disconnect":
        pass


def _add_evaluation(app: FastAPI, service: RewardService) -> None:
    @app.post("/evaluate", responses=answers(EvaluationAnswer), openapi_extra=json_body(EvaluateRequest, tar=True))
    async def evaluate(http_request: Request) -> Response:
        """Evaluate a submission. A durable request is answered at once, with status 202."""
        request = await read_request(http_request)
        if request.durable:
            job = await _or_undo(service.unpack(service.durable.accept, request), service.durable.cancel)
            return _json_response(JobAnswer(id=job, state="queued"), 202)
        began, repeated = time.monotonic(), request.repeated_fields()
        evaluation = await submitted(service, request)
        del request  # thousands may wait
        http_request.scope[RELEASE_BODY]()
        outcome = await outcome_of(service, http_request, evaluation, began)
        if outcome is None:
            return Response(status_code=CLIENT_GONE)
        if outcome.state == "rejected":
            return refusal(STATUS_CODES["rejected"], str(outcome.reason), fault=outcome.fault)
        return _json_response(EvaluationAnswer.of(repeated, outcome), STATUS_CODES[outcome.state])

    @app.post("/evaluate/batch", response_class=StreamingResponse, openapi_extra=json_body(BatchRequest))
    async def evaluate_batch(http_request: Request) -> Response:
        """Evaluate many; answers come as they finish, one JSON text per line, each with the index of its request."""
        batch = await asyncio.to_thread(parsed, BatchRequest, await read_body(http_request))
        if any(request.durable for request in batch.requests):
            raise BodyError("requests: durable ones are sent one by one, to /evaluate")
        return _BatchResponse(_batch_lines(service, batch))


class _BatchResponse(StreamingResponse):
    """Closes the generator of its lines, however it ends."""

    media_type = "application/x-ndjson"

    def __init__(self, lines: AsyncGenerator[bytes]) -> None:
        super().__init__(lines)
        self._lines = lines

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(self._lines):
            await super().__call__(scope, receive, send)


async def _batch_lines(service: RewardService, batch: BatchRequest) -> AsyncGenerator[bytes]:
    """At most two evaluations per worker are queued at a time; closing the generator cancels them."""
    unsent = enumerate(batch.requests)
    running: set[asyncio.Task[bytes]] = set()
    try:
        while True:
            while len(running) < 2 * service.queue.slots and (item := next(unsent, None)) is not None:
                running.add(asyncio.create_task(_batch_line(service, *item)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _batch_line(service: RewardService, index: int, request: EvaluateRequest) -> bytes:
    """A request that cannot be evaluated has a line as well; it waits while the queue is full."""
    while True:
        try:
            outcome = await evaluated(service, None, request)
            assert outcome is not None
        except QueueFullError as full:
            await asyncio.sleep(full.retry_after)
            continue
        except SlopCodeError as error:
            state: ServiceState = "infrastructure_failure" if status_of(error) >= 500 else "rejected"
            outcome = EvaluationOutcome(state, reason=str(error), fault=fault_of(error))
        fields = dict(EvaluationAnswer.of(request.repeated_fields(), outcome))
        return BatchAnswer.model_validate({**fields, "index": index}).model_dump_json().encode() + b"\n"


def _add_jobs(app: FastAPI, service: RewardService) -> None:
    @app.get("/jobs/{job}", responses=answers(JobAnswer))
    async def get_job(job: str) -> Response:
        """The state of a durable job, and its result."""
        answer = await asyncio.to_thread(service.durable.get, job)
        return _unknown_job(job) if answer is None else _json_response(answer)

    @app.delete("/jobs/{job}", status_code=204)
    async def cancel_job(job: str) -> Response:
        """Cancel a durable job, and forget its result."""
        known = await asyncio.to_thread(service.durable.cancel, job)
        return Response(status_code=204) if known else _unknown_job(job)


def _unknown_job(job: str) -> Response:
    return refusal(404, f"no durable job {job!r}; results are kept for a limited time")


def _add_state(app: FastAPI, service: RewardService) -> None:
    @app.get("/problems", response_model=list[ProblemAnswer])
    async def problems() -> Response:
        """The problems of this server. Those that cannot be loaded are left out."""
        return JSONResponse(await asyncio.to_thread(_problems, service.queue))

    @app.get("/health")
    async def health() -> Response:
        """Answers while the process runs."""
        return JSONResponse({"version": __version__})

    @app.get("/ready")
    async def ready() -> Response:
        """Status 200 if a request would be accepted now."""
        waiting, running = service.queue.counts()
        full = waiting + running >= service.queue.settings.max_jobs
        state = {"waiting": waiting, "running": running, "workers": service.queue.slots}
        return JSONResponse(state, 503 if full or service.draining else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _problems(queue: ServiceQueue) -> list[dict[str, object]]:
    known: list[dict[str, object]] = []
    for name in queue.inputs.problem_names():
        with contextlib.suppress(SlopCodeError, OSError):
            known.append({"name": name, "checkpoints": [*queue.inputs.problem(name).checkpoints]})
    return known


def _json_response(answer: BaseModel, status: int = 200) -> Response:
    return Response(answer.model_dump_json(), status, media_type="application/json")
