"""The shape of a requirement on a Python package."""

from __future__ import annotations

import re

from pydantic import AfterValidator

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS = rf"\[ ?(?:{_NAME}(?: ?, ?{_NAME})*)? ?\]"
_VERSION = r"(?:=== ?[^ ,;()]+|(?:==|~=|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+)"
_VERSIONS = rf"{_VERSION}(?: ?, ?{_VERSION})*(?: ?,)?"
_VALUE = r"""(?:[A-Za-z0-9_.]+|'[^']*'|"[^"]*")"""
_COMPARISON = rf"[( ]*{_VALUE} ?(?:===|==|~=|!=|<=|>=|<|>|in|not in) ?{_VALUE}[ )]*"
_MARKER = rf"{_COMPARISON}(?:(?:and|or)\b{_COMPARISON})*"
_URL_OR_PATH = re.compile(r"[./].*|[^- ]\S*/\S*(?: ?;.*)?")
_SOURCE = rf"@ ?\S+|\( ?(?:{_VERSIONS})? ?\)|{_VERSIONS}"
_REQUIREMENT = re.compile(rf"{_NAME} ?(?:{_EXTRAS})? ?(?:{_SOURCE})? ?(?:; ?{_MARKER})?")


def _check_requirement(value: str) -> str:
    """Refuses what uv cannot parse; it decides about URLs and paths, and whether the versions exist."""
    words = " ".join(value.split())
    if not _REQUIREMENT.fullmatch(words) and not _URL_OR_PATH.fullmatch(words):
        raise ValueError("a requirement, such as hypothesis, rich[jupyter]>=13,<15 or name @ URL")
    return value


REQUIREMENT = AfterValidator(_check_requirement)
