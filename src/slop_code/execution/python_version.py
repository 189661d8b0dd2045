"""Python versions: requests of environments, problems and submissions, and the interpreters of this machine."""

from __future__ import annotations

import functools
import glob
import json
import os
import platform
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from slop_code.errors import ConfigError, InfrastructureError
from slop_code.execution.process import capture
from slop_code.execution.uv import base_python, uv_paths

if TYPE_CHECKING:
    from collections.abc import Sequence

FIND_S = 120.0
FIND = ("python", "find", "--no-config", "--no-project", "--system", "--no-cache")
REQUESTS = "what `python` of the environment and `requires_python` of the problem ask for together"
NO_PYTHON = "No interpreter found"
"""Part of uv's error where there is none that fits."""

DOWNLOADS = "UV_PYTHON_DOWNLOADS"
DESCRIBE = (
    "import json, os, platform, sys; base = getattr(sys, '_base_executable', sys.executable); "
    "print(json.dumps([platform.python_version(), os.path.realpath(base), sys.base_prefix]))"
)
_RELEASE = r"[0-9]{1,5}(?:\.[0-9]{1,5}){0,2}"
_VERSION = re.compile(_RELEASE)
_SPECIFIER = re.compile(rf"\s*(>=|<=|==|!=|~=|>|<)\s*({_RELEASE})(\.\*)?\s*")
EXPECTED = 'a version or a range in quotes, such as "3.12" or ">=3.11,<3.14"'


def python_request(value: Any) -> Any:
    """Only text: as a number, 3.10 would be 3.1."""
    if value is None:
        return None
    if not isinstance(value, str) or normal_request(value) is None:
        raise ValueError(EXPECTED)
    return value.strip()


PythonRequest = Annotated[str, BeforeValidator(python_request)]


def normal_request(text: str) -> str | None:
    """The request as version specifiers, which uv takes (`3.12` is `==3.12.*`), or None if it is no request."""
    text = text.strip()
    if _VERSION.fullmatch(text):
        return f"=={text}" if text.count(".") == 2 else f"=={text}.*"
    parts = [_SPECIFIER.fullmatch(part) for part in text.split(",")]
    if not all(part and _is_specifier(part[1], part[2], part[3]) for part in parts):
        return None
    return ",".join("".join(part.groups(default="")) for part in parts if part)


def is_release(version: str) -> bool:
    """Whether the version is made of up to three numbers only, which `fits` can compare."""
    return _VERSION.fullmatch(version) is not None


def _is_specifier(operator: str, release: str, star: str | None) -> bool:
    if star and operator not in ("==", "!="):
        return False
    return operator != "~=" or "." in release


def combined_request(requests: Sequence[str | None]) -> str | None:
    """A request that asks for all of them, or None if nothing is asked for."""
    normal = [normal_request(request) for request in requests if request is not None]
    return ",".join(dict.fromkeys(request for request in normal if request)) or None


def fits(version: str, request: str) -> bool:
    """Whether the version fulfils a request; one that cannot be read is not fulfilled."""
    normal = normal_request(request)
    numbers = re.match(_RELEASE, version)
    if normal is None or numbers is None:
        return False
    own = _padded(numbers[0])
    return all(_fulfils(own, *match.groups()) for match in map(_SPECIFIER.fullmatch, normal.split(",")) if match)


def _fulfils(own: tuple[int, ...], operator: str, release: str, star: str | None) -> bool:
    wanted, given = _padded(release), tuple(map(int, release.split(".")))
    if operator == "~=":
        return own >= wanted and own[: len(given) - 1] == given[:-1]
    if operator in ("==", "!="):
        equal = own[: len(given)] == given if star else own == wanted
        return equal == (operator == "==")
    return {">=": own >= wanted, "<=": own <= wanted, ">": own > wanted, "<": own < wanted}[operator]


def _padded(release: str) -> tuple[int, ...]:
    numbers = [int(number) for number in release.split(".")]
    return tuple([*numbers, 0, 0][:3])


@dataclass(frozen=True, slots=True)
class HostPython:
    path: str
    """Of the interpreter itself, without links and virtual environments."""

    version: str
    prefix: str
    """The folder of its library, which a box has to mount."""

    @property
    def identity(self) -> list[str]:
        return [platform.python_implementation(), self.version, platform.machine(), self.path]


def own_python() -> HostPython:
    """The interpreter that slop-code runs on."""
    return HostPython(base_python(), platform.python_version(), sys.base_prefix)


def host_python(request: str | None) -> HostPython:
    """slop-code's own interpreter where it fits, else the first that uv finds. Raises ConfigError if there is none."""
    own = own_python()
    if request is None or fits(own.version, request):
        return own
    return _find(request)


@functools.cache
def _find(request: str) -> HostPython:
    python = _ask_uv(request)
    if python is None and os.environ.get(DOWNLOADS, "").lower() in ("automatic", "true", "1"):
        capture([str(uv_paths()[0]), "python", "install", "--no-config", request], timeout=10 * FIND_S)
        python = _ask_uv(request)
    if python is None or not fits(python.version, request):
        raise _no_python(request, [python.version for python in installed_pythons()])
    return python


class MissingPythonError(ConfigError):
    """No Python on this machine fits a request of the configuration."""


def _no_python(request: str, versions: Sequence[str]) -> MissingPythonError:
    there = f"there are {', '.join(dict.fromkeys(versions))}" if versions else "there is none at all"
    step = f"install one (such as `uv python install '{request}'`), or change {REQUESTS}"
    return MissingPythonError(f"no Python on this machine fits {request}: {there}; {step}")


def _ask_uv(request: str) -> HostPython | None:
    answer = capture([str(uv_paths()[0]), *FIND, request], timeout=FIND_S, env=search_environment())
    if answer.exit_code != 0 and NO_PYTHON not in answer.errors:
        raise InfrastructureError(f"uv could not look for a Python that fits {request}: {answer.errors.strip()}")
    return _describe(answer.output.strip()) if answer.exit_code == 0 else None


def _describe(path: str) -> HostPython | None:
    try:
        answer = capture([path, "-I", "-S", "-c", DESCRIBE], timeout=FIND_S)
        version, base, prefix = json.loads(answer.output)
    except (InfrastructureError, ValueError):
        return None
    return HostPython(base, version, prefix)


def search_environment() -> dict[str, str]:
    """PATH, and all versions of pyenv, whose shims work for one of them only."""
    folders = [folder for folder in os.environ.get("PATH", "").split(":") if not folder.endswith("/shims")]
    pyenv = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")
    # A folder that this user may not read, such as root's, has none of them.
    versions = sorted(glob.glob("3*", root_dir=pyenv), key=_numbers, reverse=True)
    folders += [os.path.join(pyenv, version, "bin") for version in versions]
    return {**os.environ, "PATH": ":".join(folders), DOWNLOADS: "never"}


def installed_pythons() -> list[HostPython]:
    """The interpreters of Python 3 that uv finds here, newest first, slop-code's own among them."""
    argv = [str(uv_paths()[0]), "python", "list", "--no-config", "--no-cache", "--only-installed"]
    pythons = {own_python().path: own_python()}
    try:
        answer = capture([*argv, "--output-format", "json"], timeout=FIND_S, env=search_environment())
        for entry in json.loads(answer.output):
            path = os.path.realpath(entry["path"])
            if entry["version"].startswith("3."):
                pythons.setdefault(path, HostPython(path, entry["version"], ""))
    except (InfrastructureError, ValueError, KeyError, TypeError, AttributeError):
        pass  # a list for people: what is known is shown
    return sorted(pythons.values(), key=lambda python: _numbers(python.version), reverse=True)


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(_RELEASE, version)
    return _padded(release[0]) if release else ()
