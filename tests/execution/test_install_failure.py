"""Causes of failed installations, by what uv, pip, engines and the kernel print."""

import pytest

from slop_code.errors import InfrastructureError
from slop_code.execution.docker.engine import Engine
from slop_code.execution.installation.install_failure import CauseKind, InstallCause, install_cause

NO_NETWORK = """\
error: Request failed after 3 retries in 5.3s
  cause: Failed to fetch: https://index.example/simple/pytest/
  cause: error sending request for url (https://index.example/simple/pytest/)
  cause: client error (Connect)
  cause: dns error
  cause: failed to lookup address information: Temporary failure in name resolution
"""
FULL_DISK = """\
error: Failed to download `pytest==9.2.0`
  cause: Failed to extract archive: pytest-9.2.0-py3-none-any.whl
  cause: I/O operation failed during extraction
  cause: failed to write to file `/cache/uv/.tmpRo3r4M/runner.py`: No space left on device (os error 28)
"""
NO_PACKAGE = """\
error: No solution found when resolving dependencies
  cause: Because no-such-package was not found in the package registry and you require no-such-package==1, we can
"""
NO_VERSION = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of iniconfig==99.1 and you require iniconfig==99.1, we can conclude that
"""
OFFLINE = "  cause: Because pytest was not found in the cache\n\nhint: Packages were unavailable: network was disabled"
CERTIFICATE = "  cause: client error (Connect)\n  cause: invalid peer certificate: UnknownIssuer"
UNKNOWN = InstallCause(CauseKind.UNKNOWN)


def answer(side, status):
    return f"  cause: HTTP status {side} error ({status}) for url (https://index.example/simple/pytest/)"


FORBIDDEN = answer("client", "403 Forbidden")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (NO_NETWORK, InstallCause(CauseKind.NO_NETWORK)),
        (FULL_DISK, InstallCause(CauseKind.FULL_DISK)),
        (f"{NO_NETWORK}{FULL_DISK}", InstallCause(CauseKind.FULL_DISK)),
        ("error: Failed to fetch: x\n  cause: Disk quota exceeded (os error 122)", InstallCause(CauseKind.FULL_DISK)),
        ("OSError: [Errno 28] No space left on device", InstallCause(CauseKind.FULL_DISK)),
        (NO_PACKAGE, InstallCause(CauseKind.NO_PACKAGE, "no-such-package")),
        (NO_VERSION, InstallCause(CauseKind.NO_VERSION, "iniconfig==99.1")),
        ("ERROR: No matching distribution found for Nothing==3", InstallCause(CauseKind.NO_VERSION, "Nothing==3")),
        (OFFLINE, InstallCause(CauseKind.NO_NETWORK)),
        (FORBIDDEN, InstallCause(CauseKind.REFUSED, "403 Forbidden")),
        (CERTIFICATE, InstallCause(CauseKind.CERTIFICATE)),
        ("dial tcp: lookup registry.example: no such host", InstallCause(CauseKind.NO_NETWORK)),
        ("connect: connection refused", InstallCause(CauseKind.NO_NETWORK)),
        ("error: Failed to fetch: x\n  cause: an odd answer", UNKNOWN),
        ("error: the network of tests is fine", UNKNOWN),
        ("error: Failed to build `x==1`", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_cause_is_what_the_program_said(output, expected):
    assert install_cause(output) == expected


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (FULL_DISK, "the disk is full: free space in /cache"),
        (NO_PACKAGE, "the package index has no package no-such-package: check its spelling in requirements.txt"),
        (NO_VERSION, "the package index has no version of iniconfig==99.1: check it in requirements.txt"),
        (NO_NETWORK, "the package index cannot be reached: check the network, or set HTTPS_PROXY"),
        (FORBIDDEN, "the package index answered 403 Forbidden: check your credentials"),
        (answer("client", "401 Unauthorized"), "the package index answered 401 Unauthorized: check your credentials"),
        (answer("client", "404 Not Found"), "the package index answered 404 Not Found: check its address"),
        (
            answer("client", "429 Too Many Requests"),
            "the package index answered 429 Too Many Requests: try again later",
        ),
        (
            answer("server", "503 Service Unavailable"),
            "the package index answered 503 Service Unavailable: try again later",
        ),
        (CERTIFICATE, "the certificate of the package index is not trusted: set SSL_CERT_FILE"),
        ("odd", None),
    ],
)
def test_the_advice_fits_the_cause(output, text):
    assert install_cause(output).advice(disk="/cache", requirements="requirements.txt") == text


@pytest.mark.parametrize(
    "output",
    [
        "\x1b[2J was not found in the package registry",
        "there is no version of \x1b]0;owned\x07 ",
        "x" * 500 + " was not found in the package registry",
    ],
)
def test_hostile_names_are_not_repeated(output):
    shown = install_cause(output).advice(disk="", requirements="") or ""
    assert shown.isprintable()
    assert len(shown) < 300


def test_long_output_is_looked_at_from_its_end():
    noise = "a" * 2_000_000 + " b" * 1_000_000
    assert install_cause(f"{noise}\n{FULL_DISK}") == InstallCause(CauseKind.FULL_DISK)
    assert install_cause(f"{FULL_DISK}{noise}") == UNKNOWN


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        (
            "Error response from daemon: dial tcp: lookup registry.example: no such host",
            "image x: not here, and it cannot be pulled: its registry cannot be reached; check the network",
        ),
        (
            "Error response from daemon: pull access denied for x, repository does not exist or may require login",
            "image x: not here, and it cannot be pulled: its registry has no such image for you; check the spelling of",
        ),
        (
            "Error: initializing source: manifest unknown",
            "image x: not here, and it cannot be pulled: its registry has no such image",
        ),
        ("write /var/lib/docker/tmp/x: no space left on device", ": the daemon's disk is full; "),
        ("something odd", "image x: not here, and it cannot be pulled; build or load it, or correct docker.image"),
    ],
)
@pytest.mark.e2e
def test_an_image_that_cannot_be_pulled_says_why(tmp_path, errors, reason):
    command = tmp_path / "engine"
    command.write_text(f"#!/bin/sh\necho '{errors}' >&2\nexit 1\n")
    command.chmod(0o755)
    with pytest.raises(InfrastructureError) as caught:
        Engine(str(command)).pull("x", 60)
    assert reason in str(caught.value).splitlines()[0]
