"""Routes of a NeMo Gym resources server, on the reward service."""

from __future__ import annotations

import asyncio
import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, FailFast, Field

from slop_code.bridges.service.app import CLIENT_GONE, RewardService, evaluated
from slop_code.bridges.service.request_bodies import BodyError, parsed, read_body
from slop_code.bridges.service.request_bounds import refusal
from slop_code.bridges.service.service_records import STATUS_CODES, EvaluateRequest, EvaluationAnswer
from slop_code.errors import SubmissionError
from slop_code.evaluation.reward_values import refused_rewards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

TASK = "_ng_task_index"
ROLLOUT = "_ng_rollout_index"
MAX_NUMBER = 1e100
"""Sums and squares of smaller ones are still numbers. A NaN is not smaller either."""

MAX_NAMES = 1000
"""Numbers of different names in all responses; each makes several entries of the answer."""

STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "max": max,
    "min": min,
    "median": statistics.median,
}


class VerifyRequest(BaseModel):
    """A row of a dataset with the model's response; all other keys come back unchanged."""

    model_config = ConfigDict(extra="allow")

    verifier_metadata: EvaluateRequest


class AggregateRequest(BaseModel):
    verify_responses: Annotated[list[dict[str, Any]], FailFast()] = Field(max_length=1_000_000)


def add_nemo_gym(app: FastAPI, service: RewardService) -> None:
    @app.post("/seed_session", tags=["NeMo Gym"])
    async def seed_session() -> Response:
        """Nothing is kept between requests."""
        return JSONResponse({})

    @app.get("/reverify_mode", tags=["NeMo Gym"])
    async def reverify_mode() -> Response:
        return JSONResponse("stateless")

    @app.post("/verify", tags=["NeMo Gym"])
    async def verify(http_request: Request) -> Response:
        """Evaluate the submission that `verifier_metadata` names, as /evaluate does."""
        row = await asyncio.to_thread(parsed, VerifyRequest, await read_body(http_request))
        request = row.verifier_metadata
        if request.durable or request.tests:
            raise BodyError("verifier_metadata: a reward needs all tests and an answer: no durable, no tests")
        row_json = row.model_dump(mode="json", exclude_unset=True)
        try:
            outcome = await evaluated(service, http_request, request)
        except SubmissionError as error:  # a reward all the same, as a model could cancel a bad one otherwise
            service.metrics.refused(200)
            rewards = {"reward": 0.0, "reward_components": refused_rewards()}
            return JSONResponse({**row_json, **rewards, "refused": str(error)})
        if outcome is None:
            return Response(status_code=CLIENT_GONE)
        if outcome.state != "evaluated":
            return refusal(STATUS_CODES[outcome.state], f"{outcome.state}: {outcome.reason}")
        answer = EvaluationAnswer.of(request.repeated_fields(), outcome)
        return JSONResponse({**row_json, "reward": answer.reward, "reward_components": answer.rewards})

    @app.post("/aggregate_metrics", tags=["NeMo Gym"])
    async def aggregate_metrics(http_request: Request) -> Response:
        """Statistics of the numbers in verify responses, for each task and for all."""
        body = await asyncio.to_thread(parsed, AggregateRequest, await read_body(http_request))
        return JSONResponse(await asyncio.to_thread(aggregated, body.verify_responses))


def aggregated(responses: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    tasks: defaultdict[int, list[dict[str, float]]] = defaultdict(list)
    for response in responses:
        task = response.get(TASK, 0)
        tasks[task if isinstance(task, int) else 0].append(_numbers(response))
    agent = _statistics([numbers for task in tasks.values() for numbers in task])
    return {
        "group_level_metrics": [
            {TASK: task, "num_rollouts": len(rollouts), **_statistics(rollouts)}
            for task, rollouts in sorted(tasks.items())
        ],
        "agent_metrics": agent,
        "key_metrics": {name: value for name, value in agent.items() if name.startswith("mean/")},
    }


def _numbers(response: Mapping[str, Any]) -> dict[str, float]:
    components = response.get("reward_components")
    values = {**(components if isinstance(components, dict) else {}), **response}
    return {
        str(name): float(value)
        for name, value in values.items()
        if name not in (TASK, ROLLOUT) and isinstance(value, int | float) and abs(value) < MAX_NUMBER
    }


def _statistics(rows: list[dict[str, float]]) -> dict[str, float]:
    columns: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            columns[name].append(value)
    if len(columns) > MAX_NAMES:
        raise BodyError(f"verify_responses: more than {MAX_NAMES} names of numbers; send fewer keys with numbers")
    values_by_kind = {
        f"{kind}/{name}": compute(values) for name, values in columns.items() for kind, compute in STATISTICS.items()
    }
    deviations = {
        f"std/{name}": statistics.stdev(values) if len(values) > 1 else 0.0 for name, values in columns.items()
    }
    return values_by_kind | deviations
