"""Hostile submissions: each is the same poor program with one attack on top, and every sandbox holds it.

An attack is a file `corpus/KIND/NAME.yaml`, here or, for the short version, in the package.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from slop_code.attacks.attack import SHORT, Attack, Effect, Kind, read_corpus
from slop_code.attacks.trial import HONEST, ours, try_attack
from slop_code.attacks.world import lay_problem
from slop_code.execution.bubblewrap import boxes as bubblewrap
from slop_code.execution.bubblewrap.cgroups import control_groups
from tests.attacks.careless import careless
from tests.attacks.rendering import rendering

pytestmark = pytest.mark.e2e

CORPUS = read_corpus(SHORT, Path(__file__).parent / "corpus")
BY_NAME = {attack.name: attack for attack in CORPUS}
SHOWN = [attack.name for attack in CORPUS if not attack.unshown]


@pytest.fixture(scope="session")
def problem(tmp_path_factory):
    return lay_problem(tmp_path_factory.mktemp("attacked") / "lines")


@pytest.fixture
def evaluator(cache, environment_spec, need):
    def choose(sandbox):
        need(sandbox)
        return rendering(ours(environment_spec(sandbox=sandbox), cache))

    return choose


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker", "none"])
def test_the_poor_program(evaluator, problem, tmp_path, sandbox):
    """The others mean something: without an attack nothing is seen."""
    assert try_attack(HONEST, evaluator(sandbox), problem, tmp_path) == ()


def test_the_poor_program_where_nothing_is_held(need_bubblewrap, problem, tmp_path):
    need_bubblewrap()
    assert try_attack(HONEST, careless, problem, tmp_path) == ()


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker"])
@pytest.mark.parametrize("name", BY_NAME)
def test_it_is_held(evaluator, problem, tmp_path, name, sandbox):
    assert try_attack(BY_NAME[name], evaluator(sandbox), problem, tmp_path) == ()


@pytest.mark.parametrize("name", ["memory", "memory_of_nobody", "processes", "threads"])
def test_it_is_held_without_control_groups(evaluator, problem, tmp_path, monkeypatch, name):
    """An ordinary user has none, nor has root in many containers: the box's own watch does it then."""
    monkeypatch.setattr(bubblewrap, "control_groups", partial(control_groups, root=tmp_path))
    assert try_attack(BY_NAME[name], evaluator("bubblewrap"), problem, tmp_path / "tried") == ()


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_a_real_one(need_bubblewrap, problem, tmp_path, name):
    """Where nothing holds it, it does what it is for; one that races may need some tries."""
    need_bubblewrap()
    tries = (try_attack(BY_NAME[name], careless, problem, tmp_path / str(number)) for number in range(5))
    assert any(BY_NAME[name].does in {sight.effect for sight in found} for found in tries)
    assert list(tmp_path.glob("*/*/workspace/broke.txt")) == [], "a program that only crashed shows nothing"


def test_files_of_the_supervisor_are_there_to_be_written(evaluator, problem, tmp_path, monkeypatch):
    """Process 1 of the box is ours, and none that a careless evaluator would have."""
    monkeypatch.setattr(bubblewrap, "SUPERVISOR", [])
    (sight,) = try_attack(BY_NAME["files_of_the_supervisor"], evaluator("bubblewrap"), problem, tmp_path)
    assert sight.effect is Effect.GAIN


def test_an_attack_that_crashes_is_not_held(evaluator, problem, tmp_path):
    files = {"cheat.py": "def cheat(command, rest):\n    command == 'claim' and missing()\n"}
    attack = Attack(name="crash", kind=Kind.SECRETS, goal="crash", does=Effect.GAIN, files=files)
    (sight,) = try_attack(attack, evaluator("bubblewrap"), problem, tmp_path)
    assert (sight.effect, sight.what) == (Effect.LOSS, "fails test_last")


def test_the_corpus():
    assert len(CORPUS) >= 60
    assert len(BY_NAME) == len(CORPUS), "a name stands for one attack"
    assert {attack.kind for attack in CORPUS} == set(Kind)
    assert {attack.kind for attack in read_corpus(SHORT)} == set(Kind)
