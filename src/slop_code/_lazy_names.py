"""Names of a package that are imported when they are first used, so that a command loads only what it needs."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, names: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """The `__getattr__` of a package; `names` has those of each module. Modules of the package are names as well."""
    prefix = f"{package}."
    modules = {name: module for module, own in names.items() for name in own}
    inner = {module.removeprefix(prefix).partition(".")[0] for module in names if module.startswith(prefix)}

    def get(name: str) -> object:
        if name in modules:
            value = getattr(importlib.import_module(modules[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in inner:
            return importlib.import_module(prefix + name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get
