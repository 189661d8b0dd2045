"""pytest plugin that keeps pytest out of folders of data; the judge's plugin loads it as `slop_code_data_folders`.

A folder without tests of a checkpoint is data, such as a project that the submission works on. A conftest in it belongs
to that project, and is not for the judge to run.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    settings = sys.modules["slop_code_judge"]._settings
    if not os.path.exists(collection_path / "conftest.py"):
        return None
    relative = os.path.relpath(os.path.realpath(collection_path), os.path.realpath(settings["tests"]))
    return None if relative in settings["test_folders"] else True
