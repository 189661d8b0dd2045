"""Search of an exported task for tests and solutions: copies of whole files, and lines of their code.

Test code and solutions must be nowhere. Other files of the tests folder, such as expected outputs, must be in no file
but a specification, which may quote them, unless the problem declares them as static assets.
"""

from __future__ import annotations

import hashlib
import io
import os
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.evaluation.selection import files_in
from slop_code.evaluation.test_code.find_test_code import find_test_code
from slop_code.execution.assets import regular_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from slop_code.evaluation.config import ProblemConfig

MIN_FILE_BYTES = 16
"""Smaller files, such as an empty `__init__.py` or an expected `ok`, say nothing by being found."""

MIN_LINE = 40
"""Characters of a line that two people would not write by chance."""

COMMENTS = ("#", "//", "/*", "*", "<!--", "--")
IMPORTS = ("import ", "from ", "use ", "using ", "#include", "require")


@dataclass(frozen=True, slots=True)
class Secret:
    path: str
    """Relative to the problem's folder."""

    content: bytes
    is_code: bool

    def lines(self) -> set[bytes]:
        """Lines of code that are distinctive, without strings over several lines, comments and imports."""
        if not self.is_code:
            return set()
        numbered = enumerate(self.content.splitlines(), start=1)
        quoted = _quoted_lines(self.content) if self.path.endswith(".py") else frozenset()
        stripped = (line.strip() for number, line in numbered if number not in quoted)
        return {line for line in stripped if len(line) >= MIN_LINE and not line.startswith(_UNDISTINCTIVE)}


_UNDISTINCTIVE = tuple(word.encode() for word in COMMENTS + IMPORTS)


def secrets_of(problem: ProblemConfig) -> Iterator[Secret]:
    tests, solutions = problem.path / "tests", problem.path / "solutions"
    code = {(tests / name).resolve() for name in find_test_code(tests, (), (), ()).files}
    assets = {
        file: file.read_bytes()
        for root in problem.assets.values()
        for _, file in regular_files(root)
        if file not in code and not file.is_relative_to(solutions.resolve())
    }
    shared = {hashlib.sha256(content).digest() for content in assets.values()}
    for name in files_in(tests):
        file = (tests / name).resolve()
        if file in code or file not in assets:
            yield Secret(f"tests/{name}", file.read_bytes(), file in code)
    for _, file in regular_files(solutions) if solutions.is_dir() else ():
        content = file.read_bytes()
        if hashlib.sha256(content).digest() not in shared:
            yield Secret(os.path.relpath(file, problem.path.resolve()), content, is_code=True)


def exposed_secret(problem: ProblemConfig, tree: Mapping[Path, bytes], specifications: set[Path]) -> str | None:
    """The first test or solution that one of the exported files has, in words, or None if no file has any."""
    secrets = [*secrets_of(problem)]
    for secret in secrets:
        whole = secret.content.strip()
        for path, content in tree.items() if len(whole) >= MIN_FILE_BYTES else ():
            if whole in content and (secret.is_code or path not in specifications):
                return f"{path} has the content of {secret.path}"
    lines_of = {path: {line.strip() for line in content.splitlines()} for path, content in tree.items()}
    for secret in secrets:
        distinctive = secret.lines()
        for path, lines in lines_of.items():
            if common := lines & distinctive:
                return f"{path} has a line of {secret.path}: {min(common).decode('utf-8', 'replace')}"
    return None


def _quoted_lines(content: bytes) -> frozenset[int]:
    """Numbers of the lines that are part of a string over several lines; the rest of a file that is no Python."""
    numbers: set[int] = set()
    try:
        for token in tokenize.tokenize(io.BytesIO(content).readline):
            if token.end[0] > token.start[0] and "STRING" in tokenize.tok_name[token.type]:
                numbers |= {*range(token.start[0], token.end[0] + 1)}
    except (tokenize.TokenError, SyntaxError):
        pass
    return frozenset(numbers)
