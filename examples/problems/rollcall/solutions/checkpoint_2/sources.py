"""Python sources of a folder."""

import ast
import io
import os
import tokenize
from collections.abc import Iterator
from typing import NamedTuple


class RollcallError(Exception):
    status = 1


class WrongUse(RollcallError):  # noqa: N818
    status = 2


class Source(NamedTuple):
    file: str
    """Relative to the folder."""
    lines: list[str]
    tree: ast.Module


type Sources = list[Source]


def read_sources(folder: str) -> Sources:
    if not os.path.isdir(folder):
        raise RollcallError(f"{folder}: no such folder")
    return [read_source(folder, file) for file in sorted(python_files(folder))]


def python_files(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.relpath(os.path.join(root, name), folder) for name in files if name.endswith(".py"))


def read_source(folder: str, file: str) -> Source:
    with open(os.path.join(folder, file), "rb") as stream:
        content = stream.read()
    try:
        return Source(file, text_of(content).split("\n"), ast.parse(content))
    except (SyntaxError, ValueError):
        raise RollcallError(f"{file}: not Python") from None


def text_of(content: bytes) -> str:
    """With the encoding that a comment at the top may name, as Python reads it."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()
