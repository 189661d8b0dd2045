from __future__ import annotations

import pytest

from slop_code.attacks.attack_host import write_problem


@pytest.fixture(scope="session")
def problem(tmp_path_factory):
    return write_problem(tmp_path_factory.mktemp("attacked") / "lines")
