"""What is built once and kept by content, safe for several evaluators at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import wait_for
from slop_code.execution.process import succeeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE = "SCBENCH_CACHE_DIR"
Value = TypeVar("Value")
DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""What it takes to read an entry that is incomplete, or of another version."""

IN_USE = ".in-use.lock"
STEP_S = 0.02


@dataclass(frozen=True, slots=True)
class Cache:
    root: Path

    @classmethod
    def default(cls) -> Cache:
        """$SCBENCH_CACHE_DIR, else slop-code in the user's cache folder."""
        given = os.environ.get(VARIABLE)
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        root = Path(given).expanduser() if given else Path(base).expanduser() / "slop-code"
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            (root / "sessions").mkdir(exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"{root}: cannot make the cache folder: {error.strerror}; set {VARIABLE} to a folder you can write to"
            ) from error
        return cls(root.resolve())

    @property
    def uv(self) -> Path:
        return self.root / "uv"

    def get_or_build(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        return self.load_or_build(kind, key, build, lambda entry: entry)

    def load_or_build(self, kind: str, key: str, build: Callable[[Path], None], load: Callable[[Path], Value]) -> Value:
        """What `load` makes of the folder of this key, which is built now if it is not there or damaged.

        A folder that exists is whole: a build that fails leaves nothing; two that want the same wait for one.
        """
        target = self.root / kind / key
        if target.is_dir():
            with contextlib.suppress(*DAMAGED):
                return load(target)
        with file_lock(target.parent / f".{key}.lock"):
            if target.is_dir():
                try:
                    return load(target)
                except DAMAGED:
                    remove_tree(target)
            if not target.is_dir():
                for left in target.parent.glob(f".{key}.*/"):
                    remove_tree(left)  # of a builder that was killed: we hold the lock
                scratch = Path(tempfile.mkdtemp(prefix=f".{key}.", dir=target.parent))
                try:
                    build(scratch)
                    scratch.rename(target)
                except BaseException:
                    remove_tree(scratch)
                    raise
        return load(target)

    @contextlib.contextmanager
    def shared_lock(self) -> Iterator[None]:
        """Nothing that is kept here goes while this lasts; many at a time may want that."""
        with file_lock(self.root / IN_USE, shared=True):
            yield

    @contextlib.contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """For whoever takes away what is kept here: never waits, and nobody begins to use it meanwhile."""
        with open_lock(self.root / IN_USE) as lock:
            if not try_lock(lock, fcntl.LOCK_EX):
                raise InfrastructureError(
                    f"{self.root}: evaluations are running with this cache; try again when they have ended"
                )
            yield

    def remove_abandoned_sessions(self) -> list[Path]:
        """Remove the sessions of evaluators that were killed."""
        return [left for left in (self.root / "sessions").glob("*") if _reap(left)]

    @contextlib.contextmanager
    def session_folder(self) -> Iterator[Path]:
        """A folder for one evaluation; those of evaluators that were killed go first."""
        parent = self.root / "sessions"
        parent.mkdir(parents=True, exist_ok=True)
        self.remove_abandoned_sessions()
        folder, lock = _new_session(parent)
        with lock:  # until it is gone: nobody else takes it for one of an evaluator that was killed
            try:
                yield folder
            finally:
                _remove_session(folder)


def _new_session(parent: Path) -> tuple[Path, IO[str]]:
    """Until we hold the lock others take the folder for one of an evaluator that was killed: then it is another one."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix="s", dir=parent))
        with contextlib.ExitStack() as undo:
            undo.callback(remove_tree, folder)
            with contextlib.suppress(FileNotFoundError):
                lock = undo.enter_context((folder / "new").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                # Whoever holds a lock of this name has a whole session.
                (folder / "new").rename(folder / "lock")
                undo.pop_all()
                return folder, lock


def _remove_session(folder: Path) -> None:
    """The lock goes last: whoever is killed meanwhile leaves a folder that is still known for what it is."""
    for inner in folder.iterdir():
        if inner.name in ("lock", "new"):
            continue
        if inner.is_dir() and not inner.is_symlink():
            remove_tree(inner)
        else:
            inner.unlink(missing_ok=True)
    remove_tree(folder)


def entry_for_scratch(scratch: Path) -> Path:
    """The folder that a builder's scratch folder will become."""
    return scratch.with_name(scratch.name[1:].partition(".")[0])


@contextlib.contextmanager
def file_lock(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Waits for its turn, or until there comes a stop."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with open_lock(path) as lock:
        while not try_lock(lock, kind):
            wait_for(None, STEP_S)
        yield


def open_lock(path: Path) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w")


def try_lock(lock: IO[str], kind: int) -> bool:
    """Without waiting; an OSError where there is no locking at all."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reap(folder: Path) -> bool:
    """Remove a session's folder unless its evaluator holds the lock; one that has yet to take it makes another."""
    for name in ("lock", "new"):
        try:
            with (folder / name).open("r") as lock:
                if not try_lock(lock, fcntl.LOCK_EX):
                    return False
                _remove_session(folder)
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return False
    try:
        folder.rmdir()  # its maker came no further than this; not when it has by now
    except OSError:
        return False
    return True


def remove_tree(folder: Path) -> None:
    """Remove what a hostile process may have filled: folders that may not be read or written first become so."""

    def open_up(_function: object, path: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                for inner, names, _ in os.walk(path):
                    for name in names:
                        if not os.path.islink(os.path.join(inner, name)):
                            os.chmod(os.path.join(inner, name), 0o700)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    try:
        if sys.version_info >= (3, 12):
            shutil.rmtree(folder, onexc=open_up)
        else:
            shutil.rmtree(folder, onerror=open_up)
    except RecursionError:  # deeper than Python goes; rm is not
        succeeds(["rm", "-rf", "--", str(folder)])
