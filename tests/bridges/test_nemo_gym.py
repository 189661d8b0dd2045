"""NeMo Gym's own client and records against the reward service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridges.conftest import run
from tests.bridges.service_process import GOOD, HALF, request_for, running_service

SCRIPT = Path(__file__).with_name("nemo_gym_client.py")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_its_client_gets_rewards_metrics_and_an_error_without_a_verdict(
    cache, need_bubblewrap, bridge_python, service_problems, tmp_path
):
    need_bubblewrap()
    python = bridge_python("nemo-gym")
    rows = [request_for(GOOD), request_for(HALF), request_for(problem="missing")]
    with running_service(service_problems, tmp_path, "-j", "2") as service:
        words = (service.url, service.token_file, json.dumps(rows))
        printed = run(python, SCRIPT, *words, cwd=tmp_path)  # it leaves logs there
        assert service.end() == 0
    made = json.loads(printed.splitlines()[-1])
    assert [answer.get("reward") for answer in made["answers"]] == [1.0, 0.0, None]
    assert made["answers"][1]["reward_components"] == {
        "strict": 0.0, "isolated": 0.0, "core": 0.0, "pass_rate": 0.5, "core_rate": 0.5,
    }  # fmt: skip
    assert "422" in made["answers"][2]["error"]
    assert made["metrics"]["mean/reward"] == made["own"]["mean/reward"] == 0.5
    assert made["metrics"].keys() >= made["own"].keys()
    assert made["mode"] == "stateless"
