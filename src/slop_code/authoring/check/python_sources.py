"""Python files of a problem's tests: lines of tests, and comments that allow findings."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
import stat
import tokenize
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import read_bounded
from slop_code.authoring.check.findings import Finding, Location
from slop_code.evaluation.selection import checkpoint_of, files_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig

MAX_BYTES = 1 << 20
ALLOW = re.compile(r"#\s*slop-code:\s*allow\s+([a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)")


@dataclass(frozen=True, slots=True)
class PythonSource:
    file: str
    """Relative to the problem's folder."""

    text: str
    tree: ast.Module

    @property
    def allowed(self) -> Mapping[int, frozenset[str]]:
        """Rules by the line of the comment that allows them: `# slop-code: allow RULE, RULE`."""
        return _allowed(self.text)


@functools.lru_cache(maxsize=256)
def _allowed(text: str) -> Mapping[int, frozenset[str]]:
    rules = {}
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := ALLOW.search(token.string)):
                rules[token.start[0]] = frozenset(re.split(r"\s*,\s*", match.group(1)))
    return rules


def read_source(folder: Path, file: str) -> PythonSource | SyntaxError:
    """Returns the SyntaxError of a file that Python cannot read."""
    try:
        data = io.BytesIO(read_bounded((folder / file).resolve(), MAX_BYTES))
        encoding, _ = tokenize.detect_encoding(data.readline)
        data.seek(0)
        text = io.TextIOWrapper(data, encoding).read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PythonSource(file, text, ast.parse(text, file))
    except SyntaxError as error:
        return error
    except (RecursionError, MemoryError):
        return SyntaxError("nested too deeply")
    except (OSError, ValueError, RuntimeError) as error:
        return SyntaxError(str(error))


def location_of_test(folder: Path, test: str) -> Location:
    """The location of a test (`file::Class::name[parameters]`), as far as its source tells."""
    file = f"tests/{test.partition('::')[0]}"
    source = cached_source(folder, file)
    if not isinstance(source, PythonSource):
        return Location(file)
    lines = [node.lineno for _, node in definitions_of_test(source.tree, test) if node]
    return Location(file, lines[-1] if lines else None)


def location_of_checkpoint(problem: ProblemConfig, checkpoint: str) -> Location:
    """The first line of the checkpoint's tests, where a comment can allow a finding."""
    files = files_in(problem.path / "tests")
    own = [file for file in files if checkpoint_of(file.name, problem.checkpoints) == checkpoint]
    return Location(f"tests/{own[0]}", 1) if own else Location("tests")


def cached_source(folder: Path, file: str) -> PythonSource | SyntaxError | None:
    """None for a missing file; a file is parsed again only after a change."""
    try:
        state = (folder / file).stat()
    except (OSError, ValueError):
        return None
    return _read(folder, file, (state.st_mtime_ns, state.st_size)) if stat.S_ISREG(state.st_mode) else None


@functools.lru_cache(maxsize=64)
def _read(folder: Path, file: str, _state: tuple[int, int]) -> PythonSource | SyntaxError:
    return read_source(folder, file)


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    yield from (node for node in body if isinstance(node, Definition))


def definitions_of_test(tree: ast.Module, test: str) -> Iterator[tuple[str, Definition | None]]:
    """The classes and the function that a test's id names, up to the first that is not defined."""
    body: list[ast.stmt] = tree.body
    for name in test.partition("::")[2].partition("[")[0].split("::"):
        node = next((item for item in definitions(body) if item.name == name), None)
        yield name, node
        if node is None:
            return
        body = node.body


def is_allowed(finding: Finding, source: PythonSource) -> bool:
    """A comment counts on the line itself, and on comment and decorator lines directly above."""
    line = finding.location.line
    if line is None:
        return False
    lines, first = source.text.splitlines(), line
    while first > 1 and lines[first - 2].lstrip().startswith(("#", "@")):
        first -= 1
    return any(finding.rule.id in source.allowed.get(number, ()) for number in range(first, line + 1))
