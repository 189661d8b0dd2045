"""Run a command with Docker at hand: `python tests/with_docker.py COMMAND…`. The exit status is the command's.

A daemon that answers is used as it is; where none does, root gets a private one for as long as the command runs. Two
images are made of Debian's packages, as a registry is not always in reach, and kept in the user's cache.
The command finds in its environment:

    DOCKER_HOST                  the private daemon, if there is one
    SLOP_CODE_TEST_IMAGE         an image with Python; set it to use another one
    SLOP_CODE_TEST_PLAIN_IMAGE   one with a shell and no Python; likewise
    SLOP_CODE_TEST_NO_DOCKER     why there is no Docker or no image; with CI=true that is a failure instead
    SLOP_CODE_TEST_COMPOSE       a folder for DOCKER_CONFIG with the plug-in `docker compose`; unset where docker has it
    SLOP_CODE_TEST_NO_COMPOSE    why there is no such plug-in
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from machines.mirrors import mirror_of
from private_daemon import UnavailableError, call, die_with_parent, install, note, private_daemon, why_silent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from private_daemon import Environment

LABEL = "slop-code.recipe"
LINKS = """cd "$1"; mkdir -p bin; [ -e bin/busybox ] || cp usr/bin/busybox bin
for name in $(bin/busybox --list); do [ -e bin/$name ] || ln -s busybox bin/$name; done; rm -r usr"""
RECIPES = {
    "SLOP_CODE_TEST_IMAGE": (
        "slop-code-test",
        "--variant=minbase",
        "--include=python3,ca-certificates",
        *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale")),
    ),
    "SLOP_CODE_TEST_PLAIN_IMAGE": (
        "slop-code-test-plain",
        "--variant=extract",
        "--include=busybox-static",
        f"--extract-hook={LINKS}",
    ),
}
COMPOSE_SUITE = "trixie"
"""The first suite of Debian whose package is the plug-in; that of its predecessor is a program of its own."""

SI_KERNEL = 128


def main(command: Sequence[str]) -> int:
    if not command:
        print("usage: with_docker.py COMMAND...", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    own = {name: value for name, value in os.environ.items() if name != "SLOP_CODE_TEST_NO_DOCKER"}
    tools = {**own, "PATH": own.get("PATH", os.defpath) + ":/usr/sbin:/sbin", "DEBIAN_FRONTEND": "noninteractive"}
    strict = own.get("CI") == "true"
    with contextlib.ExitStack() as at_end:
        try:
            found = at_end.enter_context(private_daemon(tools)) if why_silent(tools) else {}
            tools |= found
            with ThreadPoolExecutor() as pool:
                plugin = pool.submit(compose, tools)
                found |= images(tools, strict=strict, pool=pool)
                found |= plugin.result()
        except UnavailableError as missing:
            if strict:
                print(f"no Docker for the tests: {missing}", file=sys.stderr)
                return 1
            found = {"SLOP_CODE_TEST_NO_DOCKER": str(missing)}
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        return run(command, {**own, **found})


def run(command: Sequence[str], environment: Environment) -> int:
    """Wait for its end; a signal that was sent to this process alone is passed on."""
    awaited = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
        die_with_parent()

    try:
        child = subprocess.Popen(command, env=environment, preexec_fn=prepare)
    except OSError as error:
        print(error, file=sys.stderr)
        return 127
    while child.poll() is None:
        received = signal.sigwaitinfo(awaited)
        # Ctrl-C comes from the kernel, and the command has it already
        if received.si_signo != signal.SIGCHLD and received.si_code != SI_KERNEL:
            child.send_signal(received.si_signo)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def images(environment: Environment, *, strict: bool, pool: Executor) -> Environment:
    wanted = {variable: recipe for variable, recipe in RECIPES.items() if not environment.get(variable)}
    made = {variable: pool.submit(image, name, options, environment) for variable, (name, *options) in wanted.items()}
    found = {}
    for variable, (name, *_) in RECIPES.items():
        try:
            found[variable] = made[variable].result() if variable in made else environment[variable]
        except UnavailableError as error:
            if strict or not found:  # few tests need the plain one
                raise UnavailableError(f"{error}; {variable} can name another image than {name}") from None
    return found


def image(name: str, options: Sequence[str], environment: Environment) -> str:
    """Its full name, once the daemon has it as this recipe makes it."""
    full, recipe = f"{name}:latest", digest([debian_suite(), *options])
    query = ["docker", "image", "inspect", full, "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}']
    with contextlib.suppress(UnavailableError):
        if call(query, environment) == recipe:
            return full
    tar = image_tar(name, options, environment)
    call(["docker", "import", "--change", f"LABEL {LABEL}={recipe}", str(tar), full], environment)
    return full


def compose(environment: Environment) -> Environment:
    """Few tests need the plug-in, so that those fail where it cannot be had."""
    with contextlib.suppress(UnavailableError):
        call(["docker", "compose", "version"], environment)
        return {}
    folder = cache_folder(environment) / f"compose-{COMPOSE_SUITE}-{platform.machine()}"
    try:
        if not folder.exists():
            install("mmdebstrap", "mmdebstrap", environment)
            note("fetching docker compose")
            make_compose(folder, environment)
    except (UnavailableError, OSError) as error:
        return {"SLOP_CODE_TEST_NO_COMPOSE": str(error)}
    return {"SLOP_CODE_TEST_COMPOSE": str(folder)}


def make_compose(folder: Path, environment: Environment) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--variant=extract", "--include=docker-compose", COMPOSE_SUITE]
    with tempfile.TemporaryDirectory(dir=folder.parent) as unfinished:
        system, config = Path(unfinished, "system"), Path(unfinished, "config")
        call(["mmdebstrap", *options, str(system), mirror_of("debian", environment)], environment)
        (config / "cli-plugins").mkdir(parents=True)
        (system / "usr/libexec/docker/cli-plugins/docker-compose").rename(config / "cli-plugins/docker-compose")
        config.rename(folder)


def image_tar(name: str, options: Sequence[str], environment: Environment) -> Path:
    """Its files, made where the cache has none."""
    suite = debian_suite()
    recipe = digest([suite, *options])
    tar = cache_folder(environment) / f"{name}-{suite}-{platform.machine()}-{recipe}.tar"
    if not tar.exists():
        install("mmdebstrap", "mmdebstrap", environment)
        note(f"making the image {name}")
        make_tar(tar, [*options, suite], environment)
    return tar


def make_tar(tar: Path, options: Sequence[str], environment: Environment) -> None:
    tar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tar.parent) as unfinished:
        call(["mmdebstrap", "--quiet", *options, f"{unfinished}/image.tar"], environment)
        Path(unfinished, "image.tar").replace(tar)


def debian_suite() -> str:
    """The host's own, whose packages its apt can fetch and check."""
    try:
        return platform.freedesktop_os_release()["VERSION_CODENAME"]
    except (OSError, KeyError):
        return "stable"


def digest(recipe: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:12]


def cache_folder(environment: Environment) -> Path:
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slop-code-tests"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
