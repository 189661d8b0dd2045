"""Miniature problems, sound unless something is laid over them, and the bench they are tried out on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from slop_code.authoring.check.steps import check_step
from slop_code.authoring.check.strength.mutant import parse_budget
from slop_code.authoring.check.workbench import Effort, Workbench
from slop_code.authoring.problem_folders import environment_for
from slop_code.evaluation import ProblemConfig
from tests.conftest import PROBLEM_CONFTEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SOUND = {
    "config.yaml": """\
name: shout
version: 1
description: Prints its arguments in capitals.
tags: [cli]
entry_file: main
timeout: 10
checkpoints:
  checkpoint_1:
    order: 1
""",
    "checkpoint_1.md": "main.py prints its arguments in capitals. Without any it complains and ends with status 2.\n",
    "tests/test_checkpoint_1.py": """\
import pytest


def test_one_word(run):
    assert run("hello").stdout == "HELLO\\n"


@pytest.mark.functionality
def test_several_words(run):
    assert run("hello", "you").stdout == "HELLO YOU\\n"


@pytest.mark.error
def test_no_words(run):
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "shout: no words\\n")
""",
    "tests/conftest.py": PROBLEM_CONFTEST,
    "solutions/checkpoint_1/main.py": """\
import sys

if len(sys.argv) == 1:
    print("shout: no words", file=sys.stderr)
    sys.exit(2)
print(" ".join(sys.argv[1:]).upper())
""",
}


def lay_over(folder: Path, *overlays: Mapping[str, str | None]) -> Path:
    """The sound problem with these files instead, one after the other; None takes one away."""
    files: dict[str, str | None] = dict(SOUND)
    for overlay in overlays:
        files |= overlay
    for name, text in files.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def authored(tmp_path: Path) -> Callable[..., Path]:
    """`authored({"tests/test_checkpoint_1.py": "...", "checkpoint_1.md": None})`: the folder of a problem."""
    return lambda *overlays: lay_over(tmp_path / "shout", *overlays)


@pytest.fixture
def bench(authored: Callable[..., Path]) -> Callable[..., Workbench]:
    """`bench(overlay, repeat=2)`: a workbench of such a problem. What evaluates on it asks for `cache`, too."""

    def make(*overlays: Mapping[str, str | None], **effort: Any) -> Workbench:
        problem = ProblemConfig.from_yaml(authored(*overlays))
        if "budget" in effort:
            effort["budget"] = parse_budget(effort["budget"])
        return Workbench(problem, environment_for(problem, None), effort=Effort(**effort))

    return make


@pytest.fixture
def found(bench: Callable[..., Workbench]) -> Callable[..., list[tuple[str, str]]]:
    """`found(overlay)`: rule and location of each finding of the layout step."""

    def check(*overlays: Mapping[str, str | None]) -> list[tuple[str, str]]:
        report = check_step(bench(*overlays), "layout")
        return [(one.rule.id, str(one.location)) for one in report.outcome.findings]

    return check
