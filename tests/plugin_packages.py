"""Packages with entry points, installed in a folder as pip would do it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def install_package(site: Path, group: str, entry: str, source: str) -> Path:
    """A distribution whose module `other_package` has `source`.

    `entry` is for example `lines = other_package:export`.
    """
    info = site / "other_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry}\n", encoding="utf-8")
    (site / "other_package.py").write_text(textwrap.dedent(source), encoding="utf-8")
    return site
