"""OpenAPI document of the reward service: schemas of bodies that the routes read themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from slop_code.bridges.service.service_records import BatchRequest, ErrorAnswer, EvaluateRequest

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

SCHEMA_REF = "#/components/schemas/{model}"
BODIES: tuple[type[BaseModel], ...] = (EvaluateRequest, BatchRequest)
ERRORS = {
    401: "no token, or a wrong one", 413: "too large", 422: "wrong request", 429: "the queue is full",
    503: "no verdict",
}  # fmt: skip


def answers(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    responses: dict[int | str, dict[str, Any]] = {200: {"model": model}}
    return responses | {status: {"model": ErrorAnswer, "description": text} for status, text in ERRORS.items()}


def json_body(model: type[BaseModel], *, tar: bool = False) -> dict[str, Any]:
    """With `tar`, an archive is taken as well, with the other fields in the query."""
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": SCHEMA_REF.format(model=model.__name__)}}}
    if tar:
        content["application/x-tar"] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}


def add_request_schemas(app: FastAPI) -> None:
    """FastAPI knows only the bodies that it reads itself."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            _, schemas = models_json_schema([(model, "validation") for model in BODIES], ref_template=SCHEMA_REF)
            document["components"]["schemas"].update(schemas["$defs"])
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
