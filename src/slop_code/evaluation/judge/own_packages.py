"""Refusal of a judge that would import packages of the host.

The test tools are an environment of their own. An environment that lost its `pyvenv.cfg` still starts, with the
site-packages of the interpreter that it was made from: other versions, other plugins, another verdict.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGE_FOLDERS = ("site-packages", "dist-packages")


def foreign_packages(path: Iterable[str], prefix: str) -> list[str]:
    """The folders of installed packages on `path` that are not below `prefix`."""
    inside = os.path.join(os.path.realpath(prefix), "")
    folders = [folder for folder in path if os.path.basename(os.path.normpath(folder)) in PACKAGE_FOLDERS]
    return [folder for folder in folders if not os.path.realpath(folder).startswith(inside)]


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Runs before anything of the tests is loaded."""
    if foreign := [sys.prefix] if sys.prefix == sys.base_prefix else foreign_packages(sys.path, sys.prefix):
        raise pytest.UsageError(f"the judge would import packages of the host, from {foreign[0]}; nothing was judged")
