"""Taskset of verifiers: the problems, with an agent that runs what the model answers, as a command."""

import httpx
import verifiers.v1 as vf

from slop_code.bridges.verifiers import CheckpointsEnv, ProblemTaskset

__all__ = ["CheckpointsEnv", "ProblemTaskset", "ScriptedHarness"]


class ScriptedHarness(vf.Harness[vf.HarnessConfig]):
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        body = {"model": ctx.model, "messages": [{"role": "user", "content": data.prompt}]}
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
            answer = (await client.post(f"{endpoint}/chat/completions", json=body)).raise_for_status().json()
        return await runtime.run(["sh", "-c", answer["choices"][0]["message"]["content"]], {})
