"""Lock files of package managers: their packages, and requirements for them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code.execution.dependencies.plain_requirements import MARKER_TEXT, is_name, normal_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_VERSION = re.compile(r"[A-Za-z0-9.+!]+")
_LOCKED_MARKER = re.compile(r"""(?:[a-z_()<>=!~ ]|'[A-Za-z0-9._+-]*'|"[A-Za-z0-9._+-]*")*""", re.ASCII)
_SPACE = re.compile(r"\s")
_PYLOCK_ONLY = re.compile(r"\b(?:extras|dependency_groups)\b")
ELSEWHERE = ("git", "url", "path", "directory", "file", "hg", "svn", "vcs", "archive")
"""Keys of packages that do not come from an index."""


@dataclass(frozen=True, slots=True)
class LockedPackages:
    names: Mapping[str, set[str]] | Mapping[str, None]
    """Names of packages that a lock has for the project, each with its extras, or None if it does not tell them."""

    versions: Mapping[str, Sequence[str]]
    """Of every package, by its name."""


def locked_packages(source: str, lock: Mapping[str, Any], project: object) -> LockedPackages:
    """The content of the lock file of this name, in a project of this name."""
    packages = list(_packages(lock, "packages" if source == "pylock.toml" else "package"))
    named = [package for package in packages if isinstance(package.get("name"), str)]
    versions: dict[str, list[str]] = {}
    for package in named:
        if isinstance(version := package.get("version"), str):
            versions.setdefault(normal_name(package["name"]), []).append(version)
    if source == "uv.lock":
        return LockedPackages(_uv_names(packages, project), versions)
    group = "default" if source == "pdm.lock" else "main"
    return LockedPackages({normal_name(entry["name"]): None for entry in named if _is_needed(entry, group)}, versions)


def _uv_names(packages: Sequence[Mapping[str, Any]], project: object) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for package in packages:
        metadata = package.get("metadata")
        lists = [package.get("dependencies"), metadata.get("requires-dist") if isinstance(metadata, dict) else None]
        entries = [entry for entries in lists if isinstance(entries, list) for entry in entries]
        for entry in entries if _is_project(package, project) else []:
            if isinstance(entry, dict) and "extra ==" not in str(entry.get("marker")):
                extras = entry.get("extra", entry.get("extras"))
                known = names.setdefault(normal_name(str(entry.get("name"))), set())
                known.update(map(normal_name, map(str, extras if isinstance(extras, list) else [])))
    return names


def uses_index_only(lock: Mapping[str, Any], project: object) -> bool:
    """Whether every package of a uv.lock, except the project of this name, comes from an index."""
    return all(_is_indexed(package) or _is_project(package, project) for package in _packages(lock))


def has_plain_markers(lock: Mapping[str, Any]) -> bool:
    """Whether all text with spaces in a uv.lock is that of usual markers.

    uv copies markers into the requirements that it exports, where some cannot be parsed, and into its messages.
    """
    values: list[Any] = [lock]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str) and _SPACE.search(value) and not _LOCKED_MARKER.fullmatch(value):
            return False
    return True


def further_registries(lock: Mapping[str, Any]) -> list[str]:
    """Registries of a uv.lock other than that of most packages."""
    sources = [package.get("source") for package in _packages(lock)]
    counted = Counter(
        str(source["registry"]) for source in sources if isinstance(source, dict) and "registry" in source
    )
    return [registry for registry, _ in counted.most_common()[1:]]


def _is_indexed(package: Mapping[str, Any]) -> bool:
    source = package.get("source")
    return isinstance(source, dict) and "registry" in source


def _is_project(package: Mapping[str, Any], project: object) -> bool:
    """uv leaves out the project alone: another package in the same folder is built by the submission's code."""
    names = [normal_name(name) for name in (package.get("name"), project) if isinstance(name, str)]
    is_here = package.get("source") in ({"virtual": "."}, {"editable": "."})
    return is_here and len(names) == 2 and names[0] == names[1]


def poetry_requirements(lock: Mapping[str, Any]) -> str | None:
    """Requirements for a poetry.lock, or None if it is no such lock or needs more than an index."""
    packages = list(_packages(lock))
    if not packages or any("source" in package for package in packages if _is_needed(package, "main")):
        return None
    return _requirements([package for package in packages if _is_needed(package, "main")], "markers", "main")


def pdm_requirements(lock: Mapping[str, Any]) -> str | None:
    """Requirements for a pdm.lock, or None if it is no such lock or needs more than an index."""
    packages = [package for package in _packages(lock) if _is_needed(package, "default")]
    if not packages or any(key in package for package in packages for key in ELSEWHERE):
        return None
    return _requirements(packages, "marker", "default")


def pylock_requirements(lock: Mapping[str, Any]) -> str | None:
    """Requirements for a pylock.toml, or None if it needs more than an index, or markers that requirements do not have.

    It is also None if `_requirements` gives none. The lock's addresses of files are not used: the index has the same
    files, by their hashes.
    """
    packages = list(_packages(lock, "packages"))
    if any(key in package for package in packages for key in ELSEWHERE):
        return None
    if any(_PYLOCK_ONLY.search(str(package.get("marker", ""))) for package in packages):
        return None
    return _requirements([{**package, "files": _pylock_files(package)} for package in packages], "marker", "default")


def _pylock_files(package: Mapping[str, Any]) -> list[dict[str, str]]:
    wheels = package.get("wheels")
    files = [package.get("sdist"), *(wheels if isinstance(wheels, list) else [])]
    hashes = [file.get("hashes") for file in files if isinstance(file, dict)]
    return [{"hash": f"sha256:{digests.get('sha256')}"} for digests in hashes if isinstance(digests, dict)]


def _packages(lock: Mapping[str, Any], key: str = "package") -> Iterator[dict[str, Any]]:
    packages = lock.get(key)
    for package in packages if isinstance(packages, list) else ():
        yield package if isinstance(package, dict) else {}


def _is_needed(package: Mapping[str, Any], group: str) -> bool:
    """Whether the project itself needs it; older formats do not tell it from tools of development."""
    if package.get("optional") is True:
        return False
    groups, category = package.get("groups"), package.get("category", "main")
    return group in groups if isinstance(groups, list) else category == "main"


def _requirements(packages: list[dict[str, Any]], marker_key: str, group: str) -> str | None:
    """One line for each package, or None.

    It is None if not all can be written as requirements, or if nothing chooses between two versions of a package.
    """
    lines = [_requirement(package, marker_key, group) for package in packages]
    named = [
        (package.get("name"), line) for package, line in zip(packages, lines, strict=True) if not package.get("extras")
    ]
    counts = Counter(str(name) for name, _ in named)
    # Without markers of its own, such a package is chosen by markers of other packages.
    if None in lines or any(counts[str(name)] > 1 and " ; " not in str(line) for name, line in named):
        return None
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def _requirement(package: Mapping[str, Any], marker_key: str, group: str) -> str | None:
    name, version, marker = package.get("name"), package.get("version"), package.get(marker_key)
    if isinstance(marker, dict):
        marker = marker.get(group)
    if not isinstance(name, str) or not isinstance(version, str) or not isinstance(marker, str | None):
        return None
    if not is_name(name) or not _VERSION.fullmatch(version) or not MARKER_TEXT.fullmatch(marker or ""):
        return None
    files = package.get("files")
    hashes = [entry.get("hash") for entry in files if isinstance(entry, dict)] if isinstance(files, list) else []
    checked = [f"--hash={value}" for value in hashes if isinstance(value, str) and _HASH.fullmatch(value)]
    return " ".join([f"{name}=={version}", *([f"; {marker}"] if marker else []), *checked])
