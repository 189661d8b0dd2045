"""Places where other packages plug in: an entry point of a group of ours."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def plugin(group: str, name: str, built_in: Mapping[str, str]) -> Any | None:
    """Our own, as `module:attribute`, else what another package brings; loaded late, so that others cost nothing."""
    if name in built_in:
        module, _, attribute = built_in[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    from importlib.metadata import entry_points

    return next((entry.load() for entry in entry_points(group=group, name=name)), None)
