"""Dependencies of Python submissions: which file names them, and what their installation depends on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._io import TooLargeError, read_bounded
from slop_code.execution.dependencies.file_parsers import install_requires, parse_toml
from slop_code.execution.dependencies.inline_metadata import script_metadata
from slop_code.execution.dependencies.package_managers import (
    further_registries,
    has_plain_markers,
    locked_packages,
    normal_name,
    pdm_requirements,
    poetry_requirements,
    pylock_requirements,
    uses_index_only,
)
from slop_code.execution.dependencies.plain_requirements import plain_lines, plain_name
from slop_code.execution.dependencies.poetry_project import (
    is_built_by_poetry,
    is_dynamic,
    poetry_dependencies,
    poetry_project_requirements,
)
from slop_code.execution.dependencies.stale_locks import StaleLock, stale_lock
from slop_code.execution.python_version import normal_request

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES = 1 << 20
MAX_LOCK_BYTES = 8 << 20
MAX_PATH = 4096
"""Characters of a path, as Linux limits its bytes."""

LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
MAX_FILES = 20
"""That a setup.cfg may name."""

UNREADABLE = ("Pipfile", "environment.yml", "environment.yaml", "conda.yaml", "conda-lock.yml")
"""Files that name dependencies, and that nothing here can read."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Dependencies as one file names them."""

    source: str | None = None
    """The file; None: there are none."""

    text: str | None = None
    """All that their installation depends on; None: it may depend on the whole submission."""

    requirements: str | None = None
    """A requirements file made of the source; None: uv reads the source itself."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Files that uv reads for `export`, if it needs no others."""

    export: bool = False
    """uv makes a requirements file of its lock first."""

    locked: bool = False
    """Complete, so that no dependency of a dependency is added."""

    stale_lock: StaleLock | None = None
    """A lock that lacks some of them, and whose versions are preferred."""

    @property
    def plain(self) -> bool:
        """Only packages of the index are installed, and no code of the submission runs."""
        return self.text is not None if self.export else self.lines is not None

    @property
    def lines(self) -> tuple[str, ...] | None:
        """The requirements; None: they are not plain, or uv has to export them."""
        return None if self.export or self.text is None else plain_lines(self.text)


def python_dependencies(submission: Path, entry_file: str | None = None) -> Dependencies:
    """From requirements.txt, a lock, the project's own file or the entry file, whichever names any first."""
    return _used(_dependency_files(submission, entry_file))


def _used(files: list[Dependencies]) -> Dependencies:
    return next((file for file in files if file.lines != ()), files[0] if files else Dependencies())


def _dependency_files(submission: Path, entry_file: str | None) -> list[Dependencies]:
    readers = (_requirements_txt, _uv_lock, _poetry_lock, _pdm_lock, _pylock, _pyproject, _setup_py, _setup_cfg)
    script = None if entry_file is None else _script(submission, entry_file)
    files = filter(None, (*(reader(submission) for reader in readers), script))
    return [file if file.source not in LOCKS else _lock_or_project(submission, file) for file in files]


def _lock_or_project(submission: Path, lock: Dependencies) -> Dependencies:
    """The lock, or the project's own file if the lock is stale. Package managers then resolve again, too."""
    stale = _stale_lock(submission, str(lock.source), _listed_dependencies(_toml(submission, "pyproject.toml") or {}))
    own = _pyproject(submission) if stale else None
    return lock if own is None else replace(own, stale_lock=stale)


def _stale_lock(submission: Path, name: str, dependencies: list[str]) -> StaleLock | None:
    project = (_toml(submission, "pyproject.toml") or {}).get("project")
    own_name = project.get("name") if isinstance(project, dict) else None
    return stale_lock(name, locked_packages(name, _toml(submission, name) or {}, own_name), dependencies)


def _listed_dependencies(settings: Mapping[str, Any]) -> list[str]:
    """The dependencies in a pyproject.toml, plain or not, as far as they can be read."""
    if (listed := poetry_dependencies(settings)) is not None:
        return (poetry_project_requirements(listed) or "").splitlines()
    project = settings.get("project")
    return _texts(project.get("dependencies")) if isinstance(project, dict) else []


def _texts(values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def dependency_warnings(submission: Path, entry_file: str | None = None) -> list[str]:
    """Files that name dependencies, and that do not count."""
    files = _dependency_files(submission, entry_file)
    used = _used(files)
    warnings = [
        f"{name} of the submission cannot be read, so its packages are not installed; requirements.txt can"
        for name in UNREADABLE
        if _is_file(submission, name)
    ]
    warnings += _unparsed(submission, used, entry_file)
    if (stale := used.stale_lock) is not None:
        warnings.append(_stale_warning(stale))
    counted = [used.source, stale.name if stale else None]
    ignored = [name for name in LOCKS if _is_file(submission, name) and name not in counted]
    ignored += [str(file.source) for file in files if file.source != entry_file and _is_ignored(file, used)]
    if entry_file is not None and _is_script_ignored(submission, entry_file, used):
        ignored.append(f"the script metadata in {entry_file}")
    warnings += [f"{name} of the submission is ignored: {_reason(used.source)}" for name in dict.fromkeys(ignored)]
    registries = further_registries(_toml(submission, "uv.lock") or {}) if used.source == "uv.lock" else []
    return [*warnings, *map(_registry_warning, registries)]


def _unparsed(submission: Path, used: Dependencies, entry_file: str | None) -> list[str]:
    settings, warnings = _toml(submission, "pyproject.toml"), []
    if _is_file(submission, "pyproject.toml") and settings is None:
        warnings.append("pyproject.toml of the submission cannot be parsed, so it names no dependencies")
    if poetry_dependencies(settings or {}) and _pyproject(submission) is None and used.source not in LOCKS:
        warnings.append("[tool.poetry.dependencies] of the submission has what only Poetry can read; it is ignored")
    listed = _install_requires(submission)
    if listed is None:
        warnings.append("setup.cfg of the submission cannot be parsed, so it names no dependencies")
    elif listed and _setup_cfg(submission) is None:
        warnings.append("install_requires in setup.cfg of the submission names files that cannot be read")
    metadata = {} if entry_file is None else script_metadata(_text(submission, entry_file) or "")
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
    script = _script(submission, entry_file)
    if script is None or used.source == entry_file:
        return False
    if used.source in LOCKS:
        metadata = script_metadata(_text(submission, entry_file) or "") or {}
        return _stale_lock(submission, used.source, _texts(metadata.get("dependencies"))) is not None
    return script.lines is None or not set(script.lines) <= set(used.lines or [])


def _registry_warning(registry: str) -> str:
    step = "UV_INDEX in environment.env of the environment adds it"
    return f"uv.lock of the submission has packages of {registry[:200]!r}, which is not asked; {step}"


def _stale_warning(lock: StaleLock) -> str:
    names = ", ".join(list(dict.fromkeys(lock.missing))[:5])
    how = "packages were resolved anew, in its versions where they fit"
    return f"{lock.name} of the submission lacks what pyproject.toml asks for ({names}), so it is stale; {how}"


def _reason(source: str | None) -> str:
    return f"dependencies come from {source}" if source else "it cannot be used, and nothing else names dependencies"


def _requirements_txt(submission: Path) -> Dependencies | None:
    name = "requirements.txt"
    text = _text(submission, name)
    # What uv would find in the submission may be another file: a link leads elsewhere in the box.
    lines = None if text is None else plain_lines(text)
    requirements = None if lines is None else "".join(f"{line}\n" for line in lines)
    return Dependencies(name, text, requirements) if _is_file(submission, name) else None


def _uv_lock(submission: Path) -> Dependencies | None:
    project, lock = (_toml(submission, "pyproject.toml") or {}).get("project"), _toml(submission, "uv.lock")
    if not isinstance(project, dict) or not lock:
        return None
    usual = uses_index_only(lock, project.get("name")) and has_plain_markers(lock)
    if not usual or further_registries(lock):
        return Dependencies("uv.lock", export=True, locked=True)
    files = {name: _text(submission, name) or "" for name in ("uv.lock", "pyproject.toml")}
    return Dependencies("uv.lock", "\n".join(files.values()), files=files, export=True, locked=True)


def _poetry_lock(submission: Path) -> Dependencies | None:
    requirements = poetry_requirements(_toml(submission, "poetry.lock") or {})
    if requirements is None:
        return None
    return Dependencies("poetry.lock", requirements, requirements, locked=True)


def _pdm_lock(submission: Path) -> Dependencies | None:
    requirements = pdm_requirements(_toml(submission, "pdm.lock") or {})
    if requirements is None:
        return None
    return Dependencies("pdm.lock", requirements, requirements, locked=True)


def _pylock(submission: Path) -> Dependencies | None:
    lock = _toml(submission, "pylock.toml") or {}
    if not isinstance(lock.get("packages"), list):
        return None
    requirements = pylock_requirements(lock)
    return Dependencies("pylock.toml", requirements, requirements, locked=True)


def _pyproject(submission: Path) -> Dependencies | None:
    name = "pyproject.toml"
    settings = _toml(submission, name) or {}
    if (listed := poetry_dependencies(settings)) is not None:
        requirements = poetry_project_requirements(listed)
        # What only Poetry understands, its build backend reads.
        is_readable = requirements is not None or is_built_by_poetry(settings)
        return Dependencies(name, requirements, requirements) if is_readable else None
    project, tools = settings.get("project"), settings.get("tool")
    if not isinstance(project, dict) or not ("dependencies" in project or is_dynamic(project)):
        return None
    # Settings for uv can make a plain name refer to a file of the submission's own.
    own_sources = isinstance(tools, dict) and "uv" in tools
    requirements = None if own_sources else _project_requirements(project)
    return Dependencies(name, requirements, requirements)


def _script(submission: Path, entry_file: str) -> Dependencies | None:
    metadata = script_metadata(_text(submission, entry_file) or "") or {}
    if "dependencies" not in metadata:
        return None
    requirements = _project_requirements(metadata)
    return Dependencies(entry_file, requirements, requirements)


def has_script_dependencies(submission: Path, entry_file: str) -> bool:
    script = _script(submission, entry_file)
    return script is not None and script.lines != ()


def _project_requirements(project: dict[str, Any]) -> str | None:
    """Made of `[project]`, so that no other mistake in the file matters; None: they are more than plain names."""
    dependencies, own_name = project.get("dependencies"), project.get("name")
    if not isinstance(dependencies, list) or is_dynamic(project):
        return None
    names = [plain_name(dependency) for dependency in dependencies]
    # The extras of a dependency with the project's own name are those of this file.
    if None in names or (isinstance(own_name, str) and normal_name(own_name) in names):
        return None
    return "".join(f"{dependency}\n" for dependency in dependencies)


def _setup_py(submission: Path) -> Dependencies | None:
    """Only a script that looks like one of setuptools is run: any program may have this name."""
    text = _text(submission, "setup.py")
    return Dependencies("setup.py") if text and "setup(" in text and "install_requires" in text else None


def _setup_cfg(submission: Path) -> Dependencies | None:
    """uv does not read it without a setup.py."""
    listed = _install_requires(submission) or ""
    if listed.startswith("file:"):
        names = [name.strip() for name in listed.removeprefix("file:").split(",")]
        texts = [_text(submission, name) for name in names] if len(names) <= MAX_FILES else [None]
        listed = "\n".join(text or "" for text in texts)
        if None in texts:
            return None
    elif not listed:
        return None
    text = "\n".join(line.strip() for line in listed.splitlines() if line.strip())
    return Dependencies("setup.cfg", text, text)


def _install_requires(submission: Path) -> str | None:
    """None: the setup.cfg cannot be parsed."""
    return install_requires(_text(submission, "setup.cfg") or "")


def python_requests(submission: Path, entry_file: str) -> list[tuple[str, str]]:
    """Versions of Python that a submission asks for, each with the file that does so, as far as it can be read."""
    requests = []
    project = (_toml(submission, "pyproject.toml") or {}).get("project")
    script = script_metadata(_text(submission, entry_file) or "")
    for name, table in (("pyproject.toml", project), (entry_file, script)):
        wanted = table.get("requires-python") if isinstance(table, dict) else None
        if isinstance(wanted, str) and normal_request(wanted) is not None:
            requests.append((f"requires-python in {name}", wanted))
    first = (_text(submission, ".python-version") or "").strip().splitlines()[:1]
    if first and normal_request(version := first[0].strip().removeprefix("cpython-").removeprefix("python-")):
        requests.append((".python-version", version))
    return requests


def _is_file(submission: Path, name: str) -> bool:
    return _file(submission, name) is not None


def _file(submission: Path, name: str) -> Path | None:
    """A file of the submission; None: it is absent, or a pipe or a link that leads out, which uv must not read.

    Any name is possible, as a setup.cfg names files. No error may escape: it would replace the verdict.
    """
    if len(name) > MAX_PATH:
        return None  # it cannot exist, and `realpath` would take time with the square of its length
    try:
        path = Path(os.path.realpath(submission / name))
    except ValueError:  # a null character, or one that no file name can have
        return None
    return path if submission in path.parents and os.path.isfile(path) else None


def _text(submission: Path, name: str) -> str | None:
    """None: it is absent, not text, or too large."""
    if (path := _file(submission, name)) is None:
        return None
    try:
        return read_bounded(path, MAX_LOCK_BYTES if name in LOCKS else MAX_FILE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError, TooLargeError):
        return None


def _toml(submission: Path, name: str) -> dict[str, Any] | None:
    """None: it is absent, or cannot be parsed."""
    text = _text(submission, name)
    return None if text is None else parse_toml(text)
