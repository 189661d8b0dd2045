"""Ownership of containers, volumes and images, and removal of those whose evaluator was killed.

Each carries a label that names its owner: a lock that its evaluator holds while it lives. Containers and volumes
without a living owner are removed by the next evaluation, images by `cache prune`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from slop_code._io import digest_of
from slop_code.execution.cache import file_lock

if TYPE_CHECKING:
    from slop_code.execution.cache import Cache
    from slop_code.execution.docker.engine import Engine, LabelledObject

OWNER = "slop-code.owner"
ENTRY = "slop-code.entry"
OBJECTS_FILE = "names.json"
"""File of a cache entry with the names of its objects in the engine."""

OWNERS_LOCK = ".owners.lock"


@functools.cache
def owner_label(cache: Cache) -> str:
    """The label of this process: its machine, and the lock that it holds until its end."""
    path = cache.root / "owners" / f"{os.getpid()}-{secrets.token_hex(4)}"
    path.parent.mkdir(exist_ok=True)
    remove_abandoned_locks(cache)
    with file_lock(cache.root / OWNERS_LOCK):
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        lock = os.open(path, flags, 0o666)  # open until this process ends
        fcntl.flock(lock, fcntl.LOCK_EX)
    return f"{machine_id()}:{quote(str(path), safe='/')}"


def remove_abandoned_locks(cache: Cache) -> None:
    """Remove owners' locks that nobody holds; under a lock of its own, since a new lock file is not locked at once."""
    with file_lock(cache.root / OWNERS_LOCK):
        for path in (cache.root / "owners").glob("*"):
            if not is_owner_alive(f"{machine_id()}:{quote(str(path), safe='/')}"):
                path.unlink(missing_ok=True)


@functools.cache
def machine_id() -> str:
    """A lock can be tested only where the same files are visible: on the same machine, in the same mount namespace."""
    known = [socket.gethostname()]
    with contextlib.suppress(OSError):
        known.append(Path("/etc/machine-id").read_text())
    with contextlib.suppress(OSError):
        known.append(os.readlink("/proc/self/ns/mnt"))
    return digest_of(known)[:16]


def is_owner_alive(label: str) -> bool:
    """Whether an owner may still use its objects; an owner on another machine counts as alive."""
    machine, _, path = label.partition(":")
    if machine != machine_id():
        return True
    try:
        with open(unquote(path)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_abandoned(item: LabelledObject) -> bool:
    """Whether its owner is gone, and no cache entry names it."""
    if is_owner_alive(item.labels.get(OWNER, "")):
        return False
    entry = item.labels.get(ENTRY)
    if entry is None:
        return True
    try:
        return item.name not in json.loads((Path(unquote(entry)) / OBJECTS_FILE).read_text()).values()
    except (FileNotFoundError, ValueError):
        return True
    except OSError:
        return False


def remove_abandoned_objects(
    engine: Engine, containers: list[LabelledObject], volumes: list[LabelledObject]
) -> list[str]:
    """Remove abandoned containers and volumes, and return their names."""
    old_containers = [item.name for item in containers if is_abandoned(item)]
    old_volumes = [item.name for item in volumes if is_abandoned(item)]
    engine.remove(old_containers, old_volumes)
    return [*old_containers, *old_volumes]
