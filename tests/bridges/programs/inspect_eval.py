"""An evaluation by Inspect, with a model that answers by a script.

The sandbox is Inspect's local one, or its Docker sandbox with the file that `compose` names.
Standard input: `problem`, `commands` (a list for each checkpoint), `log`, and optionally `compose`, `environment`,
`epochs`, `message_limit`, `early_submit` (an agent that is told when its score is bad, and submits nothing at first),
`provider_fails` (a command with this word fails in the local sandbox, whose provider answers no more).
Standard output, in its last line: what tests look at.
"""

import json
import sys

from inspect_ai import eval as run_eval
from inspect_ai.agent import react
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.tool import bash
from inspect_ai.util import ExecResult, sandboxenv
from inspect_ai.util._sandbox.docker import docker, prereqs
from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

from slop_code.bridges.inspect import problem_task

MODEL = "mockllm/model"


def call(tool: str, **arguments: str) -> ModelOutput:
    return ModelOutput.for_tool_call(MODEL, tool, arguments)


def script(plan: dict) -> list[ModelOutput]:
    once = [
        output
        for commands in plan["commands"]
        for output in [*(call("bash", command=command) for command in commands), call("submit", answer="done")]
    ]
    early = [call("submit", answer="too early")] if plan.get("early_submit") else []
    return early + once * plan.get("epochs", 1)


async def any_version(*_: object, **__: object) -> None:
    """Inspect wants Docker 24. Debian 12 has 20.10, which does all that is needed here."""


class FailingProvider(LocalSandboxEnvironment):
    failed = False

    @classmethod
    async def sample_init(cls, *_):
        return {"default": cls()}

    async def exec(self, cmd, *arguments, **options):
        if plan["provider_fails"] in " ".join(cmd):
            self.failed = True
            return ExecResult(False, 1, "", "")
        return await super().exec(cmd, *arguments, **options)

    async def connection(self, **options):
        if self.failed:
            raise RuntimeError("no answer")
        return await super().connection(**options)


docker.validate_prereqs = prereqs.validate_docker_engine = any_version
plan = json.load(sys.stdin)
if "provider_fails" in plan:
    sandboxenv(name="failing")(FailingProvider)
task = problem_task(
    plan["problem"],
    checkpoints=len(plan["commands"]),
    environment=plan.get("environment"),
    agent=react(tools=[bash()], attempts=2) if plan.get("early_submit") else None,
)
[log] = run_eval(
    task,
    model=get_model(MODEL, custom_outputs=script(plan)),
    sandbox=("docker", plan["compose"]) if "compose" in plan else "failing" if "provider_fails" in plan else "local",
    epochs=plan.get("epochs", 1),
    max_samples=1,
    message_limit=plan.get("message_limit"),
    log_dir=plan["log"],
    log_format="json",
    display="none",
)
assert log.status == "success", log.error
sample = read_eval_log(log.location, resolve_attachments=True).samples[0]
steps = [
    "score" if event.event == "score" else [message.text for message in event.input if message.role == "user"][-1]
    for event in sample.events
    if event.event == "model" or (event.event == "score" and event.intermediate)
]
found = {
    "error": sample.error and sample.error.message,
    "location": log.location,
    "scores": {name: score.model_dump() for name, score in sample.scores.items()},
    "steps": steps,
    "intermediate": [e.score.value for e in sample.events if e.event == "score" and e.intermediate],
    "roles": [message.role for message in sample.messages],
    "results": {
        score.name: {
            "scored": score.scored_samples,
            "unscored": score.unscored_samples,
            **{name: metric.value for name, metric in score.metrics.items()},
        }
        for score in log.results.scores
    },
}
print(json.dumps(found))
