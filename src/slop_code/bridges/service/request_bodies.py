"""Bodies of requests, read and checked."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from slop_code.bridges.service.service_records import EvaluateRequest
from slop_code.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.datastructures import QueryParams
    from starlette.requests import Request

Body = TypeVar("Body", bound=BaseModel)
TAR_TYPES = ("application/x-tar", "application/gzip", "application/x-gtar")
TEXT_PARAMETERS = ("problem", "checkpoint", "environment", "policy")
PARAMETERS = (*TEXT_PARAMETERS, "tests", "durable")
"""Of the address, where the body is an archive."""

TRUTH = {"": False, "0": False, "false": False, "1": True, "true": True}
MAX_ERRORS = 5
"""Mistakes in a body that an answer names."""


class BodyError(UsageError):
    """A body that is not what the route expects."""


def parsed(model: type[Body], raw: bytes) -> Body:
    return _checked(lambda: model.model_validate_json(raw))


def _checked(validate: Callable[[], Body]) -> Body:
    try:
        return validate()
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in mistakes[:MAX_ERRORS]]
        more = len(mistakes) - MAX_ERRORS
        raise BodyError("; ".join(lines) + (f"; and {more} more" if more > 0 else "")) from None


async def read_body(http_request: Request) -> bytes:
    """Unlike `Request.body`, the request does not keep it."""
    return b"".join([part async for part in http_request.stream()])


async def read_request(http_request: Request) -> EvaluateRequest:
    """From JSON, or from a tar archive with the other fields as parameters of the address."""
    media_type = http_request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in TAR_TYPES:
        return await asyncio.to_thread(_tar_request, await read_body(http_request), http_request.query_params)
    return await asyncio.to_thread(parsed, EvaluateRequest, await read_body(http_request))


def _tar_request(raw: bytes, query: QueryParams) -> EvaluateRequest:
    if unknown := set(query) - {*PARAMETERS}:
        known = ", ".join(PARAMETERS)
        raise BodyError(f"unknown parameters: {', '.join(sorted(unknown))}; known are {known}")
    if (durable := TRUTH.get(query.get("durable", "").lower())) is None:
        raise BodyError("durable: expected 1, true, 0 or false")
    fields: dict[str, Any] = {name: query[name] for name in TEXT_PARAMETERS if name in query}
    if re.fullmatch("[0-9]{1,9}", fields.get("checkpoint", "")):
        fields["checkpoint"] = int(fields["checkpoint"])
    fields |= {"tests": query.getlist("tests"), "durable": durable}
    fields["submission"] = {"tar": base64.b64encode(raw).decode()}
    return _checked(lambda: EvaluateRequest.model_validate(fields))
