"""Where the things lay that a result was made of, for whoever evaluates it again. No verdict rests on it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import write_atomic
from slop_code.errors import ResultError
from slop_code.evaluation.report import Stored, load_stored
from slop_code.execution.environment import shipped_environments

if TYPE_CHECKING:
    from collections.abc import Iterable

PLACE = ".slop-code/origin.json"


class Origin(Stored):
    """Paths are absolute; None: as usual."""

    problem: str | None = None
    problems_dir: str | None = None
    environment: str | None = None
    """A name or a path."""
    snapshot: str | None = None

    def keep(self, folder: Path) -> None:
        """Beside results that are whole without it."""
        with contextlib.suppress(OSError):
            (folder / PLACE).parent.mkdir(exist_ok=True)
            write_atomic(folder / PLACE, self.model_dump_json(indent=2) + "\n")


def origin_in(folders: Iterable[Path]) -> Origin:
    """Of the first of these folders that has one; what is no longer there is as if it had not been said."""
    for folder in folders:
        with contextlib.suppress(ResultError):
            found = load_stored(Origin, folder / PLACE, "")
            return Origin(**{key: value for key, value in dict(found).items() if value and _there(key, value)})
    return Origin()


def _there(key: str, value: str) -> bool:
    return os.path.exists(value) or (key == "environment" and not os.path.isabs(value))


def place_of_environment(given: str | None) -> str | None:
    """A path that is found from everywhere, or the name of one that ships."""
    return given if given is None or given in shipped_environments() else str(Path(given).absolute())
