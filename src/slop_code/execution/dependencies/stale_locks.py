"""Lock files whose versions are only preferred, as they lack dependencies of the project's own file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.execution.dependencies.plain_requirements import NAME, PLAIN_REQUIREMENT, normal_name
from slop_code.execution.python_version import fits, is_release, normal_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.execution.dependencies.lock_files import LockedPackages

_DEPENDENCY = re.compile(rf"\s*({NAME})\s*(?:\[([^\]]*)\])?([^;@]*)")
MAX_DEPENDENCIES = 1000
"""That are compared with a lock, so that a hostile project takes no time."""

MAX_SPECIFIER = 200
MAX_VERSIONS = 5
"""Of one package in a lock, for different platforms."""


@dataclass(frozen=True, slots=True)
class PreferredLock:
    name: str
    missing: Sequence[str]
    """Names of dependencies that it lacks, or has in no version that fits; empty if it cannot be installed as it is."""

    preferences: str
    """Its versions, as pinned requirements."""


def stale_lock(name: str, locked: LockedPackages, dependencies: Sequence[str]) -> PreferredLock | None:
    """The lock with what it lacks, or None if it has all of these dependencies of the project.

    A version that cannot be compared counts as one that fits. Locks other than uv.lock may leave out a dependency
    with a marker, which cannot hold where the project runs.
    """
    compared = [text for text in dependencies[:MAX_DEPENDENCIES] if name == "uv.lock" or ";" not in text]
    requested = [match for text in compared if (match := _DEPENDENCY.match(text))]
    missing = [match[1] for match in requested if not _has(locked, normal_name(match[1]), match[2] or "", match[3])]
    return preferred_lock(name, locked, missing) if missing else None


def preferred_lock(name: str, locked: LockedPackages, missing: Sequence[str] = ()) -> PreferredLock:
    pins = [f"{package}=={version}" for package, versions in locked.versions.items() for version in versions]
    return PreferredLock(name, missing, "".join(f"{pin}\n" for pin in pins if _is_pin(pin)))


def _is_pin(text: str) -> bool:
    return "*" not in text and PLAIN_REQUIREMENT.fullmatch(text) is not None


def _has(locked: LockedPackages, name: str, extras: str, specifier: str) -> bool:
    if name not in locked.names:
        return False
    known = locked.names[name]
    if known is not None and not {normal_name(extra.strip()) for extra in extras.split(",")} - {""} <= known:
        return False
    request, versions = specifier.strip(" ()\t"), locked.versions.get(name, [])
    if len(request) > MAX_SPECIFIER or len(versions) > MAX_VERSIONS or normal_request(request) is None:
        return True
    return not versions or any(not is_release(version) or fits(version, request) for version in versions)
