"""An image with another Python: the test image with the files of an interpreter of this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.execution.python_version import fits, host_python

if TYPE_CHECKING:
    from collections.abc import Iterator

LEFT_OUT = ("__pycache__", "config-*", "ensurepip", "idlelib", "site-packages", "test", "tkinter")
VERSION = "import platform; print(platform.python_version())"
NO_NETWORK = "--network=none"


@contextlib.contextmanager
def image_with(request: str) -> Iterator[str]:
    """The name of the image: the test image itself, if its Python fits."""
    base = os.environ["SLOP_CODE_TEST_IMAGE"]
    if fits(docker("run", "--rm", NO_NETWORK, base, "python3", "-c", VERSION), request):
        yield base
        return
    image = make_image(base, Path(host_python(request).path))
    try:
        yield image
    finally:
        docker("rmi", "--force", image)


def make_image(base: str, python: Path) -> str:
    container = docker("create", NO_NETWORK, base, "ldconfig")
    image = f"slop-code-test-{container[:12]}"
    try:
        copy_python(python, container)
        docker("start", "--attach", container)
        docker("commit", container, image)
    finally:
        docker("rm", "--force", container)
    return image


def copy_python(python: Path, container: str) -> None:
    """To /usr/local, as `python3.X` only: the image's own `python3` stays what it is."""
    prefix = python.parents[1]
    libraries = [str(path.relative_to(prefix)) for path in (prefix / "lib").glob("libpython3*")]
    words = [f"--exclude={name}" for name in LEFT_OUT]
    with tempfile.TemporaryFile() as archive:
        argv = ["tar", "-c", "-C", str(prefix), *words, f"bin/{python.name}", f"lib/{python.name}", *libraries]
        subprocess.run(argv, stdout=archive, check=True)
        archive.seek(0)
        subprocess.run(["docker", "cp", "-", f"{container}:/usr/local"], stdin=archive, check=True)


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
