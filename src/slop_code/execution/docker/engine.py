"""The container engine through its command: docker, podman or nerdctl, whoever the user has.

Everything made here carries a label that names its owner, a lock that its evaluator holds while it lives:
containers and volumes that belong to nobody any more are removed by whoever starts next, images by `cache prune`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from slop_code._io import digest_of
from slop_code.errors import InfrastructureError
from slop_code.execution.cache import file_lock
from slop_code.execution.process import CapturedOutput, capture
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback

OWNER = "slop-code.owner"
ENTRY = "slop-code.entry"
KEPT = "names.json"
"""In an entry of the cache: what it stands for in the engine."""

SAID = 2000
NOTHING = "it said nothing; look into the daemon's own log"
OWNERS_LOCK = ".owners.lock"
ANSWER_S = 120.0
PULL_S = 3600.0
UNREACHABLE = (
    "cannot connect to the docker daemon",
    "error during connect",
    "connection refused",
    "docker daemon is not",
    "error waiting for container: unexpected eof",
)
ANSWERED = "error response from daemon"
FULL = ("no space left on device", "disk quota exceeded")
FORBIDDEN = ("permission denied while trying to connect", "got permission denied")


@dataclass(frozen=True, slots=True)
class LabelledObject:
    """A container or a volume of ours."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Engine:
    binary: str

    def unavailable_reason(self) -> str | None:
        if shutil.which(self.binary) is None:
            return f"{self.binary} is not installed; install it, name another as docker.binary, or use -e local"
        return None

    def daemon_identity(self) -> list[str]:
        """Tells one daemon from another, as what is kept in one is not in the other."""
        return [
            self.binary,
            *[os.environ.get(name, "") for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")],
        ]

    def run(self, *arguments: str, timeout: float = ANSWER_S) -> CapturedOutput:
        return capture([self.binary, *arguments], timeout)

    def check_output(self, *arguments: str, timeout: float = ANSWER_S) -> str:
        answer = self.run(*arguments, timeout=timeout)
        if answer.exit_code != 0:
            raise self.failure(" ".join(arguments[:2]), answer.errors or answer.output)
        return answer.output.strip()

    def failure(self, what: str, text: str) -> InfrastructureError:
        told = text.strip()[-SAID:]
        known = self.diagnose(text)
        return InfrastructureError(f"{known}\n{told}" if known else f"`{self.binary} {what}` failed: {told or NOTHING}")

    def diagnose(self, text: str) -> str | None:
        """One sentence for each way an engine fails that a person can do something about."""
        lower = text.lower()
        if any(words in lower for words in FORBIDDEN):
            return f"{self.binary}: this user may not use the daemon; join its group"
        if any(words in lower for words in UNREACHABLE) and ANSWERED not in lower:
            where = os.environ.get("DOCKER_HOST") or "its default socket"
            return f"{self.binary}: no daemon answers at {where}; start it or set DOCKER_HOST, or use -e local"
        if any(words in lower for words in FULL):
            return f"{self.binary}: the daemon's disk is full; `slop-code cache prune --all` makes room"
        return None

    def image(self, name: str, progress: ProgressCallback) -> dict[str, Any]:
        """What the engine knows of an image, pulled when it is not there."""
        answer = self.run("image", "inspect", "--", name)
        if answer.exit_code != 0 and any(word in answer.errors.lower() for word in ("no such image", "not known")):
            progress(ProgressEvent(ProgressKind.PULL_IMAGE, name))
            self.pull(name)
            answer = self.run("image", "inspect", "--", name)
        if answer.exit_code != 0:
            raise self.failure("image inspect", answer.errors)
        try:
            found: dict[str, Any] = json.loads(answer.output)[0]
        except (ValueError, LookupError):
            raise self.failure("image inspect", f"it is no container engine: {answer.output}") from None
        return found

    def pull(self, name: str) -> None:
        answer = self.run("pull", "--quiet", "--", name, timeout=PULL_S)
        if answer.exit_code != 0:
            unknown = f"image {name}: not here, and it cannot be pulled; build or load it, or correct docker.image"
            raise InfrastructureError(f"{self.diagnose(answer.errors) or unknown}\n{answer.errors.strip()[-SAID:]}")

    def containers(self) -> list[LabelledObject]:
        return self._items("ps", "--all", name=("Names", "ID"))

    def volumes(self) -> list[LabelledObject]:
        return self._items("volume", "ls", name=("Name",))

    def images(self) -> set[str]:
        listed = self.check_output("images", "--quiet", "--no-trunc", "--filter", f"label={OWNER}").split()
        return {image.removeprefix("sha256:") for image in listed}

    def commit(self, container: str, entry: str, timeout: float) -> str:
        """The container as an image: its digest, which podman writes without its kind."""
        label = f"LABEL {ENTRY}={entry}"
        return (
            self.check_output("commit", "--change", label, container, timeout=timeout)
            .split()[-1]
            .removeprefix("sha256:")
        )

    def image_labels(self, image: str) -> Mapping[str, str]:
        labels: dict[str, str] = json.loads(
            self.check_output("image", "inspect", "--format", "{{json .Config.Labels}}", image)
        )
        return labels

    def _items(self, *command: str, name: tuple[str, ...]) -> list[LabelledObject]:
        found = []
        for values in _objects(self.check_output(*command, "--filter", f"label={OWNER}", "--format", "{{json .}}")):
            own = next(values[key] for key in name if values.get(key))
            found.append(LabelledObject(own[0] if isinstance(own, list) else own, _labels(values.get("Labels"))))
        return found

    def remove(self, containers: Iterable[str] = (), volumes: Iterable[str] = (), images: Iterable[str] = ()) -> None:
        """Whatever of these is still there; that something has gone by itself is no trouble."""
        gone = (
            (("rm", "--force", "--volumes"), containers),
            (("volume", "rm", "--force"), volumes),
            (("rmi", "--force"), images),
        )
        for command, names in gone:
            if listed := list(names):
                self.run(*command, *listed)


def _objects(text: str) -> list[dict[str, Any]]:
    """docker prints an object a line, podman one list."""
    if text.startswith("["):
        listed: list[dict[str, Any]] = json.loads(text)
        return listed
    return [json.loads(line) for line in text.splitlines()]


def _labels(value: Any) -> dict[str, str]:
    """docker prints `a=b,c=d`, podman an object."""
    if isinstance(value, dict):
        return value
    pairs = (pair.partition("=") for pair in str(value or "").split(","))
    return {name: text for name, _, text in pairs if name}


_HELD: list[Any] = []
"""Locks, open until this process ends."""


@functools.cache
def owner(cache: Cache) -> str:
    """The label's value for this process: where it is and which lock it holds until its end."""
    path = cache.root / "owners" / f"{os.getpid()}-{secrets.token_hex(4)}"
    path.parent.mkdir(exist_ok=True)
    remove_dead_owners(cache)
    with file_lock(cache.root / OWNERS_LOCK):
        _HELD.append(path.open("w"))
        fcntl.flock(_HELD[-1], fcntl.LOCK_EX)
    return f"{host()}:{quote(str(path), safe='/')}"


def remove_dead_owners(cache: Cache) -> None:
    """Remove the locks that nobody holds any more; under a lock, as a new one is not held from its first moment."""
    with file_lock(cache.root / OWNERS_LOCK):
        for path in (cache.root / "owners").glob("*"):
            if not is_alive(f"{host()}:{quote(str(path), safe='/')}"):
                path.unlink(missing_ok=True)


@functools.cache
def host() -> str:
    """Locks can be looked at from where the same files are seen: one machine, one namespace of mounts."""
    known = [socket.gethostname()]
    with contextlib.suppress(OSError):
        known.append(Path("/etc/machine-id").read_text())
    with contextlib.suppress(OSError):
        known.append(os.readlink("/proc/self/ns/mnt"))
    return digest_of(known)[:16]


def is_alive(label: str) -> bool:
    """Whether an owner may still want its things; of another machine's nobody here can tell."""
    machine, _, path = label.partition(":")
    if machine != host():
        return True
    try:
        with open(unquote(path)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_left_over(item: LabelledObject) -> bool:
    """Its owner is gone, and no entry of a cache names it as kept."""
    if is_alive(item.labels.get(OWNER, "")):
        return False
    entry = item.labels.get(ENTRY)
    if entry is None:
        return True
    try:
        return item.name not in json.loads((Path(unquote(entry)) / KEPT).read_text()).values()
    except (FileNotFoundError, ValueError):
        return True
    except OSError:
        return False


def sweep(engine: Engine, containers: list[LabelledObject], volumes: list[LabelledObject]) -> list[str]:
    """Remove what killed evaluators left; its names."""
    old = [item.name for item in containers if is_left_over(item)]
    empty = [item.name for item in volumes if is_left_over(item)]
    engine.remove(old, empty)
    return [*old, *empty]
