"""The file that names the dependencies of a Python submission, and what their installation depends on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from slop_code.execution.dependencies.file_parsers import install_requires
from slop_code.execution.dependencies.inline_metadata import script_metadata
from slop_code.execution.dependencies.lock_files import (
    LOCKS,
    further_registries,
    has_plain_markers,
    locked_packages,
    pdm_requirements,
    poetry_requirements,
    pylock_requirements,
    uses_index_only,
)
from slop_code.execution.dependencies.plain_requirements import normal_name, plain_lines, plain_name
from slop_code.execution.dependencies.poetry_project import (
    is_built_by_poetry,
    is_dynamic,
    poetry_dependencies,
    poetry_project_requirements,
)
from slop_code.execution.dependencies.stale_locks import PreferredLock, preferred_lock, stale_lock
from slop_code.execution.dependencies.submission_files import has_file, read_text, read_toml
from slop_code.execution.python_version import normal_request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from slop_code.execution.dependencies.lock_files import LockedPackages

MAX_FILES = 20
"""That a setup.cfg may name."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Dependencies as one file names them."""

    source: str | None = None
    """The file, or None if there are no dependencies."""

    text: str | None = None
    """All that their installation depends on, or None if it may depend on the whole submission."""

    requirements: str | None = None
    """A requirements file made of the source, or None if uv reads the source itself."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Files that uv reads for `export`, if it needs no others."""

    export: bool = False
    """uv makes a requirements file of its lock first."""

    locked: bool = False
    """Complete, so that no dependency of a dependency is added."""

    preferred_lock: PreferredLock | None = None
    """A lock that is stale, or cannot be installed as it is, and whose versions are preferred."""

    @classmethod
    def from_requirements(cls, source: str, requirements: str | None, *, locked: bool = False) -> Dependencies:
        """Requirements that say all about the dependencies, or None if uv reads the source, and maybe other files."""
        return cls(source, requirements, requirements, locked=locked)

    @property
    def plain(self) -> bool:
        """Only packages of the index are installed, and no code of the submission runs."""
        return self.text is not None if self.export else self.lines is not None

    @property
    def lines(self) -> tuple[str, ...] | None:
        """The requirements, or None if they are not plain or uv has to export them."""
        return None if self.export or self.text is None else plain_lines(self.text)


def python_dependencies(submission: Path, entry_file: str | None = None) -> Dependencies:
    """From requirements.txt, a lock, the project's own file or the entry file, whichever names any first."""
    return first_with_dependencies(dependency_files(submission, entry_file))


def first_with_dependencies(files: list[Dependencies]) -> Dependencies:
    return next((file for file in files if file.lines != ()), files[0] if files else Dependencies())


def dependency_files(submission: Path, entry_file: str | None) -> list[Dependencies]:
    """In the order in which they count."""
    locks = (_uv_lock, _poetry_lock, _pdm_lock, _pylock)
    readers = (_requirements_txt, *locks, pyproject_dependencies, _setup_py, setup_cfg_dependencies)
    script = None if entry_file is None else script_dependencies(submission, entry_file)
    files = filter(None, (*(reader(submission) for reader in readers), script))
    return [file if file.source not in LOCKS else _lock_or_project(submission, file) for file in files]


def _lock_or_project(submission: Path, lock: Dependencies) -> Dependencies:
    """The lock, or the project's own file if the lock is stale. Package managers then resolve again, too."""
    listed = _listed_dependencies(read_toml(submission, "pyproject.toml") or {})
    stale = find_stale_lock(submission, str(lock.source), listed)
    own = pyproject_dependencies(submission) if stale else None
    return lock if own is None else replace(own, preferred_lock=stale)


def find_stale_lock(submission: Path, name: str, dependencies: Any) -> PreferredLock | None:
    """The lock of this name if it lacks any of the dependencies, of which all but texts are left out."""
    texts = [text for text in dependencies if isinstance(text, str)] if isinstance(dependencies, list) else []
    return stale_lock(name, _locked_packages(submission, name), texts)


def _locked_packages(submission: Path, name: str) -> LockedPackages:
    project = (read_toml(submission, "pyproject.toml") or {}).get("project")
    own_name = project.get("name") if isinstance(project, dict) else None
    return locked_packages(name, read_toml(submission, name) or {}, own_name)


def _listed_dependencies(settings: Mapping[str, Any]) -> Any:
    """The dependencies in a pyproject.toml, plain or not, as far as they can be read."""
    if (listed := poetry_dependencies(settings)) is not None:
        return (poetry_project_requirements(listed) or "").splitlines()
    project = settings.get("project")
    return project.get("dependencies") if isinstance(project, dict) else None


def _requirements_txt(submission: Path) -> Dependencies | None:
    name = "requirements.txt"
    text = read_text(submission, name)
    # What uv would find in the submission may be another file: a link leads elsewhere in the box.
    lines = None if text is None else plain_lines(text)
    requirements = None if lines is None else "".join(f"{line}\n" for line in lines)
    return Dependencies(name, text, requirements) if has_file(submission, name) else None


def _uv_lock(submission: Path) -> Dependencies | None:
    project, lock = (read_toml(submission, "pyproject.toml") or {}).get("project"), read_toml(submission, "uv.lock")
    if not isinstance(project, dict) or not lock:
        return None
    usual = uses_index_only(lock, project.get("name")) and has_plain_markers(lock)
    if not usual or further_registries(lock):
        return Dependencies("uv.lock", export=True, locked=True)
    files = {name: read_text(submission, name) or "" for name in ("uv.lock", "pyproject.toml")}
    return Dependencies("uv.lock", "\n".join(files.values()), files=files, export=True, locked=True)


def _poetry_lock(submission: Path) -> Dependencies | None:
    name = "poetry.lock"
    return _lock_or_preferences(submission, name, poetry_requirements(read_toml(submission, name) or {}))


def _pdm_lock(submission: Path) -> Dependencies | None:
    name = "pdm.lock"
    return _lock_or_preferences(submission, name, pdm_requirements(read_toml(submission, name) or {}))


def _lock_or_preferences(submission: Path, name: str, requirements: str | None) -> Dependencies | None:
    """The lock, or the project's own file in the versions of a lock that cannot be installed as it is."""
    if requirements is not None:
        return Dependencies.from_requirements(name, requirements, locked=True)
    own, locked = pyproject_dependencies(submission), _locked_packages(submission, name)
    return replace(own, preferred_lock=preferred_lock(name, locked)) if own and locked.versions else None


def _pylock(submission: Path) -> Dependencies | None:
    lock = read_toml(submission, "pylock.toml") or {}
    if not isinstance(lock.get("packages"), list):
        return None
    requirements = pylock_requirements(lock)
    return Dependencies.from_requirements("pylock.toml", requirements, locked=True)


def pyproject_dependencies(submission: Path) -> Dependencies | None:
    name = "pyproject.toml"
    settings = read_toml(submission, name) or {}
    if (listed := poetry_dependencies(settings)) is not None:
        requirements = poetry_project_requirements(listed)
        # What only Poetry understands, its build backend reads.
        is_readable = requirements is not None or is_built_by_poetry(settings)
        return Dependencies.from_requirements(name, requirements) if is_readable else None
    project, tools = settings.get("project"), settings.get("tool")
    if not isinstance(project, dict) or not ("dependencies" in project or is_dynamic(project)):
        return None
    # Settings for uv can make a plain name refer to a file of the submission's own.
    own_sources = isinstance(tools, dict) and "uv" in tools
    requirements = None if own_sources else _project_requirements(project)
    return Dependencies.from_requirements(name, requirements)


def script_dependencies(submission: Path, entry_file: str) -> Dependencies | None:
    metadata = script_metadata(read_text(submission, entry_file) or "") or {}
    if "dependencies" not in metadata:
        return None
    requirements = _project_requirements(metadata)
    return Dependencies.from_requirements(entry_file, requirements)


def has_script_dependencies(submission: Path, entry_file: str) -> bool:
    script = script_dependencies(submission, entry_file)
    return script is not None and script.lines != ()


def _project_requirements(project: dict[str, Any]) -> str | None:
    """Made of `[project]`, so that no other mistake in the file matters, or None if they are more than plain names.

    None also stands for no list of them, for one that is dynamic, and for one with the project's own name.
    """
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
    text = read_text(submission, "setup.py")
    return Dependencies("setup.py") if text and "setup(" in text and "install_requires" in text else None


def setup_cfg_dependencies(submission: Path) -> Dependencies | None:
    """uv does not read it without a setup.py."""
    listed = install_requires(read_text(submission, "setup.cfg") or "") or ""
    if listed.startswith("file:"):
        names = [name.strip() for name in listed.removeprefix("file:").split(",")]
        texts = [read_text(submission, name) for name in names] if len(names) <= MAX_FILES else [None]
        listed = "\n".join(text or "" for text in texts)
        if None in texts:
            return None
    elif not listed:
        return None
    text = "\n".join(line.strip() for line in listed.splitlines() if line.strip())
    return Dependencies.from_requirements("setup.cfg", text)


def python_requests(submission: Path, entry_file: str) -> list[tuple[str, str]]:
    """Versions of Python that a submission asks for, each with the file that does so, as far as it can be read."""
    requests = []
    project = (read_toml(submission, "pyproject.toml") or {}).get("project")
    script = script_metadata(read_text(submission, entry_file) or "")
    for name, table in (("pyproject.toml", project), (entry_file, script)):
        wanted = table.get("requires-python") if isinstance(table, dict) else None
        if isinstance(wanted, str) and normal_request(wanted) is not None:
            requests.append((f"requires-python in {name}", wanted))
    first = (read_text(submission, ".python-version") or "").strip().splitlines()[:1]
    if first and normal_request(version := first[0].strip().removeprefix("cpython-").removeprefix("python-")):
        requests.append((".python-version", version))
    return requests
