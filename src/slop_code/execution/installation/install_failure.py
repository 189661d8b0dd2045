"""Causes of failed downloads and installations, by what uv, pip, a container engine or the kernel printed.

Code of a submission can print any of it too, so a cause is only ever shown: no verdict depends on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

MAX_OUTPUT = 1 << 16
"""Characters that are looked at, from the end: the cause is printed last."""

NAME = r"(?<![\w.-])(?P<name>[A-Za-z0-9][A-Za-z0-9._\[\],<>=!~*+-]{0,99})"


class CauseKind(Enum):
    FULL_DISK = auto()
    NO_PACKAGE = auto()
    NO_VERSION = auto()
    CERTIFICATE = auto()
    REFUSED = auto()
    """The package index, or a proxy before it, answered with an error."""

    NO_NETWORK = auto()
    UNKNOWN = auto()


PATTERNS = {
    CauseKind.FULL_DISK: re.compile(r"no space left on device|disk quota exceeded|\bos error (?:28|122)\b", re.I),
    CauseKind.NO_PACKAGE: re.compile(rf"{NAME} was not found in the package registry", re.I),
    CauseKind.NO_VERSION: re.compile(
        rf"(?:there (?:is|are) no versions? of|no matching distribution found for) {NAME}(?=\s|$)", re.I
    ),
    CauseKind.CERTIFICATE: re.compile(r"invalid peer certificate|certificate verify failed|unknown ?issuer", re.I),
    CauseKind.REFUSED: re.compile(r"http status (?:client|server) error \((?P<name>[0-9]{3} [a-z ]{1,40})\)", re.I),
    CauseKind.NO_NETWORK: re.compile(
        r"failed to lookup address|dns error|name or service not known|temporary failure in name resolution"
        r"|no such host|network is unreachable|no route to host|connection refused|connection reset"
        r"|(?:connection|operation) timed out|i/o timeout|tcp connect error|client error \(connect\)"
        r"|not found in the cache|network was disabled|network connectivity is disabled",
        re.I,
    ),
}
"""In the order in which they are tried: a disk that is full can end a download."""


@dataclass(frozen=True, slots=True)
class InstallCause:
    kind: CauseKind
    name: str = ""
    """The package that is missing, or the answer of the package index."""

    @property
    def fact(self) -> str | None:
        """One sentence without a path, or None if the cause is unknown."""
        return {
            CauseKind.FULL_DISK: "the disk is full",
            CauseKind.NO_PACKAGE: f"the package index has no package {self.name}",
            CauseKind.NO_VERSION: f"the package index has no version of {self.name}",
            CauseKind.CERTIFICATE: "the certificate of the package index is not trusted",
            CauseKind.REFUSED: f"the package index answered {self.name}",
            CauseKind.NO_NETWORK: "the package index cannot be reached",
            CauseKind.UNKNOWN: None,
        }[self.kind]

    def advice(self, *, disk: str, requirements: str) -> str | None:
        """The fact, and the next step. `disk` is where space is missing, `requirements` what names the packages."""
        step = {
            CauseKind.FULL_DISK: f"free space in {disk}",
            CauseKind.NO_PACKAGE: f"check its spelling in {requirements}",
            CauseKind.NO_VERSION: f"check it in {requirements}",
            CauseKind.CERTIFICATE: "set SSL_CERT_FILE",
            CauseKind.REFUSED: _step_for_status(self.name[:3]),
            CauseKind.NO_NETWORK: "check the network, or set HTTPS_PROXY",
            CauseKind.UNKNOWN: "",
        }[self.kind]
        return self.fact and f"{self.fact}: {step}"


def install_cause(output: str) -> InstallCause:
    for kind, pattern in PATTERNS.items():
        if match := pattern.search(output, max(0, len(output) - MAX_OUTPUT)):
            return InstallCause(kind, match.groupdict().get("name", ""))
    return InstallCause(CauseKind.UNKNOWN)


def _step_for_status(status: str) -> str:
    if status in ("401", "403", "407"):
        return "check your credentials"
    return "try again later" if status == "429" or status.startswith("5") else "check its address"
