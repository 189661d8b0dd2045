"""Origin of a result: the paths of its problem, environment and snapshot, for the next evaluation and `rerun`."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import write_atomic
from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.result_files.stored_record import Stored, load_stored
from slop_code.execution.environment import shipped_environments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.evaluation.config import ProblemConfig

ORIGIN_FILE = ".slop-code/origin.json"


class Origin(Stored):
    """Paths are absolute. What is not known is None."""

    problem: str | None = None
    problems_dir: str | None = None
    environment: str | None = None
    """A name or a path."""
    snapshot: str | None = None

    def keep(self, folder: Path) -> None:
        """Writes the file next to the result. Errors are ignored, because the result is complete without it.

        A link in the place of its folder is not followed: it could lead anywhere.
        """
        if (folder / ORIGIN_FILE).parent.is_symlink():
            return
        with contextlib.suppress(ResultError):
            if load_stored(Origin, folder / ORIGIN_FILE, "") == self:
                return
        with contextlib.suppress(OSError):
            (folder / ORIGIN_FILE).parent.mkdir(exist_ok=True)
            write_atomic(folder / ORIGIN_FILE, self.model_dump_json(indent=2) + "\n")


@contextlib.contextmanager
def made_result_folder(folder: Path) -> Iterator[None]:
    """Makes the folder of a result; what is made and still empty in the end is removed."""
    made = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        make_result_folder(folder)
        yield
    finally:
        with contextlib.suppress(OSError):
            for path in made:
                path.rmdir()


def make_result_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            code = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
            raise OSError(code, os.strerror(code))
    except OSError as error:
        raise UsageError(f"{folder}: results cannot be written there: {error.strerror}; give another folder") from error


def keep_origin(folder: Path, problem: ProblemConfig, environment: str | None, snapshot: Path | None) -> None:
    """`folder` is that of evaluation.json; `environment` is the name or the path that the user gave."""
    Origin(
        problem=str(problem.path.absolute()),
        environment=environment_reference(environment),
        snapshot=None if snapshot is None else str(snapshot.absolute()),
    ).keep(folder)


def origin_in(folders: Iterable[Path]) -> Origin:
    """The origin in the first folder that has one, without paths that no longer exist."""
    for folder in folders:
        with contextlib.suppress(ResultError):
            origin = load_stored(Origin, folder / ORIGIN_FILE, "")
            return Origin(**{key: value for key, value in dict(origin).items() if value and _exists(key, value)})
    return Origin()


def remembered_problem(folder: Path, run: Path, mirror: Path | None = None) -> Path | None:
    """The problem of the last evaluation of a problem's folder in a run, even if it is gone; None if never evaluated.

    That of the same mirrored tree comes before that of the run itself. A problem that is gone is not looked up
    elsewhere: another one with its name would replace the results.
    """
    if mirror is not None and (known := remembered_problem(mirror / folder.name, mirror)) is not None:
        return known
    own, around = stored_origin(folder), stored_origin(run)
    if own.problem and os.path.isabs(own.problem) and own.snapshot is None:  # with a snapshot: that of a checkpoint
        return Path(own.problem)
    if around.problems_dir and os.path.isabs(around.problems_dir):
        return Path(around.problems_dir) / folder.name
    return None


def stored_origin(folder: Path) -> Origin:
    with contextlib.suppress(ResultError):
        return load_stored(Origin, folder / ORIGIN_FILE, "")
    return Origin()


def _exists(key: str, value: str) -> bool:
    return os.path.exists(value) if os.path.isabs(value) else key == "environment"


def environment_reference(given: str | None) -> str | None:
    """An absolute path, or the name of a shipped environment."""
    return given if given is None or given in shipped_environments() else str(Path(given).absolute())
