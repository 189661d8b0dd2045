"""The helper that was built for this machine."""

from __future__ import annotations

import pytest

from slop_code.execution.helper import helper_path


@pytest.fixture(scope="session")
def helper() -> str:
    return str(helper_path())
