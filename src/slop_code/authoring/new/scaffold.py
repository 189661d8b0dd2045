"""Files of a new problem, filled in from templates."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from slop_code._io import new_folder
from slop_code.errors import UsageError

TEMPLATES = Path(__file__).parent / "templates"
SUFFIX = ".tmpl"
KINDS = {"cli": "a command-line program", "http": "an HTTP service"}
COMMENTED = ("problem_keys", "checkpoint_keys")
"""Files of commented-out keys with an example each, which every kind of problem shows in its config.yaml."""
MAX_NAME_LENGTH = 100
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The choices that make a new problem: Python, with two checkpoints."""

    name: str
    kind: str = "cli"
    author: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.kind not in KINDS:
            raise UsageError(f"no kind {self.kind!r}; choose {' or '.join(KINDS)}")
        if not self.author.isprintable():
            raise UsageError("the author's name has characters that cannot be printed; give it in plain text")


def check_name(name: str) -> None:
    """The name becomes a folder, and part of messages."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise UsageError(
            f"{name!r} cannot be the name of a problem; use letters, digits, '_', '.' and '-', "
            f"first a letter or a digit, {MAX_NAME_LENGTH} at most"
        )


def files_of(blueprint: Blueprint) -> dict[str, str]:
    """The text of every file by its path in the problem's folder."""
    root = TEMPLATES / blueprint.kind
    paths = sorted(Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    return {
        path.relative_to(root).as_posix().removesuffix(SUFFIX): _fill(path.read_text(encoding="utf-8"), blueprint)
        for path in paths
    }


def _fill(template: str, blueprint: Blueprint) -> str:
    values = {
        "name": blueprint.name,
        "yaml_name": _yaml(blueprint.name),
        "author": f"author: {_yaml(blueprint.author)}" if blueprint.author else "# author: Your Name # who wrote it",
        **{name: (TEMPLATES / f"{name}.yaml").read_text(encoding="utf-8").rstrip("\n") for name in COMMENTED},
    }
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], template)


def _yaml(text: str) -> str:
    """Quoted where YAML would read it as something else than text."""
    written: str = yaml.safe_dump(text, allow_unicode=True, width=1 << 20)
    return written.removesuffix("\n").removesuffix("\n...")


def free_target(name: str, parent: Path) -> Path:
    """The folder of a new problem; a UsageError where that path exists already."""
    check_name(name)
    target = parent / name
    if os.path.lexists(target):
        raise UsageError(f"{target}: exists already; choose another name, or another --directory")
    return target


def write_problem(blueprint: Blueprint, parent: Path) -> Path:
    """The new folder appears as a whole or not at all, and never replaces anything."""
    target = free_target(blueprint.name, parent)
    try:
        with new_folder(target) as folder:
            for name, text in files_of(blueprint).items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{target}: cannot write the problem there: {error.strerror}; give another folder") from error
    return target
