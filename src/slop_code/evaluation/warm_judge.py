"""Judge templates for an evaluation: the ones that can serve it, and the digests of what they depend on."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from slop_code._io import digest_of
from slop_code._version import __version__
from slop_code.evaluation.command import imported_template_command
from slop_code.evaluation.input_checks import check_cache_entries
from slop_code.evaluation.judge.fork_server import OWN_SETTINGS
from slop_code.evaluation.staging import SETTINGS_VARIABLE, judge_digests
from slop_code.execution.sandbox import PATH, TemplateSpec, WarmJudge

if TYPE_CHECKING:
    from slop_code.evaluation.context import EvaluationContext
    from slop_code.evaluation.staging import Staged
    from slop_code.execution.sandbox import JudgeRequest
    from slop_code.execution.templates import TemplatePool

OWN_VARIABLES = (SETTINGS_VARIABLE, "HOME", "UV_TOOL_DIR")
"""Variables that name a folder of one evaluation, where there is no sandbox."""


def warm_judge(pool: TemplatePool, context: EvaluationContext, staged: Staged, request: JudgeRequest) -> WarmJudge:
    """A template with the collected tests where they are used again, else one with the test tools alone."""
    specs = [_collected(context, staged, request), _imported(context, request)]
    return WarmJudge(pool=pool, specs=specs, check=functools.partial(check_cache_entries, context, staged))


def _collected(context: EvaluationContext, staged: Staged, request: JudgeRequest) -> TemplateSpec:
    settings = json.loads(request.files["settings.json"].read_text())
    shared = {name: value for name, value in settings.items() if name not in OWN_SETTINGS}
    # The folder of the staged tests is named by the digest of the tests, the test tools and the judge's plugin.
    key = digest_of([staged.folder.name, list(request.argv), dict(request.environment), shared])
    return TemplateSpec(
        kind="collected",
        key=key,
        argv=request.argv,
        environment=request.environment,
        settings=json.dumps(shared),
        timeout=context.environment.timeouts.collection,
    )


def _imported(context: EvaluationContext, request: JudgeRequest) -> TemplateSpec:
    """Its children replace its environment, except what Python reads when it starts."""
    layout = context.sandbox.layout(request.reports)
    argv = imported_template_command(request.argv, layout.judge_path("plugin", request.files["plugin"]))
    given = {name: value for name, value in request.environment.items() if name not in OWN_VARIABLES}
    environment = {**given, "PATH": f"{layout.tools}:{PATH}"}
    tools = context.tools.entry.name  # named by the locked versions, which the arguments do not have
    key = digest_of([__version__, argv, environment, tools, judge_digests(), *context.sandbox.identity()])
    timeout = context.environment.timeouts.collection
    return TemplateSpec(kind="imported", key=key, argv=argv, environment=environment, settings="{}", timeout=timeout)
