"""Facts about the agent, from files that may hold anything."""

import json

import pytest

from slop_code.runs.scb.agent_facts import AgentFacts, AgentIdentity, read_agent_facts, read_agent_identity
from tests.scb_run import AGENT, MODEL, PROMPT, THINKING, write_scb_run

HUGE = 10**400


def test_facts_and_identity_of_a_written_run(tmp_path):
    run = write_scb_run(tmp_path / "run")
    facts = read_agent_facts(run / "ledger/checkpoint_2")
    assert facts == AgentFacts(
        cost=0.56, steps=21, input=240, output=1807, cache_read=10000, cache_write=1400, reasoning=80,
        started="2026-08-02T10:00:00+00:00", ended="2026-08-02T10:02:30+00:00", elapsed=150.0,
    )  # fmt: skip
    expected = AgentIdentity(
        model=MODEL["name"], provider=MODEL["provider"], agent=AGENT["type"], version=AGENT["version"],
        prompt=PROMPT, thinking=THINKING,
    )  # fmt: skip
    assert read_agent_identity(run) == expected
    (run / "config.yaml").unlink()
    assert read_agent_identity(run) == expected.model_copy(update={"provider": None})
    (run / "result.json").unlink()
    assert not read_agent_identity(run).is_known


@pytest.mark.parametrize(
    "value", [None, True, "12", -1, HUGE, float("nan"), float("inf"), [], {}, 1e300, "\x1b[2J" * 1000]
)
def test_a_value_of_another_type_or_range_is_not_recorded(tmp_path, value):
    tokens = dict.fromkeys(("input", "output", "cache_read", "cache_write", "reasoning"), value)
    document = {"started": {"a": 1}, "elapsed": value, "usage": {"cost": value, "steps": value, "net_tokens": tokens}}
    (tmp_path / "inference_result.json").write_text(json.dumps(document))
    assert read_agent_facts(tmp_path) is None


def test_a_fraction_is_no_count():
    assert AgentFacts.of({"steps": 1.5, "cost": 1.5}) == AgentFacts(cost=1.5)


@pytest.mark.parametrize("usage", [None, [], "x", {"net_tokens": []}])
def test_an_error_is_kept_without_usage(tmp_path, usage):
    document = {"had_error": True, "error_message": "x" * 10_000, "usage": usage}
    (tmp_path / "inference_result.json").write_text(json.dumps(document))
    assert read_agent_facts(tmp_path) == AgentFacts(error="x" * 200)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"[" * 100_000, b"1", b" " * (1 << 20) + b"{}", None])
def test_files_that_cannot_be_read_say_nothing(tmp_path, content):
    for name in ("inference_result.json", "config.yaml", "result.json"):
        if content is None:
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_bytes(content)
    assert read_agent_facts(tmp_path) is None
    assert not read_agent_identity(tmp_path).is_known


def test_links_are_not_followed(tmp_path):
    run = write_scb_run(tmp_path / "run")
    (tmp_path / "inference_result.json").symlink_to(run / "ledger/checkpoint_1/inference_result.json")
    assert read_agent_facts(tmp_path) is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("model: tiny\nagent: own\n", {"model": "tiny", "agent": "own"}),
        ("model: {name: [a]}\nagent: {type: {}, version: 2.1}\n", {"version": "2.1"}),
        ("prompt_path: p.jinja\nthinking: 5\n", {"prompt": "p.jinja", "thinking": "5"}),
        ("thinking: true\nprompt: ''\n", {}),
        (f"model: 0x{'f' * 6000}\n", {}),
    ],
)
def test_identity_takes_texts_and_numbers_only(tmp_path, config, expected):
    (tmp_path / "config.yaml").write_text(config)
    assert read_agent_identity(tmp_path).model_dump(exclude_none=True) == expected


def test_long_texts_are_cut_and_stay_apart(tmp_path):
    identities = []
    for name in ("good", "bad"):
        (tmp_path / "config.yaml").write_text(f"prompt: {'x' * 250}/{name}.jinja\n")
        identities.append(read_agent_identity(tmp_path))
    assert identities[0] != identities[1]
    assert {len(identity.prompt) for identity in identities} == {200}
