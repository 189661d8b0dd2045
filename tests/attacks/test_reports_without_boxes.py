"""Reports folder without boxes: the submission can forge the verdict there, but cannot reach the host through it."""

import pytest

from slop_code.attacks.attack import Attack, AttackKind, Effect
from slop_code.attacks.attack_host import EARNED, TEST_COUNT, open_host
from slop_code.attacks.trial import slop_code_evaluator
from tests.marks import in_long

REPORTS = {
    "ctrf-report.json", "exit.json", "inputs.json", "pytest-report.json", "pytest.log", "roster.json", "stream.jsonl",
}  # fmt: skip
CHEAT = """
import os

from kit import host

OUTSIDE, path = host["outside"], ".scbench/{name}"

def cheat(command, rest):
    if command == "upper":
        if os.path.isfile(path):
            os.unlink(path)
        if not os.path.lexists(path):
            {make}
"""


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("stream.jsonl", "os.mkfifo(path)"),
        ("pytest.log", "os.symlink(OUTSIDE + '/file', path)"),
        *in_long(
            ("other", "os.mkfifo(path)"),
            ("pytest-report.json", "os.mkdir(path)"),
            ("pytest-report.json", "os.symlink('nowhere', path)"),
            ("pytest.log", "os.symlink(OUTSIDE, path)"),
        ),
    ],
)
def test_only_regular_files_are_stored_of_the_reports(cache, environment_spec, problem, tmp_path, name, make):
    """Nothing is promised for the verdict, but there is one, and the evaluator follows no link.

    The log is the evaluator's own, so it is stored in any case.
    """
    files = {"cheat.py": CHEAT.format(name=name, make=make)}
    attack = Attack(name="left", kind=AttackKind.REPORTS, goal="be in the way", does=Effect.LOSS, files=files)
    with open_host(tmp_path / "host", problem, attack) as host:
        verdict = slop_code_evaluator(environment_spec(sandbox="none"), cache)(host, attack)
        assert host.state() == host.state_before
    assert verdict.total == TEST_COUNT
    assert verdict.passed <= EARNED
    stored = list((host.output / ".scbench").iterdir())
    assert {path.name for path in stored} == REPORTS - ({name} - {"pytest.log"})
    assert all(path.is_file() and not path.is_symlink() for path in stored)
