"""Attack corpus in every sandbox: each submission is the same poor program with one attack on top."""

from __future__ import annotations

from functools import partial

import pytest

from slop_code.attacks.attack import Attack, AttackKind, Effect, quick_attacks, read_corpus
from slop_code.attacks.attack_host import write_problem
from slop_code.attacks.trial import HONEST, slop_code_evaluator, try_attack
from slop_code.evaluation import CorrectnessResults
from slop_code.execution.bubblewrap import box_arguments, bubblewrap_sandbox
from slop_code.execution.bubblewrap.cgroups import control_groups
from slop_code.execution.templates import TemplatePool
from tests.attacks.boxed_naive_evaluator import boxed_naive_evaluator
from tests.attacks.rendered_results import with_rendered_results
from tests.conftest import OTHER_ENGINE
from tests.marks import in_long

pytestmark = pytest.mark.e2e

CORPUS = read_corpus()
BY_NAME = {attack.name: attack for attack in CORPUS}
QUICK = {attack.name for attack in quick_attacks()}
HARMLESS_IN_GVISOR = {
    "descriptors_of_others": "the links of process 1 can be listed, and neither its pipes nor its sockets be opened",
    "kernel_interfaces": "/dev/fuse can be opened, of the subject's own kernel, which lets it mount nothing",
    "memory_of_page_tables": "its kernel does not say how large they are; the container's own limit holds them",
    "memory_without_leader": "its kernel does not say what such a process has; the container's own limit holds it",
}
"""Attacks that gVisor lets get as far as they look."""

SHOWN = [attack.name for attack in CORPUS if not attack.unshown]


FIRST = [
    next(attack.name for attack in CORPUS if attack.quick and attack.kind is kind and not attack.environment)
    for kind in AttackKind
    if kind is not AttackKind.EXHAUSTION
]
"""A quick attack of each kind but exhaustion, whose limits would need another template."""

FORKED = ("collected", None)
FOR_ODD_TREES = ("cold", "the submission is too large, or has special files")

OTHERS = {
    kind: [attack.name for attack in CORPUS if attack.kind is kind and attack.name not in FIRST] for kind in AttackKind
}


def first_and_others(first):
    """`make test` tries the first, `make long` the others."""
    chosen = [name for name in BY_NAME if name in first]
    return [*chosen, *in_long(*(name for name in BY_NAME if name not in first))]


@pytest.fixture
def evaluator(cache, environment_spec, need):
    def choose(sandbox):
        need(sandbox)
        return with_rendered_results(slop_code_evaluator(environment_spec(sandbox=sandbox), cache))

    return choose


@pytest.mark.parametrize("sandbox", in_long("docker", "runsc", "none", *OTHER_ENGINE))
def test_the_base_program_has_no_effect(evaluator, problem, tmp_path, sandbox):
    """The base case: without an attack there is no effect. The fixture `forking` tries it in bubblewrap's boxes."""
    assert try_attack(HONEST, evaluator(sandbox), problem, tmp_path) == ()


def test_the_base_program_has_no_effect_on_the_naive_evaluator(need_bubblewrap, problem, tmp_path):
    need_bubblewrap()
    assert try_attack(HONEST, boxed_naive_evaluator, problem, tmp_path) == ()


@pytest.mark.parametrize("sandbox", ["bubblewrap", *in_long("docker", "runsc", *OTHER_ENGINE)])
@pytest.mark.parametrize("name", first_and_others(QUICK))
def test_an_attack_is_held(evaluator, problem, tmp_path, name, sandbox):
    if sandbox == "runsc" and name in HARMLESS_IN_GVISOR:
        pytest.skip(HARMLESS_IN_GVISOR[name])
    assert try_attack(BY_NAME[name], evaluator(sandbox), problem, tmp_path) == ()


@pytest.fixture(scope="module")
def forking(cache, environment_spec, need_bubblewrap, problem, tmp_path_factory):
    """An evaluator whose judges are forked from one template, which two evaluations have made it start."""
    need_bubblewrap()
    with TemplatePool() as templates:
        evaluator = slop_code_evaluator(environment_spec(sandbox="bubblewrap"), cache, templates=templates)
        for _ in range(2):
            assert try_attack(HONEST, evaluator, problem, tmp_path_factory.mktemp("honest")) == ()
        yield evaluator


@pytest.mark.parametrize("names", [FIRST, *in_long(*OTHERS.values())], ids=["first", *OTHERS])
def test_attacks_are_held_by_forked_judges(forking, problem, tmp_path, names):
    """Effects that an attack leaves in the template show in the next attack, or in the honest program at the end."""
    tried = {name: try_attack(BY_NAME[name], forking, problem, tmp_path) for name in names}
    tried["honest"] = try_attack(HONEST, forking, problem, tmp_path)
    assert {name: observations for name, observations in tried.items() if observations} == {}
    of_template = [name for name in tried if name == "honest" or not BY_NAME[name].environment]
    results = {name: CorrectnessResults.load(tmp_path / name / "out/evaluation.json") for name in of_template}
    judges = {
        name: (result.isolation["judge"], result.isolation.get("judge_reason")) for name, result in results.items()
    }
    assert {name: judge for name, judge in judges.items() if judge not in (FORKED, FOR_ODD_TREES)} == {}
    assert judges["honest"] == FORKED


UNCOUNTED = ("memory_without_leader", "memory_files_without_leader", "memory_of_page_tables")


@pytest.mark.parametrize("name", ["memory", "processes", *UNCOUNTED, *in_long("memory_of_nobody", "threads")])
def test_an_attack_is_held_without_control_groups(evaluator, problem, tmp_path, monkeypatch, name):
    """Ordinary users, and root in many containers, have no control groups: the box init enforces the limits then."""
    monkeypatch.setattr(bubblewrap_sandbox, "control_groups", partial(control_groups, root=tmp_path))
    assert try_attack(BY_NAME[name], evaluator("bubblewrap"), problem, tmp_path / "tried") == ()


@pytest.mark.long
@pytest.mark.parametrize("name", SHOWN)
def test_an_attack_works_on_the_naive_evaluator(need_bubblewrap, tmp_path, name):
    """Without defences it has its effect; an attack that races may need several tries."""
    need_bubblewrap()
    problem = write_problem(tmp_path / "lines")  # its own: attacks can write to it here
    seen = []
    for number in range(5):
        seen += try_attack(BY_NAME[name], boxed_naive_evaluator, problem, tmp_path / str(number))
        if BY_NAME[name].does in {observation.effect for observation in seen}:
            break
    else:
        pytest.fail(f"without effect: {seen}")
    assert list(tmp_path.glob("*/*/workspace/broke.txt")) == [], "a program that only crashed shows nothing"


def test_files_of_the_box_init_are_writable_without_its_protection(evaluator, problem, tmp_path, monkeypatch):
    """The naive evaluator has no box init, so the protection itself is switched off; only the host's root needs it."""
    monkeypatch.setattr(box_arguments, "HIDE_PID_1", [])
    monkeypatch.setattr(bubblewrap_sandbox, "box_user", lambda _: None)
    (observation,) = try_attack(BY_NAME["files_of_the_box_init"], evaluator("bubblewrap"), problem, tmp_path)
    assert observation.effect is Effect.GAIN


def test_an_attack_that_crashes_is_not_held(forking, problem, tmp_path):
    files = {"cheat.py": "def cheat(command, rest):\n    command == 'claim' and missing()\n"}
    attack = Attack(name="crash", kind=AttackKind.SECRETS, goal="crash", does=Effect.GAIN, files=files)
    (observation,) = try_attack(attack, forking, problem, tmp_path)
    assert (observation.effect, observation.detail) == (Effect.LOSS, "fails test_last")


def test_the_corpus_has_every_kind_and_unique_names():
    assert len(CORPUS) >= 60
    assert len(BY_NAME) == len(CORPUS), "a name stands for one attack"
    assert {attack.kind for attack in CORPUS} == set(AttackKind)
    assert {attack.kind for attack in quick_attacks()} == set(AttackKind)
