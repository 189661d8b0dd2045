"""pytest plugin that opens the submission's folders after the tests; the judge's plugin loads it by its name there.

They belong to the submission as well, which may forbid everybody to enter them. pytest goes back to the workspace and
cleans up the folder of temporary files before it writes its reports: without access it would end without any. What
still runs of the submission ends first, or it could close them again.
"""

from __future__ import annotations

import contextlib
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

END_S = 60.0
"""Seconds for the end of all processes, on a busy machine too."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        settings, usage = sys.modules["slop_code_judge"]._settings, sys.modules["slop_code_usage"]
        usage.request(settings.get("gate"), usage.END, END_S)
        for folder in (session.config.invocation_params.dir, Path(settings["tmpdir"])):
            with contextlib.suppress(OSError):
                folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)
