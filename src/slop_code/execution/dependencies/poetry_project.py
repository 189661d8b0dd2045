"""Dependencies of Poetry projects, as requirements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slop_code.execution.dependencies.plain_requirements import MARKER_TEXT, is_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLATFORM = re.compile(r"[a-z0-9_]+")
_LOCATION = re.compile(r"[!-~]+")
_PYTHON_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*([0-9]+(?:\.[0-9]+)*)(?:\.\*)?")
_KNOWN = {
    "version", "extras", "markers", "python", "platform", "optional", "source", "allow-prereleases",
    "path", "file", "url", "git", "branch", "tag", "rev", "subdirectory", "develop",
}  # fmt: skip
"""Keys of a dependency. Poetry itself leaves `source` out of a package's metadata."""


def poetry_dependencies(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """`[tool.poetry.dependencies]` of a pyproject.toml, or None if there are none or those of `[project]` count."""
    project, poetry = settings.get("project"), _table(settings, "tool", "poetry")
    if isinstance(project, dict) and (
        "dependencies" in project or (is_dynamic(project) and _has_other_backend(settings))
    ):
        return None
    dependencies = poetry.get("dependencies")
    return dependencies if isinstance(dependencies, dict) else None


def is_built_by_poetry(settings: Mapping[str, Any]) -> bool:
    """Whether uv asks Poetry's build backend for the dependencies. It does not if `[project]` may state them."""
    project = settings.get("project")
    has_backend = "build-backend" in _table(settings, "build-system") and not _has_other_backend(settings)
    is_package = _table(settings, "tool", "poetry").get("package-mode") is not False
    return has_backend and is_package and (not isinstance(project, dict) or is_dynamic(project))


def is_dynamic(project: Mapping[str, Any]) -> bool:
    """Whether the project's build backend may compute its dependencies."""
    dynamic = project.get("dynamic", [])
    return not isinstance(dynamic, list) or "dependencies" in dynamic


def _has_other_backend(settings: Mapping[str, Any]) -> bool:
    return not str(_table(settings, "build-system").get("build-backend", "poetry.")).startswith("poetry.")


def _table(settings: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        value = settings.get(key)
        settings = value if isinstance(value, dict) else {}
    return settings


def poetry_project_requirements(dependencies: Mapping[str, Any]) -> str | None:
    """Requirements for `[tool.poetry.dependencies]`, or None if only Poetry can read them."""
    lines = [
        _requirement(name, settings)
        for name, value in dependencies.items()
        if name.lower() != "python"
        for settings in (value if isinstance(value, list) else [value])
        if not (isinstance(settings, dict) and settings.get("optional") is True)
    ]
    return None if None in lines else "".join(f"{line}\n" for line in lines)


def _requirement(name: str, value: Any) -> str | None:
    settings = value if isinstance(value, dict) else {"version": value}
    extras, what, marker = settings.get("extras", []), _version_or_location(settings), _marker(settings)
    known = isinstance(extras, list) and all(isinstance(extra, str) and is_name(extra) for extra in extras)
    if settings.keys() - _KNOWN or what is None or marker is None or not known or not is_name(name):
        return None
    own = f"[{','.join(extras)}]" if extras else ""
    return f"{name}{own}{what}" + (f" ; {marker}" if marker else "")


def _version_or_location(settings: Mapping[str, Any]) -> str | None:
    if isinstance(version := settings.get("version"), str):
        return pep440_specifier(version)
    location = next((settings[key] for key in ("path", "file", "url", "git") if key in settings), None)
    if "git" in settings:
        revision = next((settings[key] for key in ("rev", "tag", "branch") if key in settings), None)
        location = f"git+{location}" + (f"@{revision}" if revision else "")
    if "subdirectory" in settings:
        location = f"{location}#subdirectory={settings['subdirectory']}"
    return f" @ {location}" if isinstance(location, str) and _LOCATION.fullmatch(location) else None


def _marker(settings: Mapping[str, Any]) -> str | None:
    """Empty if it is installed everywhere, or None if it cannot be read."""
    given, python, platform = (settings.get(key, "") for key in ("markers", "python", "platform"))
    if not all(isinstance(value, str) for value in (given, python, platform)) or not MARKER_TEXT.fullmatch(given):
        return None
    if platform and not _PLATFORM.fullmatch(platform):
        return None
    versions = _python_marker(python) if python else ""
    parts = [given, versions, f"sys_platform == '{platform}'" if platform else ""]
    used = [part for part in parts if part]
    if versions is None:
        return None
    return used[0] if len(used) == 1 else " and ".join(f"({part})" for part in used)


def _python_marker(constraint: str) -> str | None:
    alternatives = []
    for alternative in re.split(r"\|\|?", constraint):
        specifier = pep440_specifier(alternative.strip())
        clauses = [_python_clause(clause) for clause in (specifier or "").split(",") if clause]
        if specifier is None or None in clauses:
            return None
        if not clauses:
            return ""
        alternatives.append(" and ".join(map(str, clauses)))
    return " or ".join(alternatives)


def _python_clause(clause: str) -> str | None:
    match = _PYTHON_CLAUSE.fullmatch(clause)
    if not match or (match[1] in ("==", "!=") and "." not in match[2]):
        return None
    variable = "python_version" if match[2].count(".") < 2 else "python_full_version"
    return f"{variable} {match[1]} '{match[2]}'"


def pep440_specifier(constraint: str) -> str | None:
    """The specifier that means the same as Poetry's constraint, such as `^1.2`, or None if there is none."""
    parts = [_pep440_part(part.strip()) for part in constraint.split(",")]
    return None if None in parts else ",".join(part for part in parts if part)


def _pep440_part(part: str) -> str | None:
    if part == "*":
        return ""
    if match := re.fullmatch(r"([\^~])\s*([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})", part):
        numbers = [int(number) for number in match[2].split(".")]
        first = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
        index = first if match[1] == "^" else min(1, len(numbers) - 1)
        end = [*numbers[:index], numbers[index] + 1]
        return f">={match[2]},<{'.'.join(map(str, end))}"
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)*(?:\.\*)?", part):
        return f"=={part}"
    return part if re.fullmatch(r"(?:>=|<=|==|!=|~=|>|<)\s*[A-Za-z0-9.!+*]+", part) else None
