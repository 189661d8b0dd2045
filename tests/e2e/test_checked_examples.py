"""The examples that ship are sound by the checks, if only a little of each is done."""

import json
from pathlib import Path

import pytest

from slop_code.authoring.check.steps import STEPS
from slop_code.cli.main import run
from slop_code.evaluation import ProblemConfig
from tests.marks import in_long

PROBLEMS = Path(__file__).parents[2] / "examples" / "problems"
STARTING = ["layout", "reference"]
CHECKED = {
    "larder": [*STARTING, "strength", "secrecy"],
    "corkboard": [*STARTING, "stability"],
    "hitcount": [*STARTING, "controls", "limits"],
    "rollcall": [*STARTING, "controls", "secrecy"],
}
"""Each step with the example that has most to offer it: many mutants, a port, no Python, a folder of sources."""


def test_every_step_is_tried():
    assert {step for steps in CHECKED.values() for step in steps} == set(STEPS)
    assert set(CHECKED) == {path.name for path in PROBLEMS.iterdir()}


@pytest.mark.parametrize("name", ["hitcount", *in_long("larder", "corkboard", "rollcall")])
def test_an_example_is_clean(name, cache, need_bubblewrap, need_python, capsys):
    need_bubblewrap()
    if (requires := ProblemConfig.from_yaml(PROBLEMS / name).requires_python) is not None:
        need_python(requires)
    effort = ["-c", "1", "--repeat", "1", "--budget", "2", "--fail-on", "note"]
    steps = [word for step in CHECKED[name] for word in ("--step", step)]
    status = run(["problems", "check", str(PROBLEMS / name), *effort, *steps, "--json"])
    [found] = json.loads(capsys.readouterr().out)["problems"]
    assert found["findings"] == []
    assert [(step["name"], step["broken"], step["blocked"]) for step in found["steps"]] == [
        (name, None, None) for name in CHECKED[name]
    ]
    assert status == 0
