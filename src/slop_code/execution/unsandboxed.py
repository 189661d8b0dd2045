"""No isolation, asked for by name: a copied workspace and one user for everything."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slop_code.errors import InfrastructureError
from slop_code.execution.cache import remove_tree
from slop_code.execution.helper import helper_path
from slop_code.execution.host_sandbox import HostSandbox, tidy
from slop_code.execution.process import ProcessResult, run
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR, BoxLayout, JudgeJob, JudgeResult, SetupJob
from slop_code.execution.submission import RESERVED
from slop_code.execution.uv import uv_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

COPY_S = 600


class Unsandboxed(HostSandbox):
    name = "none"

    def layout(self, session: Path) -> BoxLayout:
        return BoxLayout(
            str(session / "workspace"),
            str(session / "tmp"),
            str(session / "home"),
            str(uv_paths()[0].parent),
        )

    def subject_env(self, kept: Path) -> str:
        return str(kept / "env")

    def variables(self) -> Mapping[str, str]:
        """The host's where it is asked for: there is no isolation anyway."""
        return {**os.environ, "PATH": ""} if self.spec.environment.include_os_env else {}

    def unavailable_reason(self) -> str | None:
        reaped([])  # raises where no helper was built
        return None

    @contextlib.contextmanager
    def setup_box(self, job: SetupJob) -> Iterator[UnsandboxedSetupBox]:
        for name in ("env", "tmp", "home"):
            (job.scratch / name).mkdir()
        copy_tree(job.submission, job.scratch / "layer", job.scratch)
        yield UnsandboxedSetupBox(job)
        tidy(job.scratch, ("env", "layer") if job.keep_workspace else ("env",))

    def judge(self, job: JudgeJob) -> JudgeResult:
        layout = self.layout(job.scratch)
        workspace = Path(layout.workspace)
        if job.submission is None:
            workspace.mkdir()
        else:
            # A layer is the whole workspace as set-up left it.
            kept = job.subject.kept if job.subject.workspace else None
            copy_tree(kept / "layer" if kept else job.submission, workspace, job.scratch)
        for name in RESERVED:
            discard(workspace / name)
        shutil.copytree(job.tests, workspace / TESTS_DIR, ignore=shutil.ignore_patterns("__pycache__"))
        (workspace / REPORTS_DIR).mkdir()
        for name in ("tmp", "home"):
            (job.scratch / name).mkdir()
        environment = {**job.environment, "TMPDIR": layout.tmp}
        log = job.reports / "pytest.log"
        done = run(
            reaped(job.argv),
            env=environment,
            log=log,
            timeout=job.timeout,
            cwd=workspace,
            interactive=job.interactive,
        )
        take_reports(workspace / REPORTS_DIR, job.reports)
        return JudgeResult(
            done, {"sandbox": self.name, "judge_and_subject_apart": False, "network": "full", "limits": {}}
        )


@dataclass(frozen=True, slots=True)
class UnsandboxedSetupBox:
    job: SetupJob

    def run(self, command: Sequence[str], timeout: float) -> ProcessResult:
        scratch = self.job.scratch
        environment = {**self.job.environment, "TMPDIR": str(scratch / "tmp")}
        return run(reaped(command), env=environment, log=scratch / "log", timeout=timeout, cwd=scratch / "layer")


def take_reports(source: Path, target: Path) -> None:
    """Files only: the submission may have put links, pipes and folders beside them."""
    if source.is_symlink() or not source.is_dir():
        return
    for path in source.iterdir():
        if path.is_file() and not path.is_symlink() and path.name != "pytest.log":
            shutil.copyfile(path, target / path.name, follow_symlinks=False)


def reaped(argv: Any) -> list[str]:
    """On Linux the helper ends daemons of the submission with the tests; elsewhere nothing can."""
    return [str(helper_path()), "reap", *argv] if sys.platform.startswith("linux") else list(argv)


def copy_tree(source: Path, destination: Path, scratch: Path) -> None:
    """A copy as it stands: links as links, pipes as pipes, names of any bytes."""
    destination.mkdir(parents=True, exist_ok=True)
    argv = ["cp", "-a", "--", f"{source}/.", str(destination)]
    done = run(argv, env={"PATH": os.environ.get("PATH", os.defpath)}, log=scratch / "copy.log", timeout=COPY_S)
    if done.exit_code != 0:
        raise InfrastructureError(f"{source}: cannot copy it to a workspace: {done.output.strip()}")


def discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
