"""Order of the files of a diff: those that the failing tests name come first."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from slop_code.evaluation.command import entrypoint_text
from slop_code.quality.quality_record import CodePart
from slop_code.quality.sources import SUFFIXES, UNREAD_LANGUAGES, UNSAFE_LANGUAGES, code_part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.evaluation.report import CorrectnessResults
    from slop_code.quality.snapshot_diff import FileChange

MAX_TEXT_LENGTH = 20_000
"""Characters of the end of each text that are searched; a traceback ends with the error."""

MAX_SEARCHED_LENGTH = 2_000_000
"""Characters of all texts of a checkpoint that are searched."""

_WORD = re.compile(r"[\w./-]{1,300}")
_MODULE = re.compile(r"(?:module named|import|from) '?([^\W\d][\w.]{0,200})")
_SOURCE_SUFFIXES = SUFFIXES | UNREAD_LANGUAGES.keys() | UNSAFE_LANGUAGES.keys()


def relevant_first(changes: Sequence[FileChange], results: CorrectnessResults) -> list[FileChange]:
    """Files that texts of failing tests name, the entry file, other implementation, and the rest; each by path.

    Nearly every call names the entry file, which therefore says nothing.
    """
    names, entry = names_in(results), entry_file(results)

    def rank(change: FileChange) -> tuple[int, str]:
        if change.path == entry:
            return 1, change.path
        path = PurePosixPath(change.path)
        if names.isdisjoint(_names_of(path)):
            is_source = path.suffix.lower() in _SOURCE_SUFFIXES
            return 2 if is_source and code_part_of(path) == CodePart.IMPLEMENTATION else 3, change.path
        return 0, change.path

    return sorted(changes, key=rank)


def names_in(results: CorrectnessResults) -> set[str]:
    """File names, paths below any folder, and dotted module names in the texts of tests that did not pass."""
    names: set[str] = set()
    left = MAX_SEARCHED_LENGTH
    for text in _texts(results):
        part = text[-min(MAX_TEXT_LENGTH, left) :] if left else ""
        left -= len(part)
        for word in set(_WORD.findall(part)):
            bare = word.strip(".-")
            if "." in bare:
                names.update(_tails(bare) if "/" in bare or _is_file(bare) else _heads(bare))
        names.update(name for module in _MODULE.findall(part) for name in (module, *_heads(module)))
    return names


def entry_file(results: CorrectnessResults) -> str | None:
    """The last word of the entrypoint in the judge's command."""
    try:
        words = shlex.split(entrypoint_text(results.provenance.command))
    except ValueError:  # a quote without an end; that of a stored result is not checked
        return None
    return words[-1] if words else None


def _texts(results: CorrectnessResults) -> Iterator[str]:
    for test in results.tests:
        if test.status != "passed":
            yield from filter(None, (test.failure_message, test.output, *test.calls))


def _names_of(path: PurePosixPath) -> list[str]:
    """Names by which a text may mean the file: its path, its file name, and the module."""
    parts = path.with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    parts = parts[:-1] if parts[-1:] == ("__init__",) else parts
    module = [".".join(parts)] if parts and path.suffix == ".py" else []
    own = [path.name] if path.name != "__init__.py" else []
    return [str(path), *own, *module]


def _is_file(word: str) -> bool:
    return PurePosixPath(word).suffix.lower() in _SOURCE_SUFFIXES


def _tails(path: str) -> Iterator[str]:
    """Of `/workspace/larder/units.py` they are workspace/larder/units.py, larder/units.py and units.py."""
    parts = [part for part in path.split("/") if part][-20:]
    return ("/".join(parts[start:]) for start in range(len(parts)))


def _heads(module: str) -> Iterator[str]:
    """Of `larder.units.UnitError` they are larder and larder.units."""
    parts = module.split(".")[:20]
    return itertools.accumulate(parts[:-1], lambda head, part: f"{head}.{part}")
