"""Jobs on a node of a cluster, run in this process."""

from __future__ import annotations

import pytest

from slop_code.runs.executors.ray.node import ShippedTree, local_versions, run_on_node
from slop_code.runs.jobs.job_records import JobRequest


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.parametrize("asks", ["problem", "environment"])
def test_a_node_without_the_python_says_what_it_looked_for(make_problem, environment_spec, tmp_path, asks):
    pytest.importorskip("ray")
    problem = make_problem(
        {"test_checkpoint_1.py": "def test_it(): pass\n"},
        config={"requires_python": ">=3.99"} if asks == "problem" else {},
    )
    request = JobRequest(
        problem=problem,
        checkpoint="checkpoint_1",
        environment=environment_spec({"python": ">=3.99"} if asks == "environment" else {}),
        submission=tmp_path,
        digest="",
    )
    nowhere = ShippedTree("", None)
    ended = run_on_node(request, nowhere, nowhere, local_versions())
    assert ended.facts.state == "infrastructure_failure"
    assert ended.facts.reason.startswith("node ")
    assert "no Python on this machine fits >=3.99: there are " in ended.facts.reason
    assert "Traceback" not in ended.facts.reason
    assert not ended.final  # another node may have it
