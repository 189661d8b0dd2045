"""Snippets of the documentation: commands run and print what is shown, and files load.

A comment directly above a block says what it is for: `<!-- snippet: file PATH -->` writes it to a file of the
reader's folder, `<!-- snippet: not run, WHY -->` leaves it out, and `<!-- snippet: run by FILE -->` leaves it to
another test, which has the other program that the block needs. A page that writes an environment of type docker is
run where Docker is, with the tests' own image in the place of the reader's.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from slop_code.evaluation.config import ProblemConfig
from slop_code.execution.cache import Cache
from slop_code.execution.environment import EnvironmentSpec
from tests.docs.pages import PAGES, ROOT, Block, blocks, name_of
from tests.marks import in_long
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARK = "@@ snippet"
IMAGE = "larder-python:1"
PORT = "8765"
"""That of the pages; it may be taken on this machine."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a page. Without an expected output it only has to succeed."""

    where: str
    command: str
    output: str | None


def steps(page: Path, staged: Path) -> Iterator[Step]:
    """Everything that a reader does on this page, in order."""
    port = free_port()
    for number, shown in enumerate(blocks(page)):
        block = replace(shown, text=shown.text.replace(PORT, port))
        if not block.is_run:
            continue
        copy = staged / f"{number}.py"
        copy.write_text(block.text, encoding="utf-8")
        if block.file:
            folder = shlex.quote(str(Path(block.file).parent))
            yield Step(str(block), f"mkdir -p {folder} && cp {copy} {shlex.quote(block.file)}", None)
        elif block.language == "bash":
            yield Step(str(block), f"set -e\n{block.text}\nset +e", None)
        elif block.language == "python":
            yield Step(str(block), f"{shlex.quote(sys.executable)} {copy}", None)
        elif block.language == "console":
            yield from console_steps(block)


def console_steps(block: Block) -> Iterator[Step]:
    _, *parts = re.split(r"^\$ ", block.text, flags=re.M)
    for part in parts:
        command, _, output = part.partition("\n")
        yield Step(f"{block} $ {command}", command, output)


def script(todo: list[Step]) -> str:
    """One shell script for the page; `$?` of a command is available to the next one."""
    lines = ["status=0"]
    for number, step in enumerate(todo):
        lines += [f"(exit $status)\n{step.command}", "status=$?", f"printf '\\n{MARK} {number} %s\\n' $status"]
    return "\n".join(lines) + "\n"


def normalise(output: str) -> str:
    """The output without progress lines, addresses, durations and sizes."""
    kept = [line.rstrip() for line in output.splitlines() if not line.startswith("·")]
    text = re.sub(r"0x[0-9a-f]{6,}", "0x0", "\n".join(kept).strip())
    text = re.sub(r"\b\d+ min \d+ s\b", "0.0 s", text)  # on a busy machine
    return re.sub(r"\d+\.\d+ ?(s|ms|MB)\b", r"0.0\1", text) + "\n"


def matches(shown: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(normalise(shown), normalise(printed), doctest.ELLIPSIS)


def run_script(text: str, home: Path) -> str:
    completed = subprocess.run(
        ["bash", "-c", text],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=850,
        check=False,
    )
    return completed.stdout


def environment(home: Path) -> dict[str, str]:
    unwanted = ("SCBENCH_PROBLEMS_DIR", "PYTHON", "PYTEST")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    kept.setdefault("SCBENCH_CACHE_DIR", str(Cache.default().root))  # a page has another default, below /tmp
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    return {**kept, "PATH": path, "TMPDIR": str(home.parent), "COLUMNS": "80", "LC_ALL": "C.UTF-8", "PWD": str(home)}


def needs_docker(page: Path) -> bool:
    return any(block.file and block.text.startswith("type: docker\n") for block in blocks(page))


@contextlib.contextmanager
def readers_image() -> Iterator[None]:
    """The tests' image with Python, under the name that the page uses."""
    subprocess.run(["docker", "tag", os.environ["SLOP_CODE_TEST_IMAGE"], IMAGE], check=True)
    try:
        yield
    finally:
        subprocess.run(["docker", "rmi", "--no-prune", IMAGE], stdout=subprocess.DEVNULL, check=True)


def has_commands(page: Path) -> bool:
    return any(block.language != "text" for block in blocks(page))


@pytest.mark.e2e
@pytest.mark.parametrize(
    "page",
    [page if page.name == "README.md" else in_long(page)[0] for page in PAGES if has_commands(page)],
    ids=name_of,
)
def test_commands_print_what_is_shown(page: Path, tmp_path: Path, need_docker: Callable[[], None]) -> None:
    if needs_docker(page):
        need_docker()
    staged, home = tmp_path / "blocks", tmp_path / "home"
    staged.mkdir()
    home.mkdir()
    shutil.copytree(ROOT / "examples", home / "examples", ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    todo = list(steps(page, staged))
    with readers_image() if needs_docker(page) else contextlib.nullcontext():
        printed = run_script(script(todo), home)
    output, *rest = re.split(rf"^{MARK} (\d+) (\d+)\n", printed, flags=re.M)
    outputs = [output, *rest[2::3]]
    assert [int(number) for number in rest[0::3]] == list(range(len(todo))), printed
    for step, text, status in zip(todo, outputs, rest[1::3], strict=False):
        if step.output is None:
            assert status == "0", f"{step.where}: status {status}\n{text}"
        else:
            assert matches(step.output, text), f"{step.where}\nshown:\n{step.output}\nprinted:\n{text}"


@pytest.mark.parametrize(
    "block", [block for page in PAGES for block in blocks(page) if block.language == "yaml"], ids=str
)
def test_yaml_snippets_load_without_warnings(block: Block, tmp_path: Path) -> None:
    data = yaml.safe_load(block.text)
    file = tmp_path / "config.yaml"
    file.write_text(block.text, encoding="utf-8")
    if block.file and {"apiVersion", "jobs"} & set(data):  # a file for Kubernetes or for a CI service
        return
    if "type" in data:
        assert EnvironmentSpec.from_yaml(file).warnings == ()
        return
    for asset in data.get("static_assets", {}).values():
        (tmp_path / asset["path"]).mkdir(parents=True)
    assert ProblemConfig.from_yaml(tmp_path).warnings == ()
