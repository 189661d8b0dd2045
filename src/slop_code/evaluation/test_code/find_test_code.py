"""Test code: the files of a tests folder that decide a verdict, which no call hands over to a submission.

These are the files that pytest loads and the files that these import, directly or through each other. Where that
cannot be determined, every Python file of the folder is test code.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from slop_code.evaluation.selection import is_test_file
from slop_code.evaluation.test_code.definitions import Definition, files_for_runners
from slop_code.evaluation.test_code.path_patterns import matching_files
from slop_code.evaluation.test_code.python_imports import UNKNOWN_IMPORTS, Imports, read_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

INI = "pytest.ini"
CODE_SUFFIXES = (".py", ".so")
TOP = PurePosixPath()


@dataclass(frozen=True, slots=True)
class CodeFiles:
    """Paths relative to the tests folder."""

    files: frozenset[str]
    assumed: frozenset[str] = frozenset()
    """Those of the files that count only because a test computes the name of a module that it imports."""


def find_test_code(
    folder: Path, loaded: Iterable[str], import_roots: Iterable[str], shown: Collection[str]
) -> CodeFiles:
    """The test code of a tests folder.

    `loaded` are the files that pytest loaded when it collected the tests, `import_roots` the folders that were in
    `sys.path` then, `shown` the files that every submission sees.
    """
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    hidden = {name: path for name, path in files.items() if name not in shown}
    start = [PurePosixPath(name) for name in (*loaded, *filter(_is_top_level_test, hidden)) if name in hidden]
    names = [PurePosixPath(name) for name in hidden]
    code_files = loaded_files(names, start, lambda file: imports_of(folder / file), import_roots)
    certain = _with_copies(hidden, {*start} if code_files is None else code_files) | ({INI} & files.keys())
    if code_files is not None:
        return CodeFiles(certain)
    possible = _with_copies(hidden, [name for name in names if name.suffix in CODE_SUFFIXES])
    return CodeFiles(certain | possible, possible - certain)


def loaded_files(
    files: Collection[PurePosixPath],
    start: Iterable[PurePosixPath],
    read: Callable[[PurePosixPath], Imports],
    import_roots: Iterable[str] | None = None,
) -> set[PurePosixPath] | None:
    """The files in `start` and those that they load, directly or through each other; None if that cannot be determined.

    Without `import_roots`, code that changes `sys.path` may import from every folder.
    """
    known, code_by_folder = {*files}, _code_by_folder(files)
    roots, start = {TOP, *map(PurePosixPath, import_roots or ())}, [*start]
    start_folders = {file.parent for file in start}
    code_files, waiting, everywhere = set[PurePosixPath](), [*start], False
    definitions = set[Definition]()
    while waiting or (waiting := list(_files_run_by_name(definitions, start_folders, known) - code_files)):
        file = waiting.pop()
        if file in code_files:
            continue
        code_files.add(file)
        imports = read(file) if file.suffix == ".py" else Imports()
        if imports.computed:
            return None
        changes = imports.changes_path_later or (import_roots is None and imports.changes_path)
        if changes and not everywhere:  # what was imported before may have come from any folder, too
            everywhere, roots = True, {*code_by_folder}
            waiting, code_files = [*code_files, *waiting], set()
            continue
        definitions |= {*imports.definitions}
        for pattern in imports.files:
            waiting += matching_files(pattern, {*start_folders, file.parent}, known)
        for level, name in imports.modules:
            bases = roots | {*file.parents} if level == 0 else {_above(file, level)}
            waiting += [other for base in bases for other in _module_files(base, name, known, code_by_folder)]
    return code_files


def _code_by_folder(files: Collection[PurePosixPath]) -> dict[PurePosixPath, list[PurePosixPath]]:
    """Has every folder, also those without code."""
    code: dict[PurePosixPath, list[PurePosixPath]] = {parent: [] for file in files for parent in file.parents}
    for file in files:
        if file.suffix in CODE_SUFFIXES:
            code[file.parent].append(file)
    return code


def imports_of(path: Path) -> Imports:
    try:
        return read_imports(path.read_bytes())
    except OSError:
        return UNKNOWN_IMPORTS


def _is_top_level_test(name: str) -> bool:
    """Tests at the top that this checkpoint does not run are tests all the same."""
    return "/" not in name and (is_test_file(name) or name == "conftest.py")


def _above(file: PurePosixPath, level: int) -> PurePosixPath:
    return file.parents[min(level, len(file.parents)) - 1]


def _files_run_by_name(
    definitions: Collection[Definition], start_folders: Collection[PurePosixPath], known: Collection[PurePosixPath]
) -> set[PurePosixPath]:
    """The files that a Python may run by a computed name: those next to the loaded ones, and those that are named."""
    if not any(definition.runs_computed for definition in definitions):
        return set()
    nearby = {file for file in known if file.suffix == ".py" and file.parent in start_folders}
    patterns = files_for_runners(definitions)
    return nearby.union(*(matching_files(pattern, start_folders, known) for pattern in patterns))


def _module_files(
    base: PurePosixPath,
    name: str,
    known: Collection[PurePosixPath],
    code_by_folder: Mapping[PurePosixPath, Iterable[PurePosixPath]],
) -> Iterable[PurePosixPath]:
    """The files that an import of `name` below `base` may load: modules, and every `__init__.py` on the way."""
    path = base
    if path != TOP and path / "__init__.py" in known:
        yield path / "__init__.py"
    for part in name.split(".") if name else ():
        if path not in code_by_folder:
            return
        yield from (file for file in code_by_folder[path] if part in ("*", file.name.partition(".")[0]))
        path /= part
        if path / "__init__.py" in known:
            yield path / "__init__.py"


def _with_copies(files: Mapping[str, Path], code: Iterable[PurePosixPath]) -> frozenset[str]:
    """Adds files with the content of test code, such as a link to it that was followed when the tests were copied."""
    digests, names = {name: _digest(path) for name, path in files.items()}, {*map(str, code)}
    contents = {digests[name] for name in names} - {None}
    return frozenset(names | {name for name, digest in digests.items() if digest in contents})


def _digest(path: Path) -> str | None:
    """None for a file without content, as many an `__init__.py` is."""
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        return hashlib.file_digest(stream, "sha256").hexdigest() if size > 1 else None
