"""Warnings about files of a submission that name dependencies, and that do not count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slop_code.execution.dependencies.file_parsers import install_requires
from slop_code.execution.dependencies.find_dependencies import (
    Dependencies,
    dependency_files,
    find_stale_lock,
    first_with_dependencies,
    pyproject_dependencies,
    script_dependencies,
    setup_cfg_dependencies,
)
from slop_code.execution.dependencies.inline_metadata import script_metadata
from slop_code.execution.dependencies.lock_files import LOCKS, further_registries
from slop_code.execution.dependencies.poetry_project import poetry_dependencies
from slop_code.execution.dependencies.submission_files import has_file, read_text, read_toml

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.execution.dependencies.stale_locks import PreferredLock

UNSUPPORTED = (
    "Pipfile", "Pipfile.lock", "environment.yml", "environment.yaml", "conda.yml", "conda.yaml", "conda-lock.yml",
)  # fmt: skip
"""Files that name dependencies, and that nothing here can read."""


def dependency_warnings(submission: Path, entry_file: str | None = None) -> list[str]:
    """Files that name dependencies, and that do not count."""
    files = dependency_files(submission, entry_file)
    used = first_with_dependencies(files)
    warnings = [
        f"{name} of the submission is not supported, so its packages are not installed; list them in requirements.txt"
        for name in UNSUPPORTED
        if has_file(submission, name)
    ]
    warnings += _unparsed(submission, used, entry_file)
    if (preferred := used.preferred_lock) is not None:
        warnings.append(_lock_warning(preferred))
    counted = [used.source, preferred.name if preferred else None]
    ignored = [name for name in LOCKS if has_file(submission, name) and name not in counted]
    ignored += [str(file.source) for file in files if file.source != entry_file and _is_ignored(file, used)]
    if entry_file is not None and _is_script_ignored(submission, entry_file, used):
        ignored.append(f"the script metadata in {entry_file}")
    warnings += [f"{name} of the submission is ignored: {_reason(used.source)}" for name in dict.fromkeys(ignored)]
    registries = further_registries(read_toml(submission, "uv.lock") or {}) if used.source == "uv.lock" else []
    return [*warnings, *map(_registry_warning, registries)]


def _unparsed(submission: Path, used: Dependencies, entry_file: str | None) -> list[str]:
    settings, warnings = read_toml(submission, "pyproject.toml"), []
    if has_file(submission, "pyproject.toml") and settings is None:
        warnings.append("pyproject.toml of the submission cannot be parsed, so it names no dependencies")
    if poetry_dependencies(settings or {}) and pyproject_dependencies(submission) is None and used.source not in LOCKS:
        warnings.append("[tool.poetry.dependencies] of the submission has what only Poetry can read; it is ignored")
    listed = install_requires(read_text(submission, "setup.cfg") or "")
    if listed is None:
        warnings.append("setup.cfg of the submission cannot be parsed, so it names no dependencies")
    elif listed and setup_cfg_dependencies(submission) is None:
        warnings.append("install_requires in setup.cfg of the submission names files that cannot be read")
    metadata = {} if entry_file is None else script_metadata(read_text(submission, entry_file) or "")
    if metadata is None:
        warnings.append(f"the script metadata in {entry_file} of the submission cannot be parsed")
    elif used.source == entry_file and "tool" in metadata:
        warnings.append(f"[tool] in the script metadata in {entry_file} of the submission is ignored")
    return warnings


def _is_ignored(file: Dependencies, used: Dependencies) -> bool:
    """Whether a file other than a lock names dependencies that the used one may lack.

    A lock is that of the project's own file, and requirements that are not plain may refer to it.
    """
    if file.source in LOCKS or used.source in LOCKS or used.lines is None:
        return False
    return file.lines is None or not set(file.lines) <= set(used.lines)


def _is_script_ignored(submission: Path, entry_file: str, used: Dependencies) -> bool:
    script = script_dependencies(submission, entry_file)
    if script is None or used.source == entry_file:
        return False
    if used.source in LOCKS:
        metadata = script_metadata(read_text(submission, entry_file) or "") or {}
        return find_stale_lock(submission, used.source, metadata.get("dependencies")) is not None
    return script.lines is None or not set(script.lines) <= set(used.lines or [])


def _registry_warning(registry: str) -> str:
    step = "UV_INDEX in environment.env of the environment adds it"
    return f"uv.lock of the submission has packages of {registry[:200]!r}, which is not asked; {step}"


def _lock_warning(lock: PreferredLock) -> str:
    names = ", ".join(list(dict.fromkeys(lock.missing))[:5])
    how = "packages were resolved anew, in its versions where they fit"
    if not names:
        return f"{lock.name} of the submission cannot be installed as it is; {how}"
    return f"{lock.name} of the submission lacks what pyproject.toml asks for ({names}), so it is stale; {how}"


def _reason(source: str | None) -> str:
    return f"dependencies come from {source}" if source else "it cannot be used, and nothing else names dependencies"
