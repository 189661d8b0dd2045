"""Plug-in points: classes of ours by their names, and entry points that other packages bring."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def load_plugin(group: str, name: str, built_in: Mapping[str, str]) -> Any | None:
    """Our own, written as `module:attribute`, else the entry point of another package; None: there is neither."""
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    from importlib.metadata import entry_points

    return next((entry.load() for entry in entry_points(group=group, name=name)), None)


def plugin_names(group: str) -> list[str]:
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=group)})
