"""Probes of this machine that open a pair of boxes, and a box for set-up."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code.errors import InfrastructureError
from slop_code.execution.bubblewrap.bubblewrap_sandbox import BubblewrapSandbox
from slop_code.execution.bubblewrap.bwrap_binary import PROBE_S, Probe
from slop_code.execution.cache import Cache
from slop_code.execution.helper import LAUNCHER
from slop_code.execution.sandbox import JudgeJob, JudgeRequest, PreparedSubject, SetupJob

if TYPE_CHECKING:
    from slop_code.execution.environment import EnvironmentSpec


def boxes_probe(spec: EnvironmentSpec) -> Probe:
    """Opens a pair of boxes with nothing in them."""
    with tempfile.TemporaryDirectory(prefix="slop-code-probe-") as folder:
        empty = {
            name: Path(folder) / name for name in ("submission", "tests", "shown", "reports", "tools", "scratch", "uv")
        }
        for path in empty.values():
            path.mkdir()
        request = JudgeRequest(
            argv=[LAUNCHER, "/bin/true"],
            environment={},
            tests=empty["tests"],
            shown=empty["shown"],
            reports=empty["reports"],
            tools=empty["tools"],
            files={},
            timeout=PROBE_S,
        )
        job = JudgeJob(request, empty["submission"], PreparedSubject(), empty["scratch"])
        try:
            done = BubblewrapSandbox(spec, Cache(Path(folder))).judge(job).done
        except InfrastructureError as error:
            return Probe(str(error))
    return Probe.of(done.exit_code, done.output)


def setup_box_probe(spec: EnvironmentSpec, cache: Cache) -> Probe:
    """Opens a box for set-up, whose overlay keeps its changes in the cache folder."""
    try:
        with cache.session_folder() as folder:
            workspace, scratch = folder / "workspace", folder / "scratch"
            workspace.mkdir()
            scratch.mkdir()
            job = SetupJob(submission=workspace, environment={}, scratch=scratch, keep_workspace=True)
            with BubblewrapSandbox(spec, cache).setup_box(job) as box:
                done = box.run(["/bin/true"], PROBE_S)
    except InfrastructureError as error:
        return Probe(str(error))
    return Probe.of(done.exit_code, done.output)
