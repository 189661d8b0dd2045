"""The short version on evaluators of every kind: what is held, what is not, and what nobody can know."""

import tempfile

import pytest

from slop_code.attacks.attack import Attack, Effect, Kind
from slop_code.attacks.seen import Sight, Verdict
from slop_code.attacks.short import NO_BOX, Outcome, State, short_corpus, try_all
from slop_code.attacks.world import EARNED, TESTS, lay_problem
from slop_code.errors import InfrastructureError
from slop_code.execution.cache import Cache
from slop_code.reporting.attack_lines import ABOUT, as_json, attack_line, state_of, summary

FAIR = Verdict(EARNED, TESTS)
PLAIN = Attack(name="plain", kind=Kind.REPORTS, goal="be judged better", does=Effect.GAIN)
LOUD = Attack(name="loud", kind=Kind.PROCESSES, goal="kill", does=Effect.LOSS, files={"cheat.py": "boxed()\n"})
UNBUILT = Attack(
    name="unbuilt", kind=Kind.TREES, goal="be odd", does=Effect.LOSS, build="raise SystemExit('no such file')"
)
SIGHT = Sight(Effect.GAIN, "passes test_secret")


def fair(_world, _attack):
    return FAIR


def fooled(_world, attack):
    return Verdict(EARNED | {"test_secret"}, TESTS) if attack is PLAIN else FAIR


def unfair(_world, _attack):
    return Verdict(frozenset({"test_upper"}), TESTS)


def broken(_world, _attack):
    raise InfrastructureError("no daemon")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


@pytest.mark.parametrize(
    ("evaluator", "boxed", "found"),
    [
        (fair, True, [State.HELD, State.HELD, State.UNTRIED]),
        (fair, False, [State.HELD, State.UNTRIED, State.UNTRIED]),
        (fooled, True, [State.THROUGH, State.HELD, State.UNTRIED]),
    ],
)
def test_what_is_known(place, tmp_path, evaluator, boxed, found):
    outcomes = list(try_all([PLAIN, LOUD, UNBUILT], evaluator, Cache(tmp_path), boxed=boxed))
    assert [outcome.state for outcome in outcomes] == found
    assert list(place.iterdir()) == []


def test_the_reasons(place, tmp_path):
    (through, _, unbuilt) = try_all([PLAIN, LOUD, UNBUILT], fooled, Cache(tmp_path), boxed=True)
    (_, loud, _) = try_all([PLAIN, LOUD, UNBUILT], fair, Cache(tmp_path), boxed=False)
    assert through.sights == (SIGHT,)
    assert "no such file" in unbuilt.untried
    assert loud.untried == NO_BOX


@pytest.mark.parametrize(("evaluator", "why"), [(unfair, "fails test_given, test_last"), (broken, "no daemon")])
def test_nothing_is_tried_where_honest_work_cannot_be_judged(place, tmp_path, evaluator, why):
    with pytest.raises(InfrastructureError, match=f"^an honest submission cannot be judged here: {why}$"):
        list(try_all([PLAIN], evaluator, Cache(tmp_path), boxed=True))
    assert list(place.iterdir()) == []


def test_nothing_is_left_behind_by_one_that_is_interrupted(place, tmp_path):
    """Its staged tests are forgotten, and those of others are not."""
    cache = Cache(tmp_path / "cache")
    entries = [cache.root / "tests" / name / "tests/expected" for name in ("own", "other")]
    for entry in entries:
        entry.mkdir(parents=True)
        (entry / "out.txt").write_text("another secret\n")
    (cache.root / "tests/.own.lock").touch()

    def staging(world, _attack):
        (entries[0] / "out.txt").write_bytes((world.problem.path / "tests/expected/out.txt").read_bytes())
        return FAIR

    tried = try_all([PLAIN, PLAIN], staging, cache, boxed=True)
    next(tried)
    assert len(list(place.iterdir())) == 1
    tried.close()
    assert list(place.iterdir()) == []
    assert [path.name for path in (cache.root / "tests").iterdir()] == ["other"]


@pytest.mark.parametrize(
    ("states", "together"),
    [
        ([State.HELD], State.HELD),
        ([State.HELD, State.UNTRIED], State.UNTRIED),
        ([State.UNTRIED, State.THROUGH, State.HELD], State.THROUGH),
    ],
)
def test_held_is_what_was_held_every_time(states, together):
    made = {State.HELD: {}, State.THROUGH: {"sights": (SIGHT,)}, State.UNTRIED: {"untried": "why"}}
    assert state_of([Outcome(PLAIN, **made[state]) for state in states]) is together


def test_what_is_told():
    assert attack_line(Outcome(PLAIN)) == "held         reports        be judged better"
    assert attack_line(Outcome(PLAIN, (SIGHT,))) == "GOT THROUGH  reports        be judged better: passes test_secret"
    assert attack_line(Outcome(LOUD, untried="\x1b[2J\n  why")) == "not tried    processes      kill: \\x1b[2J why"
    lines = [text for text, _ in summary("local", [Outcome(PLAIN, (SIGHT,)), Outcome(LOUD)])]
    assert lines == [
        f"is NOT held   {ABOUT[Kind.REPORTS]}",
        f"is held       {ABOUT[Kind.PROCESSES]}",
        "local: 2 attacks: 1 held, 1 got through, 0 not tried",
    ]
    found = as_json("local", [Outcome(PLAIN, (SIGHT,)), Outcome(LOUD, untried="why")])
    assert found["kinds"] == {"reports": "got through", "processes": "not tried"}
    assert found["attacks"][0]["seen"] == [{"effect": "gain", "what": "passes test_secret"}]
    assert [one["untried"] for one in found["attacks"]] == [None, "why"]


def test_every_kind_has_words_and_an_attack():
    assert set(ABOUT) == set(Kind) == {attack.kind for attack in short_corpus()}


def test_a_corpus_that_is_not_whole_is_an_error(tmp_path):
    with pytest.raises(InfrastructureError, match="no attacks of configuration, startup"):
        short_corpus(tmp_path)
    for attack in short_corpus():
        if attack.kind is not Kind.NETWORK:
            (tmp_path / attack.kind).mkdir(exist_ok=True)
            (tmp_path / attack.kind / "one.yaml").write_text("{goal: none, does: gain}")
    with pytest.raises(InfrastructureError, match="no attacks of network; install slop-code anew"):
        short_corpus(tmp_path)


def test_secrets_are_fresh(tmp_path):
    problems = [lay_problem(tmp_path / name) for name in ("one", "other")]
    first, second = [(problem.path / "tests/expected/out.txt").read_text() for problem in problems]
    assert first != second
