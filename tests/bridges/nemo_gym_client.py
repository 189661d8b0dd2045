"""Asks a reward service as an agent server of NeMo Gym does, with NeMo Gym's own client and records.

Run with its address, the file of its token and a JSON list of `verifier_metadata`; prints the rewards and the metrics
as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from nemo_gym.base_resources_server import BaseVerifyResponse
from nemo_gym.config_types import AggregateMetrics, BaseServerConfig
from nemo_gym.reward_profile import compute_aggregate_metrics
from nemo_gym.server_utils import ServerClient, get_global_aiohttp_client, get_response_json, raise_for_status
from omegaconf import OmegaConf
from responses_api_agents.simple_agent.app import SimpleAgentVerifyRequest, SimpleAgentVerifyResponse

NAME = "slop_code"
RESPONSE = {
    "id": "r", "created_at": 1, "model": "scripted", "object": "response", "output": [], "parallel_tool_calls": False,
    "tool_choice": "auto", "tools": [],
}  # fmt: skip


async def post(client: ServerClient, path: str, body: object) -> dict:
    answer = await client.post(server_name=NAME, url_path=path, json=body)
    await raise_for_status(answer)
    return await get_response_json(answer)


async def main(url: str, token: str, rows: list[dict]) -> None:
    address = urlsplit(url)
    server = {"host": address.hostname, "port": address.port}
    config = OmegaConf.create({NAME: {"resources_servers": {NAME: server}}})
    client = ServerClient(head_server_config=BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=config)
    get_global_aiohttp_client().headers["Authorization"] = f"Bearer {token}"
    answers = []
    for index, metadata in enumerate(rows):
        row = {"responses_create_params": {"input": "write it"}, "_ng_task_index": index, "_ng_rollout_index": 0}
        await post(client, "/seed_session", row)
        request = SimpleAgentVerifyRequest.model_validate({**row, "verifier_metadata": metadata, "response": RESPONSE})
        try:
            verified = await post(client, "/verify", request.model_dump())
        except Exception as error:  # noqa: BLE001  (of aiohttp, or NeMo Gym's own)
            answers.append({"error": str(error)})
            continue
        BaseVerifyResponse.model_validate(verified)
        answers.append(SimpleAgentVerifyResponse.model_validate(verified).model_dump(mode="json"))
    responses = [answer for answer in answers if "reward" in answer]
    metrics = AggregateMetrics.model_validate(await post(client, "/aggregate_metrics", {"verify_responses": responses}))
    own = compute_aggregate_metrics(responses)
    mode = await get_response_json(await client.get(server_name=NAME, url_path="/reverify_mode"))
    made = {"answers": answers, "metrics": metrics.key_metrics, "own": own.key_metrics, "mode": mode}
    print(json.dumps(made))


if __name__ == "__main__":
    arguments, sys.argv[1:] = sys.argv[1:], []  # NeMo Gym reads its own configuration from them
    asyncio.run(main(arguments[0], Path(arguments[1]).read_text().strip(), json.loads(arguments[2])))
