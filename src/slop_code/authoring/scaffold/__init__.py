"""What `problems new` writes: a small working problem, to be changed into another one."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from slop_code.errors import UsageError
from slop_code.execution.cache import remove_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATES = Path(__file__).parent
SUFFIX = ".tmpl"
MOST_CHECKPOINTS = 9
LONGEST_NAME = 100
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
NUMBERED = re.compile(r"checkpoint_(\d)")
BLOCK = re.compile(r"@@ from (\d)\n(.*?)@@ end\n", re.DOTALL)
"""Lines of a reference that it has from a checkpoint on."""


@dataclass(frozen=True, slots=True)
class Language:
    program: str
    suffix: str
    package: str | None = None
    """What Debian calls it, where it may be missing."""


KINDS = {"cli": "a command-line program", "http": "an HTTP service"}
LANGUAGES = {
    "python": Language("python", "py"),
    "shell": Language("sh", "sh"),
    "javascript": Language("node", "js", "nodejs"),
}


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What a new problem shall be."""

    name: str
    kind: str = "cli"
    checkpoints: int = 2
    language: str = "python"
    author: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.kind not in KINDS:
            raise UsageError(f"no kind {self.kind!r}; there are {', '.join(KINDS)}")
        if self.language not in LANGUAGES:
            raise UsageError(f"no language {self.language!r}; there are {', '.join(LANGUAGES)}")
        if not 1 <= self.checkpoints <= MOST_CHECKPOINTS:
            raise UsageError(f"{self.checkpoints} checkpoints; give a number from 1 to {MOST_CHECKPOINTS}")
        if not has_templates(self.kind, self.language):
            able = [language for language in LANGUAGES if has_templates(self.kind, language)]
            raise UsageError(
                f"a plain {self.language} script cannot be {KINDS[self.kind]}: it cannot listen on a port; "
                f"choose {' or '.join(able)}"
            )
        if not self.author.isprintable():
            raise UsageError("the author's name has characters that cannot be printed; give it in plain text")


def check_name(name: str) -> None:
    """As a folder and in messages."""
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f"{name!r} is no name for a problem; use letters, digits, '_', '.' and '-', "
            f"first a letter or a digit, {LONGEST_NAME} at most"
        )


def has_templates(kind: str, language: str) -> bool:
    return (TEMPLATES / kind / language).is_dir()


def files_of(blueprint: Blueprint) -> dict[str, str]:
    """Every file of the problem by its path in the problem's folder."""
    words = _words(blueprint)
    root, last = TEMPLATES / blueprint.kind, blueprint.checkpoints
    files = {}
    for path, template in _templates(root):
        folder = path.partition("/")[0]
        found = NUMBERED.search(path)
        if folder not in LANGUAGES and (found is None or int(found[1]) <= last):
            files[path] = _fill(template, last, words)
        if folder == blueprint.language:
            for number in range(1, last + 1):
                solution = path.replace(folder, f"solutions/checkpoint_{number}", 1)
                files[solution] = _fill(template, number, words)
    shared = [".gitignore"] if blueprint.language == "python" else [".gitignore", "environment.yaml"]
    for name in shared:
        files[name] = _fill((TEMPLATES / f"{name}{SUFFIX}").read_text(encoding="utf-8"), last, words)
    return dict(sorted(files.items()))


def _templates(root: Path) -> list[tuple[str, str]]:
    found = (Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    return [
        (path.relative_to(root).as_posix().removesuffix(SUFFIX), path.read_text(encoding="utf-8"))
        for path in sorted(found)
    ]


def _fill(template: str, checkpoint: int, words: Mapping[str, str]) -> str:
    text = BLOCK.sub(lambda block: block[2] if int(block[1]) <= checkpoint else "", template)
    return re.sub(r"@(\w+)@", lambda word: words[word[1]], text)


def _words(blueprint: Blueprint) -> dict[str, str]:
    language = LANGUAGES[blueprint.language]
    entry = f"main.{language.suffix}"
    checkpoints = [
        f"  checkpoint_{number}:\n    version: 1\n    order: {number}\n    state: Draft"
        for number in range(1, blueprint.checkpoints + 1)
    ]
    return {
        "name": blueprint.name,
        "yaml_name": _yaml(blueprint.name),
        "author": f"author: {_yaml(blueprint.author)}\n" if blueprint.author else "",
        "entry": entry,
        "command": f"{language.program} {entry}",
        "program": language.program,
        "suffix": language.suffix,
        "language": blueprint.language,
        "checkpoints": "\n".join(["checkpoints:", *checkpoints]),
    }


def _yaml(text: str) -> str:
    """Quoted where YAML would take it for something else."""
    written: str = yaml.safe_dump(text, allow_unicode=True, width=1 << 20)
    return written.removesuffix("\n").removesuffix("\n...")


def free_target(name: str, parent: Path) -> Path:
    """Where a problem of this name goes; refused where there is something."""
    check_name(name)
    target = parent / name
    if os.path.lexists(target):
        raise UsageError(f"{target}: there is something already; choose another name, or another --directory")
    return target


def write_problem(blueprint: Blueprint, parent: Path) -> Path:
    """The new folder; it appears as a whole or not at all, and never in the place of something else."""
    target = free_target(blueprint.name, parent)
    scratch = parent / f".{blueprint.name}.{secrets.token_hex(8)}"
    try:
        for name, text in files_of(blueprint).items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        os.rename(scratch, target)
    except OSError as error:
        raise UsageError(f"{target}: the problem cannot be written there: {error.strerror}") from error
    finally:
        if os.path.lexists(scratch):
            remove_tree(scratch)
    return target
