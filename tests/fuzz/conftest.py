"""Hypothesis over everything that is parsed: `quick` repeats itself in every `make test`, `long` is for `make fuzz`."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
MEMORY = 8 << 30
"""Address space of the process that fuzzes: more is an error, and does not harm the machine."""

set_hypothesis_home_dir(HERE.parents[1] / "out" / "hypothesis")
COMMON = {"deadline": None, "database": None, "print_blob": True, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", derandomize=True, max_examples=40, **COMMON)  # type: ignore[arg-type]
settings.register_profile("long", max_examples=int(os.environ.get("FUZZ", "5000")), **COMMON)  # type: ignore[arg-type]


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile("quick")


@pytest.fixture(autouse=True, scope="module")
def bounded_memory() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
