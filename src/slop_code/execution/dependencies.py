"""Dependencies of Python submissions: which file names them, and what their installation depends on."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.execution.python_version import normal_request

_NUMBERS = r"(?:[0-9]{1,9}!)?[0-9]{1,9}(?:\.[0-9]{1,9})"
_SUFFIX = r"(?:[._-]?(?:a|b|c|rc|alpha|beta|pre|preview)[0-9]{0,9})?(?:\.?post[0-9]{1,9})?(?:\.?dev[0-9]{0,9})?"
_VERSION = rf"(?:~=\s*{_NUMBERS}+{_SUFFIX}|[!=]=\s*{_NUMBERS}*(?:\.\*|{_SUFFIX})|[<>]=?\s*{_NUMBERS}*{_SUFFIX})"
_VARIABLE = (
    "(?:python_version|python_full_version|os_name|sys_platform|platform_machine|platform_system"
    "|platform_python_implementation|implementation_name)"
)
_MARKER = rf"{_VARIABLE}\s*(?:[<>]=?|[!=]=)\s*(?:'[A-Za-z0-9._-]{{0,50}}'|\"[A-Za-z0-9._-]{{0,50}}\")"
_NAME = "[A-Za-z0-9](?:[A-Za-z0-9._-]{0,99}[A-Za-z0-9])?"
PLAIN_REQUIREMENT = re.compile(
    rf"{_NAME}(?:\s*\[\s*{_NAME}(?:\s*,\s*{_NAME}){{0,50}}\s*\])?"
    rf"(?:\s*{_VERSION}(?:\s*,\s*{_VERSION}){{0,50}})?"
    rf"(?:\s*;\s*{_MARKER}(?:\s+(?:and|or)\s+{_MARKER}){{0,50}})?",
    re.ASCII,
)
"""Strict, so that uv can parse whatever matches: a failure is then not one of the file."""

ARCHIVE = re.compile(r"\.(whl|zip|tar|tgz|tbz|txz|gz|bz2|xz|zst)\b", re.IGNORECASE)


def python_dependencies(submission: Path) -> tuple[str | None, str | None]:
    """The file that names a Python submission's dependencies, and its text where nothing else matters."""
    for name in ("requirements.txt", "pyproject.toml"):
        path = Path(os.path.realpath(submission / name))
        if submission not in path.parents or not path.is_file():
            continue  # absent, or a pipe or a link that leads out, which uv must not read
        try:
            text = read_bounded(path, 1 << 20).decode("utf-8")
        except (OSError, UnicodeDecodeError, TooLargeError):
            return name, None
        if name == "requirements.txt":
            return name, text
        try:
            settings = tomllib.loads(text)
        except (ValueError, RecursionError):
            return None, None
        project, tools = settings.get("project"), settings.get("tool")
        if isinstance(project, dict) and ("dependencies" in project or "dynamic" in project):
            dependencies = project.get("dependencies")
            # Settings for uv can make a plain name refer to a file of the submission's own.
            own_sources = isinstance(tools, dict) and "uv" in tools
            # So can its own extras, where a dependency has the project's own name.
            own_sources |= "optional-dependencies" in project
            if not isinstance(dependencies, list) or "dynamic" in project or own_sources:
                return name, None
            return name, "\n".join(map(str, dependencies))
    return None, None


def python_requests(submission: Path) -> list[tuple[str, str]]:
    """Versions of Python that a submission asks for, each with the file that does so, as far as it can be read."""
    requests = []
    if (settings := _toml(submission, "pyproject.toml")) is not None:
        project = settings.get("project")
        wanted = project.get("requires-python") if isinstance(project, dict) else None
        if isinstance(wanted, str) and normal_request(wanted) is not None:
            requests.append(("requires-python in pyproject.toml", wanted))
    first = (_text(submission, ".python-version") or "").strip().splitlines()[:1]
    if first and normal_request(version := first[0].strip().removeprefix("cpython-").removeprefix("python-")):
        requests.append((".python-version", version))
    return requests


def _text(submission: Path, name: str) -> str | None:
    """None: it is absent, not text, too large, or a pipe or a link that leads out of the submission."""
    path = Path(os.path.realpath(submission / name))
    if submission not in path.parents or not path.is_file():
        return None
    try:
        return read_bounded(path, 1 << 20).decode("utf-8")
    except (OSError, UnicodeDecodeError, TooLargeError):
        return None


def _toml(submission: Path, name: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(_text(submission, name) or "")
    except (ValueError, RecursionError):
        return None


def is_plain(requirements: str) -> bool:
    """Well-formed names and versions only: no file, folder, link or option that could install the submission's code."""
    lines = (line.split("#")[0].strip() for line in requirements.splitlines())
    return all(not line or (PLAIN_REQUIREMENT.fullmatch(line) and not ARCHIVE.search(line)) for line in lines)
