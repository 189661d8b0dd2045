"""Arguments of public functions: checks, each of which raises a UsageError that says what is expected."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from slop_code.errors import UsageError

Options = ParamSpec("Options")
Value = TypeVar("Value")
Owner = TypeVar("Owner")

MAX_SHOWN = 200
MAX_NAME = 255
MAX_PATH = 4096
"""Bytes that Linux takes for a file name and for a path."""


def check_type(name: str, value: object, types: tuple[type, ...], expected: str) -> None:
    """A bool is not taken for an int."""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise wrong_argument(name, value, expected)


def check_path(name: str, value: object, expected: str) -> Path:
    check_type(name, value, (str, Path), expected)
    path = value if isinstance(value, Path) else Path(value)  # type: ignore[arg-type]
    encoded = _check_text(name, str(path), expected, "surrogateescape")
    if len(encoded) >= MAX_PATH or max(map(len, encoded.split(b"/"))) > MAX_NAME:
        raise wrong_argument(name, str(path), f"{expected}, with names of at most {MAX_NAME} bytes")
    return path


def check_optional_folder(name: str, value: object) -> Path | None:
    return None if value is None else check_path(name, value, "the path of a folder, or None")


def check_paths(name: str, value: object, expected: str) -> list[Path]:
    """One path, or several."""
    given = [value] if isinstance(value, str | Path) else check_items(name, value, expected)
    return [check_path(name, item, expected) for item in given]


def check_texts(name: str, value: object, expected: str) -> list[str]:
    texts = []
    for item in check_items(name, value, expected):
        if not isinstance(item, str):
            raise wrong_argument(name, value, expected)
        texts.append(item)
    return texts


def check_command_words(name: str, value: object, expected: str) -> list[str]:
    """Texts that a command line and a JSON file can hold."""
    words = check_texts(name, value, expected)
    for word in words:
        _check_text(name, word, expected, "strict")
    return words


def same_parameters(
    function: Callable[Options, object],
) -> Callable[[Callable[..., Value]], Callable[Options, Value]]:
    """For type checkers and `help`, the decorated function has the parameters of `function`."""

    def decorate(decorated: Callable[..., Value]) -> Callable[Options, Value]:
        _set_parameters(decorated, [*inspect.signature(function).parameters.values()])
        return decorated

    return decorate


def same_method_parameters(
    function: Callable[Options, object],
) -> Callable[[Callable[Concatenate[Owner, ...], Value]], Callable[Concatenate[Owner, Options], Value]]:
    """As `same_parameters`, for a method, which has `self` before the parameters of `function`."""

    def decorate(method: Callable[Concatenate[Owner, ...], Value]) -> Callable[Concatenate[Owner, Options], Value]:
        own = inspect.signature(method).parameters["self"]
        _set_parameters(method, [own, *inspect.signature(function).parameters.values()])
        return method

    return decorate


def _set_parameters(function: Any, parameters: list[inspect.Parameter]) -> None:
    function.__signature__ = inspect.signature(function).replace(parameters=parameters)


def wrong_argument(name: str, value: object, expected: str) -> UsageError:
    return UsageError(f"{name}: expected {expected}, found {_shown(value)}")


def check_items(name: str, value: object, expected: str) -> list[object]:
    """A text is not taken for a list of letters, nor a mapping for a list of its keys."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | bytearray | Mapping):
        raise wrong_argument(name, value, expected)
    return list(value)


def _check_text(name: str, text: str, expected: str, errors: str) -> bytes:
    try:
        encoded = text.encode("utf-8", errors)
    except UnicodeEncodeError as error:
        raise wrong_argument(name, text, f"{expected}, in characters that can be encoded") from error
    if b"\0" in encoded:
        raise wrong_argument(name, text, f"{expected}, without a NUL character")
    return encoded


def _shown(value: object) -> str:
    kind = type(value).__name__
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  (an int of thousands of digits, or a class of the caller)
        return f"a value that cannot be shown ({kind})"
    return f"{text[:MAX_SHOWN]}{'…' if len(text) > MAX_SHOWN else ''} ({kind})"
