"""Cache of folders that are built once per key, and session folders; safe for several evaluators at a time."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import pwd
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from slop_code._io import open_regular
from slop_code.errors import InfrastructureError
from slop_code.execution.cancellation import wait_for
from slop_code.execution.process import succeeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "SCBENCH_CACHE_DIR"
Value = TypeVar("Value")
DAMAGE_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""Errors of reading an entry that is incomplete or of another version."""

LOCK = ".in-use.lock"
RUNNING = ".running.lock"
QUIET_GATE = ".quiet.lock"
DURATIONS = "durations"
"""Folder of the durations of tests."""

PLACES = "places"
"""Folder of the places on processors."""

POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Cache:
    root: Path

    @classmethod
    def default(cls) -> Cache:
        """$SCBENCH_CACHE_DIR, else slop-code in the user's cache folder."""
        given = os.environ.get(CACHE_VARIABLE)
        return cls.at(_expanded(given) if given else user_caches() / "slop-code")

    @classmethod
    def at(cls, root: Path) -> Cache:
        """The folder is made where it does not exist."""
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            check_owner(root, "the cache folder", f"set {CACHE_VARIABLE} to a folder of your own")
            (root / "sessions").mkdir(exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"{root}: cannot make the cache folder: {error.strerror}; "
                f"set {CACHE_VARIABLE} to a folder you can write to"
            ) from error
        return cls(root.resolve())

    @property
    def uv(self) -> Path:
        return self.root / "uv"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    def load_or_build(self, kind: str, key: str, build: Callable[[Path], None], load: Callable[[Path], Value]) -> Value:
        """The value that `load` reads from the entry of this key; a missing or damaged entry is built first.

        An entry that exists is complete: a build that fails leaves nothing. One evaluator builds, the others wait.
        """
        target = self.root / kind / key
        if target.is_dir():
            with contextlib.suppress(*DAMAGE_ERRORS):
                value = load(target)
                logger.debug("cache hit: %s/%s", kind, key)
                return value
        with file_lock(target.parent / f".{key}.lock"):
            if target.is_dir():
                try:
                    return load(target)
                except DAMAGE_ERRORS as error:
                    logger.info("cache entry is damaged: %s/%s: %s", kind, key, error)
                    remove_tree(target)
            logger.info("cache miss: building %s/%s", kind, key)
            _build(target, build)
            try:
                return load(target)  # under the lock: another evaluator may take it for damaged, and build it anew
            except DAMAGE_ERRORS as error:
                raise InfrastructureError(f"{target}: was built and cannot be read: {error}") from error

    @contextlib.contextmanager
    def shared_lock(self) -> Iterator[None]:
        """Nothing is pruned while this is held; any number of evaluators hold it at a time."""
        with file_lock(self.root / LOCK, shared=True):
            yield

    @contextlib.contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """For pruning: no evaluation starts while this is held. Raises InfrastructureError while evaluations run."""
        with open_lock(self.root / LOCK) as lock:
            if not try_lock(lock, fcntl.LOCK_EX):
                raise InfrastructureError(
                    f"{self.root}: evaluations are running with this cache; try again when they have ended"
                )
            yield

    @contextlib.contextmanager
    def running_lock(self, *, alone: bool = False) -> Iterator[None]:
        """Held while tests run; any number of evaluators hold it at a time, unless one is to be `alone`."""
        if alone:
            with self.quiet_lock():
                yield
            return
        with contextlib.ExitStack() as stack:
            with file_lock(self.root / QUIET_GATE, shared=True):
                stack.enter_context(file_lock(self.root / RUNNING, shared=True))
            yield

    @contextlib.contextmanager
    def quiet_lock(self) -> Iterator[None]:
        """No evaluation with this cache runs tests while this is held.

        Who waits for it holds the gate, so that evaluations that start meanwhile do not delay it for ever.
        """
        with file_lock(self.root / QUIET_GATE), file_lock(self.root / RUNNING):
            yield

    def remove_abandoned_sessions(self) -> list[Path]:
        """Remove the session folders of killed evaluators, and return their paths."""
        return [folder for folder in self.sessions.glob("*") if _remove_if_abandoned(folder)]

    @contextlib.contextmanager
    def session_folder(self) -> Iterator[Path]:
        """A folder for an evaluation; folders of killed evaluators are removed first."""
        self.sessions.mkdir(parents=True, exist_ok=True)
        self.remove_abandoned_sessions()
        folder, lock = _new_session(self.sessions)
        with lock:  # held until the folder is gone, so that nobody removes it as abandoned
            try:
                yield folder
            finally:
                _remove_session(folder)


def check_owner(root: Path, name: str, step: str) -> None:
    """Nobody else may write to a folder whose files are believed, such as programs that run here; not even for root.

    `name` and `step`, which says what to do, are parts of the message.
    """
    info = os.stat(root)
    if info.st_uid != os.geteuid():
        raise InfrastructureError(
            f"{root}: {name} belongs to user {info.st_uid}, and this is user {os.geteuid()}; {step}"
        )
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InfrastructureError(
            f"{root}: others may write to {name}, whose mode is {stat.S_IMODE(info.st_mode):04o}; "
            f"remove it, or run `chmod go-w` on it if you trust what is in it, or {step}"
        )


def user_caches() -> Path:
    """$XDG_CACHE_HOME, else .cache in the home; where root has another user's HOME, as after `sudo -E`, in root's own.

    There the user could not write what root has made, and the boxes of root could not read what the user has made.
    """
    if named := os.environ.get("XDG_CACHE_HOME"):
        return _expanded(named)
    home = _expanded("~")
    if os.geteuid() == 0 and home.is_dir() and home.stat().st_uid != 0:
        with contextlib.suppress(KeyError):  # a container may have no entry for root
            home = Path(pwd.getpwuid(0).pw_dir)
    return home / ".cache"


def _expanded(name: str) -> Path:
    path = os.path.expanduser(name)
    if path.startswith("~"):
        raise InfrastructureError(
            f"{name}: the user has no home folder on this machine; set {CACHE_VARIABLE} to a folder you can write to"
        )
    return Path(path)


def _build(target: Path, build: Callable[[Path], None]) -> None:
    """The caller holds the entry's lock, so scratch folders of this key are remains of killed builders."""
    for abandoned in target.parent.glob(f".{target.name}.*/"):
        remove_tree(abandoned)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        build(scratch)
        scratch.rename(target)
    except BaseException:
        remove_tree(scratch)
        raise


def _new_session(parent: Path) -> tuple[Path, IO[str]]:
    """Try again when another evaluator removed the folder as abandoned before it was locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix="s", dir=parent))
        with contextlib.ExitStack() as undo:
            undo.callback(remove_tree, folder)
            with contextlib.suppress(FileNotFoundError):
                lock = undo.enter_context((folder / "new").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                # A lock of this name belongs to a complete session.
                (folder / "new").rename(folder / "lock")
                undo.pop_all()
                return folder, lock


def _remove_session(folder: Path) -> None:
    """The lock is removed last: if we are killed meanwhile, the rest can still be recognised as abandoned."""
    for inner in folder.iterdir():
        if inner.name not in ("lock", "new"):
            remove_path(inner)
    remove_tree(folder)


def entry_for_scratch(scratch: Path) -> Path:
    """The entry that a builder's scratch folder will become."""
    return scratch.with_name(scratch.name[1:].partition(".")[0])


@contextlib.contextmanager
def file_lock(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock during the block; waiting for it can be cancelled."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with open_lock(path) as lock:
        while not try_lock(lock, kind):
            wait_for(None, POLL_S)
        yield


def open_lock(path: Path) -> IO[str]:
    """Opens or makes the file. A link is an OSError, and is not followed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "w")


def try_lock(lock: IO[Any], kind: int) -> bool:
    """Lock without waiting, and return whether it worked; an OSError where the file system has no locks."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_still_at(descriptor: int, path: Path) -> bool:
    """False if another process has removed this open file or folder from its path, or replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _remove_if_abandoned(folder: Path) -> bool:
    """Remove a session's folder unless its lock is held; an evaluator whose new folder is removed makes another."""
    for name in ("lock", "new"):
        try:
            with open_regular(folder / name) as lock:
                if not try_lock(lock, fcntl.LOCK_EX):
                    return False
                _remove_session(folder)
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return False
    try:
        folder.rmdir()  # it is empty if its maker was killed at once; otherwise this fails
    except OSError:
        return False
    return True


def remove_whole(folder: Path, aside: Path) -> None:
    """Remove a tree that others may use.

    After a kill the tree is whole, or it is gone and its rest lies in `aside` as `.tmp…`.
    """
    scratch = Path(tempfile.mkdtemp(prefix=".tmp", dir=aside))
    with contextlib.suppress(FileNotFoundError):  # another evaluator was faster
        folder.rename(scratch / folder.name)
    remove_tree(scratch)


def remove_path(path: Path) -> None:
    """Remove a file, a link or a tree, if it exists."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def remove_tree(folder: Path) -> None:
    """Remove a tree that a hostile process may have filled: folders without permissions are made writable first."""

    def make_writable(_function: object, path: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            if os.fspath(path) != str(folder):
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
            shutil.rmtree(folder, onexc=make_writable)
        else:
            shutil.rmtree(folder, onerror=make_writable)
    except RecursionError:  # deeper than Python recurses; rm has no such limit
        succeeds(["rm", "-rf", "--", str(folder)])
