"""Plug-in points: built-in classes by name, and entry points of other packages."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def load_plugin(group: str, name: str, built_in: Mapping[str, str]) -> Any | None:
    """The built-in class, given as `module:attribute`, else the entry point of another package; None without either."""
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    from importlib.metadata import entry_points

    return next((entry.load() for entry in entry_points(group=group, name=name)), None)


def plugin_names(group: str) -> list[str]:
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=group)})
