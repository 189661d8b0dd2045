"""No sandbox, for environments with `isolation: none`: a copied workspace, and the same user for judge and subject."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code._io import open_regular
from slop_code.errors import SubmissionSetupError
from slop_code.execution.cache import remove_path
from slop_code.execution.helper import reaped
from slop_code.execution.helper.runnable_helper import runnable_helper
from slop_code.execution.host_sandbox import HostSandbox, HostSetupBox
from slop_code.execution.low_limits import low_limit_reason
from slop_code.execution.process import ProcessResult, run
from slop_code.execution.sandbox import LOG, REPORTS_DIR, TESTS_DIR, BoxLayout, JudgeJob, JudgeResult, SetupJob
from slop_code.execution.submission import CHUNK, MAX_COPIED_PATH, RESERVED, TreeLimitError, copy_whole_tree, walk_tree
from slop_code.execution.templates import DESCRIPTOR_VARIABLE, JudgeTemplate
from slop_code.execution.uv import uv_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from slop_code.execution.sandbox import JudgeRequest, TemplateSpec

MAX_COPIED_REPORTS = 1 << 29
"""More than any reader of the reports takes."""


class Unsandboxed(HostSandbox):
    name = "none"

    def layout(self, session: Path) -> BoxLayout:
        return BoxLayout(
            str(session / "workspace"),
            str(session / "tmp"),
            str(session / "home"),
            str(uv_paths()[0].parent),
        )

    def subject_env(self, entry: Path) -> str:
        return str(entry / "env")

    def variables(self) -> Mapping[str, str]:
        """The host's own where the environment asks for them: there is no isolation anyway."""
        return {**os.environ, "PATH": ""} if self.spec.environment.include_os_env else {}

    def unavailable_reason(self) -> str | None:
        if sys.platform.startswith("linux"):
            runnable_helper()  # raises where it is missing or cannot be executed
        return low_limit_reason()

    def prepare_setup(self, job: SetupJob) -> UnsandboxedSetupBox:
        copy_tree(job.submission, job.scratch / "layer", job.scratch)
        return UnsandboxedSetupBox(job)

    def judge(self, job: JudgeJob) -> JudgeResult:
        layout, request = self.layout(job.scratch), job.request
        workspace = Path(layout.workspace)
        self._copy_workspace(job, workspace)
        copy_tests_to_workspace(request.tests, workspace)
        (workspace / REPORTS_DIR).mkdir()
        for name in ("tmp", "home"):
            (job.scratch / name).mkdir()
        environment = {**request.environment, "TMPDIR": layout.tmp}
        with self._template(request) as template:
            if template is None:
                argv, interactive = reaped(request.argv), request.interactive
                options: dict[str, Any] = {"timeout": request.timeout, "cwd": workspace, "interactive": interactive}
                done = run(argv, env=environment, log=job.log, **options)
            else:
                done = template.evaluate(_forked_judge(request, workspace, environment), job.log, request.timeout)
        take_reports(workspace / REPORTS_DIR, request.reports)
        isolation = {"sandbox": self.name, "judge_and_subject_apart": False, "network": "full", "limits": {}}
        return JudgeResult(done, {**isolation, "judge": template.spec.kind if template else "cold"})

    @contextlib.contextmanager
    def _template(self, request: JudgeRequest) -> Iterator[JudgeTemplate | None]:
        """An imported one: the folder of the tests, which a collected one has in its modules, is another each time."""
        warm = request.warm if sys.platform.startswith("linux") else None
        spec = next((spec for spec in warm.specs if spec.kind == "imported"), None) if warm else None
        if warm is None or spec is None:
            yield None
            return
        with warm.pool.use(spec, self.cache, functools.partial(_start_template, spec), warm.check) as template:
            yield template if isinstance(template, JudgeTemplate) else None

    def _copy_workspace(self, job: JudgeJob, workspace: Path) -> None:
        """A layer is the whole workspace as set-up left it. Files with names that evaluations use are removed."""
        if job.submission is None:
            workspace.mkdir()
        else:
            layer = job.subject.entry / "layer" if job.subject.entry and job.subject.has_workspace else None
            copy_tree(layer or job.submission, workspace, job.scratch)
        for name in RESERVED:
            remove_path(workspace / name)


def _start_template(spec: TemplateSpec, folder: Path, descriptor: int) -> list[str]:
    """With the template everything ends that its judges have left."""
    own = {"HOME": str(folder), "UV_TOOL_DIR": f"{folder}/tools", DESCRIPTOR_VARIABLE: str(descriptor)}
    variables = {**spec.environment, **own}
    return reaped(["env", "-i", *[f"{name}={value}" for name, value in variables.items()], *spec.argv])


def _forked_judge(request: JudgeRequest, workspace: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    settings = json.loads(request.files["settings.json"].read_text())
    own = {"argv": list(request.argv), "cwd": str(workspace), "environment": dict(environment), "settings": settings}
    return {**own, "boxes": None, "filter": None, "file_size": 0}


def copy_tests_to_workspace(tests: Path, workspace: Path) -> None:
    """Without a sandbox to mount them in, the tests are copied."""
    shutil.copytree(tests, workspace / TESTS_DIR, ignore=shutil.ignore_patterns("__pycache__"))


@dataclass(frozen=True, slots=True)
class UnsandboxedSetupBox(HostSetupBox):
    job: SetupJob

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult:
        scratch = self.job.scratch
        environment = {**self.job.environment, "TMPDIR": str(scratch / "tmp")}
        return run(reaped(command), env=environment, log=scratch / "log", timeout=timeout, cwd=scratch / "layer")


def take_reports(source: Path, target: Path) -> None:
    """Copy regular files only: the submission may have put links, pipes and folders there, and files of any size.

    What is beyond `MAX_COPIED_REPORTS` is left out, which is no verdict then.
    """
    if source.is_symlink() or not source.is_dir():
        return
    left = MAX_COPIED_REPORTS
    for path in source.iterdir():
        if path.is_file() and not path.is_symlink() and path.name != LOG:
            with open_regular(path) as stream, (target / path.name).open("wb") as copy:
                while chunk := stream.read(min(CHUNK, left)):
                    copy.write(chunk)
                    left -= len(chunk)


def _check_paths(source: Path) -> None:
    """Raises SubmissionSetupError for a tree that cannot be copied by paths."""
    try:
        longest = max((len(entry.path) for entry in walk_tree(source, RESERVED)), default=0)
    except TreeLimitError as error:
        raise SubmissionSetupError(error.fact) from error
    if longest > MAX_COPIED_PATH:
        limit = f"a path of more than {MAX_COPIED_PATH} bytes"
        raise SubmissionSetupError(f"the tree has {limit}, and without a sandbox it is copied")


def copy_tree(source: Path, destination: Path, scratch: Path) -> None:
    """As `copy_whole_tree`, for a tree whose paths are short enough."""
    _check_paths(source)
    destination.mkdir(parents=True, exist_ok=True)
    copy_whole_tree(source, destination, scratch)
