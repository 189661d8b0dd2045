"""The disk of the ordinary user's home: the product in a virtual environment, the repository, settings of the host.

Everything is made on the host, for any processor: the wheel has helpers for both, and uv unpacks the packages of
another platform.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pristine import SETTINGS
from private_daemon import call, note

from machines.guest_files import HOME, LABEL
from slop_code.execution.python_version import fits, installed_pythons

if TYPE_CHECKING:
    from collections.abc import Mapping

    from private_daemon import Environment

    from machines.targets import Target

REPOSITORY = Path(__file__).parents[2]
TEST_PACKAGES = (
    "hypothesis", "jsonschema", "pytest", "pytest-json-ctrf", "pytest-json-report", "pytest-timeout", "pytest-xdist",
)  # fmt: skip
UID = 1000
SIZE = "1G"  # sparse
CERTIFICATES = "certificates.crt"
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


def product_disk(target: Target, form: Mapping[str, object], folder: Path, environment: Environment) -> Path:
    """`form`: settings of the checks, which the guest reads."""
    note("building the product's wheel")
    call([sys.executable, str(REPOSITORY / ".ci/release.py"), str(folder / "dist")], environment)
    (wheel,) = folder.glob("dist/*.whl")
    home = folder / "home"
    install(target, wheel, home / "venv", environment)
    copy_repository(home / "slop-code", environment)
    if BUNDLE.exists():
        shutil.copyfile(BUNDLE, home / CERTIFICATES)
    variables = {name: value for name, value in os.environ.items() if SETTINGS.match(name)}
    (home / "checks.json").write_text(json.dumps({**form, "variables": guest_variables(variables)}))
    call(["chown", "-R", f"{UID}:{UID}", str(home)], environment)
    home.chmod(0o700)
    disk = folder / "product.img"
    # Without this option the folder of the file system is root's, and open to everyone.
    options = ["-q", "-t", "ext4", "-m", "0", "-E", f"root_owner={UID}:{UID}", "-L", LABEL, "-d", str(home)]
    call(["mke2fs", *options, str(disk), SIZE], environment)
    shutil.rmtree(home)
    return disk


def guest_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Settings of package indexes, as far as they mean something in the guest; its certificates are the host's."""
    usable = {name: value for name, value in variables.items() if not value.startswith(("/", "file:"))}
    return {**usable, "SSL_CERT_FILE": f"{HOME}/{CERTIFICATES}"}


def install(target: Target, wheel: Path, venv: Path, environment: Environment) -> None:
    """A virtual environment made by hand, since nothing of a foreign processor runs here."""
    packages = venv / f"lib/python{target.python}/site-packages"
    packages.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin/python").symlink_to("/usr/bin/python3")
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    options = [
        "--quiet", "--python-platform", f"{target.processor}-manylinux_2_28", "--python-version", target.python,
        "--only-binary", ":all:", "--constraints", str(REPOSITORY / "requirements-test.lock"),
        "--target", str(packages),
    ]  # fmt: skip
    uv = str(Path(sys.executable).with_name("uv"))
    call([uv, "pip", "install", *options, *TEST_PACKAGES, str(wheel)], environment)
    compile_bytecode(target, packages, f"{HOME}/{packages.relative_to(venv.parent)}", environment)
    script = venv / "bin/slop-code"
    script.write_text(f'#!/bin/sh\nexec {HOME}/venv/bin/python -m slop_code "$@"\n')
    script.chmod(0o755)


def compile_bytecode(target: Target, folder: Path, inside: str, environment: Environment) -> None:
    """With a Python of the host that has the same version; otherwise the guest does it, which takes longer.

    The files fit every processor. `inside`: the folder in the guest.
    """
    pythons = (python.path for python in installed_pythons() if fits(python.version, target.python))
    if python := next(pythons, None):
        call([python, "-m", "compileall", "-q", "-s", str(folder), "-p", inside, str(folder)], environment)


def copy_repository(folder: Path, environment: Environment) -> None:
    names = call(
        ["git", "-C", str(REPOSITORY), "ls-files", "--cached", "--others", "--exclude-standard"], environment
    ).splitlines()
    for name in names:
        if (source := REPOSITORY / name).exists() and not name.startswith("src/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name, follow_symlinks=False)
