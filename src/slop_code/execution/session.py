"""One evaluation's boxes: opened, used, gone."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.execution.sandbox import (
    PATH,
    BoxLayout,
    JudgeJob,
    JudgeResult,
    PreparedSubject,
    Sandbox,
    ToolEnvironment,
    sandbox_for,
)
from slop_code.execution.setup import prepare_subject
from slop_code.execution.submission import open_submission

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.environment import EnvironmentSpec
    from slop_code.execution.progress_events import ProgressCallback


@dataclass(frozen=True, slots=True)
class Session:
    """A submission that is set up and can be judged; its folder goes when the session ends."""

    spec: EnvironmentSpec
    sandbox: Sandbox
    cache: Cache
    folder: Path
    submission: Path | None
    subject: PreparedSubject
    hidden: Sequence[Path]

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        spec: EnvironmentSpec,
        submission: Path | None,
        cache: Cache,
        progress: ProgressCallback = lambda _: None,
        hidden: Sequence[Path] = (),
        sandbox: Sandbox | None = None,
    ) -> Iterator[Session]:
        """Without a submission there is no subject: that is how tests are collected.

        The submission sees nothing of `hidden`, neither while it is set up nor while it is tested.
        """
        sandbox = sandbox or sandbox_for(spec, cache, progress)
        subject, source = PreparedSubject(), None
        if submission is not None:
            source = open_submission(submission)
            subject = prepare_subject(spec, source, sandbox, cache, progress, hidden)
        with cache.session_folder() as folder:
            yield cls(spec, sandbox, cache, folder, source, subject, hidden)

    @contextlib.contextmanager
    def another(self) -> Iterator[Session]:
        """The same submission as it was set up, in a folder of its own: both can be judged at a time."""
        with self.cache.session_folder() as folder:
            yield replace(self, folder=folder)

    @property
    def layout(self) -> BoxLayout:
        return self.sandbox.layout(self.folder)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """What the tests and the submission see."""
        layout, given = self.layout, self.sandbox.variables()
        path = f"{layout.tools}:{given.get('PATH') or PATH}"
        if self.subject.kept is not None:
            path = f"{self.sandbox.subject_env(self.subject.kept)}/bin:{path}"
        return {
            **given,
            "PATH": path,
            "HOME": layout.home,
            "LANG": "C.UTF-8",
            "TMPDIR": layout.tmp,
            "TZ": "UTC",
            **self.subject.environment,
            **self.spec.environment.env,
            **extra,
        }

    def judge(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        tests: Path,
        shown: Path,
        reports: Path,
        tools: ToolEnvironment,
        files: Mapping[str, Path],
        timeout: float,
        interactive: bool = False,
    ) -> JudgeResult:
        """Run the judge to its end; the boxes are gone when this returns."""
        return self.sandbox.judge(
            JudgeJob(
                argv=argv,
                environment=environment,
                submission=self.submission,
                subject=self.subject,
                tests=tests,
                shown=shown,
                reports=reports,
                tools=tools.kept,
                files=files,
                scratch=self.folder,
                timeout=timeout,
                hidden=self.hidden,
                interactive=interactive,
            )
        )
