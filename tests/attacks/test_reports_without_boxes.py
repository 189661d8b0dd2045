"""Without boxes a submission reaches the folder of the reports: the verdict is then its own, the host is not."""

import pytest

from slop_code.attacks.attack import Attack, Effect, Kind
from slop_code.attacks.trial import ours
from slop_code.attacks.world import EARNED, TESTS, lay_problem, opened

CHEAT = """
import os

from kit import world

OUTSIDE, path = world["outside"], ".scbench/{name}"

def cheat(command, rest):
    if command == "upper":
        if os.path.isfile(path):
            os.unlink(path)
        if not os.path.lexists(path):
            {make}
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return lay_problem(tmp_path_factory.mktemp("attacked") / "lines")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("other", "os.mkfifo(path)"),
        ("stream.jsonl", "os.mkfifo(path)"),
        ("pytest-report.json", "os.mkdir(path)"),
        ("pytest-report.json", "os.symlink('nowhere', path)"),
        ("pytest.log", "os.symlink(OUTSIDE, path)"),
        ("pytest.log", "os.symlink(OUTSIDE + '/file', path)"),
    ],
)
def test_what_is_left_among_the_reports(cache, environment_spec, problem, tmp_path, name, make):
    """Nothing is promised for the verdict, but there is one, and the evaluator follows no link."""
    files = {"cheat.py": CHEAT.format(name=name, make=make)}
    attack = Attack(name="left", kind=Kind.REPORTS, goal="be in the way", does=Effect.LOSS, files=files)
    with opened(tmp_path / "world", problem, attack) as world:
        verdict = ours(environment_spec(sandbox="none"), cache)(world, attack)
        assert world.state() == world.before
    assert verdict.total == TESTS
    assert verdict.passed <= EARNED
    assert all(path.is_file() and not path.is_symlink() for path in (world.out / ".scbench").iterdir())
