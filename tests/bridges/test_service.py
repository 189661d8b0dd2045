"""The reward service, in a process of its own, asked over HTTP."""

from __future__ import annotations

import base64
import json
import re
import socket

import pytest

from tests.bridges.service_process import GOOD, HALF, forked_service, request_for, running, tar_of, wait_until
from tests.conftest import write_files

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def allowed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("submissions")
    write_files(folder, {"good/main.py": GOOD})
    (folder / "out").symlink_to("/etc")
    return folder


@pytest.fixture(scope="module")
def service(cache, need_bubblewrap, service_problems, allowed, tmp_path_factory):
    need_bubblewrap()
    with forked_service(service_problems, tmp_path_factory.mktemp("state"), "-j", "2", "--allow", str(allowed)) as made:
        yield made
        assert made.end() == 0


@pytest.fixture
def client(service):
    with service.client() as made:
        yield made


def test_an_answer_has_rewards_failures_and_provenance(client):
    answer = client.post("/evaluate", json=request_for(HALF, policy="core-cases"))
    assert answer.status_code == 200, answer.text
    made = answer.json()
    assert (made["state"], made["reward"], made["policy"]) == ("evaluated", 0.0, "core-cases")
    assert made["rewards"] == {"strict": 0.0, "isolated": 0.0, "core": 0.0, "pass_rate": 0.5, "core_rate": 0.5}
    assert made["pass_counts"]["Core"] == 1
    assert made["total_counts"]["Core"] == 2
    [failure] = made["failures"]
    assert (failure["id"], failure["status"], failure["group"]) == ("test_it_refuses_words", "failed", "Core")
    assert "returncode" in failure["message"]
    assert made["provenance"]["digests"]["submission"]
    assert made["isolation"]["judge_and_subject_apart"]


def test_a_mapping_a_tar_in_either_way_and_a_path_are_one_submission_and_a_repeated_request_is_free(client, allowed):
    packed = tar_of({"main.py": GOOD})
    first = client.post("/evaluate", json=request_for(GOOD)).json()
    assert (first["reward"], first["rewards"]["strict"]) == (1.0, 1.0)
    encoded = base64.b64encode(packed).decode()
    others = [
        client.post(
            "/evaluate?problem=adding&checkpoint=1", content=packed, headers={"content-type": "application/gzip"}
        ),
        client.post("/evaluate", json={**request_for(), "submission": {"tar": encoded}}),
        client.post("/evaluate", json={**request_for(), "submission": {"path": str(allowed / "good")}}),
        client.post("/evaluate", json={**request_for(), "checkpoint": "checkpoint_1"}),
    ]
    for answer in others:
        made = answer.json()
        assert made["provenance"]["digests"] == first["provenance"]["digests"]
        assert (made["state"], made["reward"], made["source"]) == ("evaluated", 1.0, "cached")


def test_a_part_of_the_tests_has_rates_and_no_reward(client):
    made = client.post("/evaluate", json=request_for(HALF, tests=["-k", "adds"])).json()
    assert (made["state"], made["reward"], made["passed"]) == ("partial", None, {})
    assert made["rewards"] == {"pass_rate": 1.0, "core_rate": 1.0}


def test_a_batch_streams_answers_by_index_and_a_wrong_request_ends_no_other(client):
    requests = [request_for(), request_for(HALF), request_for(problem="missing"), request_for(HALF + "#\n")]
    with client.stream("POST", "/evaluate/batch", json={"requests": requests}) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        lines = {line["index"]: line for line in map(json.loads, answer.iter_lines())}
    assert {index: line["state"] for index, line in lines.items()} == {
        0: "evaluated", 1: "evaluated", 2: "rejected", 3: "evaluated",
    }  # fmt: skip
    assert [lines[index]["reward"] for index in range(4)] == [1.0, 0.0, None, 0.0]
    assert "no problem 'missing'" in lines[2]["reason"]
    assert lines[2]["fault"] == "request"


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"problem": "../adding"}, 422, "no problem"),
        ({"problem": ""}, 422, "no problem"),
        ({"checkpoint": 7}, 422, "checkpoint"),
        ({"environment": "local"}, 422, "not offered"),
        ({"policy": "most"}, 422, "most"),
        ({"tests": ["--entrypoint=x"]}, 422, "--entrypoint"),
        ({"tests": ["-k", "("]}, 422, "Wrong expression passed to '-k'"),
        ({"tests": ["-k", "nothing"]}, 422, "no test matches -k nothing"),
        ({"tests": ["-k", "not " * 999 + "adds"]}, 422, "more than 250 operators"),
        ({"unknown": 1}, 422, "unknown"),
        ({"submission": {}}, 422, "files, path and tar"),
        ({"submission": {"path": "/etc"}}, 403, "--allow"),
        ({"submission": {"path": "ALLOWED/out"}}, 403, "--allow"),
        ({"submission": {"path": "ALLOWED/good/../../etc"}}, 403, "--allow"),
        ({"submission": {"path": "ALLOWED"}}, 403, "--allow"),
        ({"submission": {"path": "ALLOWED/gone"}}, 422, "no such folder"),
        ({"submission": {"files": {"../main.py": ""}}}, 422, "main.py"),
        ({"submission": {"files": {"/main.py": ""}}}, 422, "main.py"),
        ({"submission": {"tar": "%"}}, 422, "base64"),
        ({"submission": {"tar": "AAAA"}}, 422, "tar archive"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(client, allowed, fields, status, words):
    text = json.dumps({**request_for(), **fields}).replace("ALLOWED", str(allowed))
    answer = client.post("/evaluate", content=text)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    if status == 422:
        of_submission = words in ("main.py", "tar archive", "no such folder")
        assert answer.json()["fault"] == ("submission" if of_submission else "request")
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"null", b'{"problem": NaN}', b"\xff\xfe"])
def test_a_body_that_is_no_json_is_refused(client, body):
    assert client.post("/evaluate", content=body).status_code == 422


def test_a_client_that_goes_away_cancels_its_evaluation(client, service):
    address, _, port = service.url.removeprefix("http://").partition(":")
    body = json.dumps(request_for(problem="sleeping")).encode()
    with socket.create_connection((address, int(port)), timeout=100) as connection:
        connection.sendall(service.head("/evaluate", len(body)) + body)
        wait_until(lambda: running(client) == 1)
    wait_until(lambda: running(client) == 0)


def test_a_durable_job_is_queued_runs_and_can_be_cancelled(client):
    accepted = client.post("/evaluate", json=request_for(problem="sleeping", durable=True))
    assert accepted.status_code == 202
    job = f"/jobs/{accepted.json()['id']}"
    wait_until(lambda: client.get(job).json()["state"] == "running")
    assert client.delete(job).status_code == 204
    assert client.get(job).status_code == 404
    wait_until(lambda: running(client) == 0)


def test_problems_health_metrics_and_the_document(client):
    assert client.get("/problems").json() == [
        {"name": "adding", "checkpoints": ["checkpoint_1"]},
        {"name": "sleeping", "checkpoints": ["checkpoint_1"]},
    ]
    assert client.get("/health").status_code == 200
    client.post("/evaluate", json=request_for())
    assert 'slop_code_answers_total{source="cached",state="evaluated"}' in client.get("/metrics").text
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert {"EvaluateRequest", "BatchRequest", "EvaluationAnswer"} <= used <= set(schemas)


def test_a_name_of_another_server_is_refused(client):
    """Otherwise a page whose name leads to this machine could read results."""
    assert client.get("/problems", headers={"host": "example.com"}).status_code == 421


def test_nemo_gym_gets_rewards_and_its_own_row_back(client):
    row = {"_ng_task_index": 3, "responses_create_params": {"input": "x"}, "response": {"id": "r"}}
    made = client.post("/verify", json={**row, "verifier_metadata": request_for(HALF)}).json()
    assert {name: made[name] for name in row} == row
    assert (made["reward"], made["reward_components"]["core_rate"]) == (0.0, 0.5)
    assert client.post("/seed_session", json={}).json() == {}
    assert client.get("/reverify_mode").json() == "stateless"
    responses = [{**row, "reward": reward, "reward_components": {"core": reward}} for reward in (0.0, 1.0)]
    totals = client.post("/aggregate_metrics", json={"verify_responses": responses}).json()
    assert totals["key_metrics"] == {"mean/reward": 0.5, "mean/core": 0.5}
    assert totals["group_level_metrics"][0]["_ng_task_index"] == 3
    large = client.post(
        "/aggregate_metrics", content=b'{"verify_responses": [{"reward": 1e308, "n": 1%s}]}' % (b"0" * 400)
    )
    assert large.json()["key_metrics"] == {}


def test_a_page_of_another_site_is_refused(client):
    headers = {"origin": "http://example.com", "content-type": "text/plain"}
    assert client.post("/evaluate", content=json.dumps(request_for()), headers=headers).status_code == 403
    assert client.get("/problems", headers={"origin": service_origin(client)}).status_code == 200


def service_origin(client):
    return str(client.base_url).rstrip("/")


@pytest.mark.parametrize(
    "body",
    [
        {**request_for(), "submission": {"files": {str(number): 1 for number in range(100_000)}}},
        {**request_for(), **{str(number): 1 for number in range(100_000)}},
        {"requests": [{}] * 100_000},
    ],
)
def test_only_few_mistakes_of_a_body_are_reported(client, body):
    route = "/evaluate/batch" if "requests" in body else "/evaluate"
    answer = client.post(route, json=body)
    assert answer.status_code == 422
    assert len(answer.text) < 1000


@pytest.mark.long
@pytest.mark.parametrize(
    "sent", [b"", b"GET /health HTTP/1.1\r\nHost:", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET"]
)
def test_a_connection_without_a_request_is_closed(service, sent):
    address, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((address, int(port)), timeout=200) as connection:
        connection.sendall(sent)
        while connection.recv(1 << 16):
            pass
