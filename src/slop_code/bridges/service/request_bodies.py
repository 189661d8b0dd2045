"""Bodies of requests, read and checked."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from slop_code.bridges.service.service_records import EvaluateRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

Body = TypeVar("Body", bound=BaseModel)
TAR_TYPES = ("application/x-tar", "application/gzip", "application/x-gtar")
TAR_PARAMETERS = ("problem", "checkpoint", "environment", "policy")
MAX_ERRORS = 5
"""Mistakes in a body that an answer names."""


class BodyError(Exception):
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


async def read_request(http_request: Request) -> EvaluateRequest:
    """From JSON, or from a tar archive with the other fields as parameters of the address."""
    raw, kind = await http_request.body(), http_request.headers.get("content-type", "").partition(";")[0].strip()
    return await asyncio.to_thread(_request, raw, kind, http_request)


def _request(raw: bytes, kind: str, http_request: Request) -> EvaluateRequest:
    if kind not in TAR_TYPES:
        return parsed(EvaluateRequest, raw)
    query = http_request.query_params
    if unknown := set(query) - {*TAR_PARAMETERS, "tests", "durable"}:
        raise BodyError(f"unknown parameters: {', '.join(sorted(unknown))}")
    fields: dict[str, Any] = {name: query[name] for name in TAR_PARAMETERS if name in query}
    if re.fullmatch("[0-9]{1,9}", fields.get("checkpoint", "")):
        fields["checkpoint"] = int(fields["checkpoint"])
    fields |= {"tests": query.getlist("tests"), "durable": query.get("durable", "") in ("1", "true")}
    fields["submission"] = {"tar": base64.b64encode(raw).decode()}
    return _checked(lambda: EvaluateRequest.model_validate(fields))
