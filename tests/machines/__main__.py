"""`make vm TARGET=...`: make a machine, boot it, run the checks in it, print their results, and remove it."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from private_daemon import FOLDERS, UnavailableError, note

from machines.guest import MARK
from machines.mirrors import as_root_with_tools
from machines.product_disk import REPOSITORY, product_disk
from machines.system_disk import system_disk
from machines.targets import TARGETS
from machines.virtual_machine import Machine, console_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

LOGS = REPOSITORY / "out/vm"


def main(arguments: argparse.Namespace) -> int:
    name, target = arguments.target, TARGETS[arguments.target]
    try:
        environment = as_root_with_tools()
        system = system_disk(name, target, environment)
        with tempfile.TemporaryDirectory(prefix="slop-code-vm-", dir=FOLDERS) as folder:
            form = {"short": arguments.short, "only": arguments.only}
            product = product_disk(target, form, Path(folder), environment)
            note(f"booting {name}")
            LOGS.mkdir(parents=True, exist_ok=True)
            machine = Machine(target, system, product, has_systemd=target.is_native and not arguments.short)
            lines = console_lines(machine, environment)
            with contextlib.closing(lines), (LOGS / f"{name}.log").open("w") as log:
                return follow(lines, log, time.monotonic())
    except UnavailableError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 3


def follow(lines: Iterable[str], log: TextIO, begin: float) -> int:
    """Print what the checks say; 0 only if the machine said that none failed."""
    status = 3
    for line in lines:
        log.write(f"{time.monotonic() - begin:7.1f} {line}\n")
        log.flush()
        if MARK in line:
            text = line.partition(MARK)[2]
            if text.startswith("end "):
                status = int(text != "end 0")
            print(f"{time.monotonic() - begin:6.0f} s  {text}", flush=True)
    if status == 3:
        print(f"the machine ended before its checks did; see {log.name}", file=sys.stderr)
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make vm", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--short", action="store_true", help="only `doctor`, as several users, without systemd")
    parser.add_argument("--only", default="", metavar="WORDS", help="checks with one of these words in their names")
    sys.exit(main(parser.parse_args()))
