"""Cases of the soak test: the examples, with submissions that pass, fail in part and fail altogether."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from slop_code.evaluation import ProblemConfig
from slop_code.execution import EnvironmentSpec
from slop_code.execution.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from slop_code.execution.cache import Cache
from tests.conftest import SANDBOXES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = ("hitcount-1-reference", "hitcount-2-before", "corkboard-1-reference", "larder-1-reference")
"""Of every such example something that is judged in a moment: what 50 times over fits into a pause."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    problem: ProblemConfig
    checkpoint: str
    submission: Path
    kind: str = ""
    """A `reference` has to pass everything and an `empty` submission nothing; of others nothing is known."""


def all_cases(empty: Path) -> list[Case]:
    """`empty`: a folder without a file. References, the ones of the checkpoint before, nothing, and recorded runs.

    A problem that requires a Python is left out: neither the test image nor every machine has it.
    """
    found = []
    for folder in sorted((EXAMPLES / "problems").iterdir()):
        problem = ProblemConfig.from_yaml(folder)
        if problem.requires_python is not None:
            continue
        before = None
        for number, (checkpoint, _) in enumerate(problem.iterate_checkpoint_items(), start=1):
            own = folder / "solutions" / checkpoint
            runs = (EXAMPLES / "runs").glob(f"*/{problem.name}/{checkpoint}/snapshot")
            submissions = {"reference": own, "before": before, "empty": empty}
            submissions |= {path.parents[2].name: path for path in sorted(runs)}
            found += [
                Case(f"{problem.name}-{number}-{kind}", problem, checkpoint, path, kind)
                for kind, path in submissions.items()
                if path
            ]
            before = own
    return found


def chosen(cases: Sequence[Case], words: str) -> list[Case]:
    """`words` is `small`, `all`, or names with commas between them. Those that are not there are a KeyError."""
    if words == "all":
        return list(cases)
    by_name = {case.name: case for case in cases}
    return [by_name[name] for name in (SMALL if words == "small" else words.split(","))]


def environment_for(problem: ProblemConfig, sandbox: str) -> EnvironmentSpec:
    """The problem's own, in another sandbox."""
    path = problem.path / "environment.yaml"
    own: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return EnvironmentSpec.model_validate({"name": "soak", **own, "isolation": "strict", **SANDBOXES[sandbox]})


def no_bubblewrap() -> str | None:
    return BubblewrapSandbox(
        EnvironmentSpec.model_validate({"name": "soak", "type": "local"}), Cache.default()
    ).unavailable_reason()


def no_docker() -> str | None:
    if "SLOP_CODE_TEST_IMAGE" in os.environ:
        return None
    return os.environ.get("SLOP_CODE_TEST_NO_DOCKER", "no Docker: run it through tests/with_docker.py")


MISSING: dict[str, Callable[[], str | None]] = {
    "none": lambda: None,
    "bubblewrap": no_bubblewrap,
    "docker": no_docker,
}
"""Why a sandbox cannot be had here."""
