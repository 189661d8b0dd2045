"""The short version on evaluators of every kind: what is held, what is not, and what nobody can know."""

import tempfile

import pytest

from slop_code.attacks.attack import Attack, AttackKind, Effect, quick_attacks
from slop_code.attacks.attack_host import EARNED, TEST_COUNT, write_problem
from slop_code.attacks.effects import Observation, ObservedVerdict
from slop_code.attacks.trial import NEEDS_BOX, AttackOutcome, AttackState, try_attacks
from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.reporting.attack_lines import ABOUT, as_json, attack_line, state_of, summary

FAIR = ObservedVerdict(EARNED, TEST_COUNT)
PLAIN = Attack(name="plain", kind=AttackKind.REPORTS, goal="be judged better", does=Effect.GAIN)
LOUD = Attack(name="loud", kind=AttackKind.PROCESSES, goal="kill", does=Effect.LOSS, files={"cheat.py": "boxed()\n"})
UNBUILT = Attack(
    name="unbuilt", kind=AttackKind.TREES, goal="be odd", does=Effect.LOSS, build="raise SystemExit('no such file')"
)
OBSERVATION = Observation(Effect.GAIN, "passes test_secret")


def fair(_host, _attack):
    return FAIR


def fooled(_host, attack):
    return ObservedVerdict(EARNED | {"test_secret"}, TEST_COUNT) if attack is PLAIN else FAIR


def unfair(_host, _attack):
    return ObservedVerdict(frozenset({"test_upper"}), TEST_COUNT)


def broken(_host, _attack):
    raise InfrastructureError("no daemon")


@pytest.fixture
def hosts_folder(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


@pytest.mark.parametrize(
    ("evaluator", "boxed", "found"),
    [
        (fair, True, [AttackState.HELD, AttackState.HELD, AttackState.NOT_TRIED]),
        (fair, False, [AttackState.HELD, AttackState.NOT_TRIED, AttackState.NOT_TRIED]),
        (fooled, True, [AttackState.BROKE_THROUGH, AttackState.HELD, AttackState.NOT_TRIED]),
    ],
)
def test_each_attack_has_a_state(hosts_folder, tmp_path, evaluator, boxed, found):
    outcomes = list(try_attacks([PLAIN, LOUD, UNBUILT], evaluator, Cache(tmp_path), boxed=boxed))
    assert [outcome.state for outcome in outcomes] == found
    assert list(hosts_folder.iterdir()) == []


def test_attacks_that_were_not_tried_have_a_reason(hosts_folder, tmp_path):
    (through, _, unbuilt) = try_attacks([PLAIN, LOUD, UNBUILT], fooled, Cache(tmp_path), boxed=True)
    (_, loud, _) = try_attacks([PLAIN, LOUD, UNBUILT], fair, Cache(tmp_path), boxed=False)
    assert through.observations == (OBSERVATION,)
    assert "no such file" in unbuilt.not_tried
    assert loud.not_tried == NEEDS_BOX


@pytest.mark.parametrize(("evaluator", "why"), [(unfair, "fails test_given, test_last"), (broken, "no daemon")])
def test_nothing_is_tried_where_honest_work_cannot_be_judged(hosts_folder, tmp_path, evaluator, why):
    with pytest.raises(InfrastructureError, match=f"^an honest submission cannot be judged here: {why}$"):
        list(try_attacks([PLAIN], evaluator, Cache(tmp_path), boxed=True))
    assert list(hosts_folder.iterdir()) == []


def test_nothing_is_left_behind_by_one_that_is_interrupted(hosts_folder, tmp_path):
    """Its staged tests are forgotten, and those of others are not."""
    cache = Cache(tmp_path / "cache")
    entries = [cache.root / "tests" / name / "tests/expected" for name in ("own", "other")]
    for entry in entries:
        entry.mkdir(parents=True)
        (entry / "out.txt").write_text("another secret\n")
    (cache.root / "tests/.own.lock").touch()

    def staging(host, _attack):
        (entries[0] / "out.txt").write_bytes((host.problem.path / "tests/expected/out.txt").read_bytes())
        return FAIR

    tried = try_attacks([PLAIN, PLAIN], staging, cache, boxed=True)
    next(tried)
    assert len(list(hosts_folder.iterdir())) == 1
    tried.close()
    assert list(hosts_folder.iterdir()) == []
    assert [path.name for path in (cache.root / "tests").iterdir()] == ["other"]


@pytest.mark.parametrize(
    ("states", "together"),
    [
        ([AttackState.HELD], AttackState.HELD),
        ([AttackState.HELD, AttackState.NOT_TRIED], AttackState.NOT_TRIED),
        ([AttackState.NOT_TRIED, AttackState.BROKE_THROUGH, AttackState.HELD], AttackState.BROKE_THROUGH),
    ],
)
def test_held_is_what_was_held_every_time(states, together):
    made = {
        AttackState.HELD: {},
        AttackState.BROKE_THROUGH: {"observations": (OBSERVATION,)},
        AttackState.NOT_TRIED: {"not_tried": "why"},
    }
    assert state_of([AttackOutcome(PLAIN, **made[state]) for state in states]) is together


def test_lines_and_json_of_an_outcome():
    assert attack_line(AttackOutcome(PLAIN)) == "held         reports        be judged better"
    assert (
        attack_line(AttackOutcome(PLAIN, (OBSERVATION,)))
        == "GOT THROUGH  reports        be judged better: passes test_secret"
    )
    assert (
        attack_line(AttackOutcome(LOUD, not_tried="\x1b[2J\n  why")) == "not tried    processes      kill: \\x1b[2J why"
    )
    lines = [text for text, _ in summary("local", [AttackOutcome(PLAIN, (OBSERVATION,)), AttackOutcome(LOUD)])]
    assert lines == [
        f"is NOT held   {ABOUT[AttackKind.REPORTS]}",
        f"is held       {ABOUT[AttackKind.PROCESSES]}",
        "local: 2 attacks: 1 held, 1 got through, 0 not tried",
    ]
    found = as_json("local", [AttackOutcome(PLAIN, (OBSERVATION,)), AttackOutcome(LOUD, not_tried="why")])
    assert found["kinds"] == {"reports": "got through", "processes": "not tried"}
    assert found["attacks"][0]["observations"] == [{"effect": "gain", "detail": "passes test_secret"}]
    assert [entry["not_tried"] for entry in found["attacks"]] == [None, "why"]


def test_every_kind_has_words_and_an_attack():
    assert set(ABOUT) == set(AttackKind) == {attack.kind for attack in quick_attacks()}


def test_a_corpus_that_is_not_whole_is_an_error(tmp_path):
    with pytest.raises(InfrastructureError, match="no attacks of configuration, startup"):
        quick_attacks(tmp_path)
    for attack in quick_attacks():
        if attack.kind is not AttackKind.NETWORK:
            (tmp_path / attack.kind).mkdir(exist_ok=True)
            (tmp_path / attack.kind / "one.yaml").write_text("{goal: none, does: gain, quick: true}")
    with pytest.raises(InfrastructureError, match="no attacks of network; reinstall slop-code"):
        quick_attacks(tmp_path)


def test_every_problem_has_new_secrets(tmp_path):
    problems = [write_problem(tmp_path / name) for name in ("one", "other")]
    first, second = [(problem.path / "tests/expected/out.txt").read_text() for problem in problems]
    assert first != second
