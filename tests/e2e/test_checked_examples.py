"""The examples that ship are sound by every check, if only a little of each is done."""

import json
from pathlib import Path

import pytest

from slop_code.authoring.check import STEPS
from slop_code.cli.main import run

PROBLEMS = Path(__file__).parents[2] / "examples" / "problems"


@pytest.mark.parametrize("name", ["corkboard", "hitcount", "larder"])
def test_an_example_is_clean(name, cache, need_bubblewrap, capsys):
    need_bubblewrap()
    effort = ["-c", "1", "--repeat", "1", "--budget", "1", "--fail-on", "note"]
    status = run(["problems", "check", str(PROBLEMS / name), *effort, "--json"])
    [found] = json.loads(capsys.readouterr().out)["problems"]
    assert found["findings"] == []
    assert [(step["name"], step["broken"], step["blocked"]) for step in found["steps"]] == [
        (name, None, None) for name in STEPS
    ]
    assert status == 0
