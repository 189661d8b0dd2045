"""The container engine through its command line: docker, podman or nerdctl."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slop_code.errors import InfrastructureError
from slop_code.execution.docker.owners import ENTRY, OWNER
from slop_code.execution.installation.install_failure import CauseKind, install_cause
from slop_code.execution.process import CapturedOutput, NoAnswerError, capture
from slop_code.execution.progress_events import ProgressEvent, ProgressKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slop_code.execution.progress_events import ProgressCallback

MAX_MESSAGE = 2000
NO_MESSAGE = "it printed nothing; look into the daemon's own log"
ANSWER_S = 120.0
UNREACHABLE = (
    "cannot connect to the docker daemon",
    "error during connect",
    "connection refused",
    "docker daemon is not",
    "error waiting for container: unexpected eof",
)
ANSWERED = "error response from daemon"
MISSING_IMAGE = ("manifest unknown", "manifest for", "repository does not exist", "access denied", "not found")
"""Messages of engines where a registry answers that it has no such image."""

FORBIDDEN = ("permission denied while trying to connect", "got permission denied")


@dataclass(frozen=True, slots=True)
class LabelledObject:
    """A container or a volume that slop-code made."""

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
        """Part of cache keys, since daemons do not share volumes and images."""
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
        message = text.strip()[-MAX_MESSAGE:]
        diagnosis = self.diagnose(text)
        return InfrastructureError(
            f"{diagnosis}\n{message}" if diagnosis else f"`{self.binary} {what}` failed: {message or NO_MESSAGE}"
        )

    def diagnose(self, text: str) -> str | None:
        """One sentence for each kind of failure that the user can do something about."""
        lower = text.lower()
        if any(words in lower for words in FORBIDDEN):
            return f"{self.binary}: this user may not use the daemon; join its group"
        if any(words in lower for words in UNREACHABLE) and ANSWERED not in lower:
            where = os.environ.get("DOCKER_HOST") or "its default socket"
            return f"{self.binary}: no daemon answers at {where}; start it or set DOCKER_HOST, or use -e local"
        if install_cause(text).kind is CauseKind.FULL_DISK:
            return f"{self.binary}: the daemon's disk is full; `slop-code cache prune --all` makes room"
        return None

    def image(self, name: str, progress: ProgressCallback, pull_timeout: float) -> dict[str, Any]:
        """The engine's description of an image, which is pulled when it is not there."""
        answer = self.run("image", "inspect", "--", name)
        if answer.exit_code != 0 and any(word in answer.errors.lower() for word in ("no such image", "not known")):
            progress(ProgressEvent(ProgressKind.PULL_IMAGE, name))
            self.pull(name, pull_timeout)
            answer = self.run("image", "inspect", "--", name)
        if answer.exit_code != 0:
            raise self.failure("image inspect", answer.errors)
        try:
            description: dict[str, Any] = json.loads(answer.output)[0]
        except (ValueError, LookupError):
            raise self.failure("image inspect", f"it is no container engine: {answer.output}") from None
        return description

    def pull(self, name: str, timeout: float) -> None:
        try:
            answer = self.run("pull", "--quiet", "--", name, timeout=timeout)
        except NoAnswerError:
            limit = f"it was not pulled within the {timeout:g} s of timeouts.image"
            raise InfrastructureError(f"image {name}: {limit}; pull it ahead, or set a longer one") from None
        if answer.exit_code != 0:
            reason = (
                self.diagnose(answer.errors)
                or f"image {name}: not here, and it cannot be pulled{_pull_advice(answer.errors)}"
            )
            raise InfrastructureError(f"{reason}\n{answer.errors.strip()[-MAX_MESSAGE:]}")

    def containers(self) -> list[LabelledObject]:
        return self._items("ps", "--all", name=("Names", "ID"))

    def volumes(self) -> list[LabelledObject]:
        return self._items("volume", "ls", name=("Name",))

    def images(self) -> set[str]:
        listed = self.check_output("images", "--quiet", "--no-trunc", "--filter", f"label={OWNER}").split()
        return {image.removeprefix("sha256:") for image in listed}

    def commit(self, container: str, entry: str, timeout: float) -> str:
        """Make an image of the container, and return its digest, which podman prints without the prefix."""
        label = f"LABEL {ENTRY}={entry}"
        return (
            self.check_output("commit", "--change", label, container, timeout=timeout)
            .split()[-1]
            .removeprefix("sha256:")
        )

    def written_size(self, container: str) -> int:
        """Bytes that were written to the container's root."""
        words = ("container", "inspect", "--size", "--format", "{{.SizeRw}}")
        return int(self.check_output(*words, container))

    def image_labels(self, image: str) -> Mapping[str, str]:
        labels: dict[str, str] = json.loads(
            self.check_output("image", "inspect", "--format", "{{json .Config.Labels}}", image)
        )
        return labels

    def _items(self, *command: str, name: tuple[str, ...]) -> list[LabelledObject]:
        objects = []
        for values in _objects(self.check_output(*command, "--filter", f"label={OWNER}", "--format", "{{json .}}")):
            own = next(values[key] for key in name if values.get(key))
            objects.append(LabelledObject(own[0] if isinstance(own, list) else own, _labels(values.get("Labels"))))
        return objects

    def remove(self, containers: Iterable[str] = (), volumes: Iterable[str] = (), images: Iterable[str] = ()) -> None:
        """Remove those that still exist; a missing object is no failure.

        podman removes none of several objects if one of them is missing, and does not call that a failure. So those
        that the command does not print as removed are removed one by one.
        """
        commands = (
            (("rm", "--force", "--volumes"), containers),
            (("volume", "rm", "--force"), volumes),
            (("rmi", "--force"), images),
        )
        for command, names in commands:
            listed = list(names)
            removed = self.run(*command, *listed).output.split() if listed else []
            for name in listed if len(listed) > 1 else ():
                if name not in removed:
                    self.run(*command, name)


def _pull_advice(errors: str) -> str:
    if install_cause(errors).kind is CauseKind.NO_NETWORK:
        return ": its registry cannot be reached; check the network, or build or load it"
    if any(words in errors.lower() for words in MISSING_IMAGE):
        return (
            ": its registry has no such image for you; check the spelling of docker.image, log in, or build or load it"
        )
    return "; build or load it, or correct docker.image"


def _objects(text: str) -> list[dict[str, Any]]:
    """docker prints an object per line, podman a list."""
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
