"""Settings of every part: its folder, its amount of work, and its sandboxes."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.execution.environment import EnvironmentSpec
from slop_code.execution.sandbox import sandbox_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Choice = TypeVar("Choice")
ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples/problems"
SCALES = ("whole", "quick", "least")
SALTS = itertools.count(time.time_ns())
"""Numbers that make submissions new, so that no result comes from the result cache."""

KINDS: dict[str, dict[str, Any]] = {
    "none": {"type": "local", "isolation": "none"},
    "bubblewrap": {"type": "local"},
    "docker": {"type": "docker", "docker": {}},
    "docker with runsc": {"type": "docker", "docker": {"runtime": "runsc"}},
}


@dataclass(frozen=True, slots=True)
class Bench:
    work: Path
    scale: str = "whole"
    sandboxes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Keys of the environment file, for each sandbox that works on this machine."""

    missing: tuple[str, ...] = ()
    """Sandboxes that do not work, each with the reason."""

    print_step: Callable[[str], None] = lambda _: None
    soak_s: int | None = None
    """Duration of the search for growth in part (i), or None for that of the scale."""

    tiny_checkpoints: int | None = None
    """Checkpoints of the larger run of part (c), or None for those of the scale."""

    def size(self, whole: Choice, quick: Choice, least: Choice) -> Choice:
        return (whole, quick, least)[SCALES.index(self.scale)]

    def folder(self, name: str) -> Path:
        """A new folder at each call, even for the same name."""
        path = self.work / f"{name}-{next(SALTS)}"
        path.mkdir(parents=True)
        return path

    def environment(self, sandbox: str, **more: object) -> EnvironmentSpec:
        return EnvironmentSpec.model_validate({"name": "bench", **self.sandboxes[sandbox], **more})


def sandboxes() -> tuple[dict[str, Mapping[str, object]], tuple[str, ...]]:
    """Sandboxes that work on this machine, and the reasons why others do not; `tests/with_docker.py` has an image."""
    working: dict[str, Mapping[str, object]] = {}
    missing = []
    image = os.environ.get("SLOP_CODE_TEST_IMAGE")
    for name, keys in KINDS.items():
        if "docker" in keys and image is None:
            missing.append(f"{name}: {os.environ.get('SLOP_CODE_TEST_NO_DOCKER', 'not asked for; run `make bench`')}")
            continue
        whole = {**keys, "docker": {**keys["docker"], "image": image}} if "docker" in keys else keys
        try:
            sandbox_for(EnvironmentSpec.model_validate({"name": "bench", **whole}), Cache.default())
            working[name] = whole
        except InfrastructureError as error:
            missing.append(f"{name}: {error}")
    return working, tuple(missing)
