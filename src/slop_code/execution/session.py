"""One evaluation's boxes: opened, used, gone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code.execution.boxes import PATH, Judged, JudgeJob, Layout, Sandbox, sandbox_for
from slop_code.execution.setup import Progress, Subject, prepare_subject
from slop_code.execution.snapshot import open_submission

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.spec import EnvironmentSpec


@dataclass(frozen=True, slots=True)
class Session:
    """A submission that is set up and can be judged; its folder goes when the session ends."""

    spec: EnvironmentSpec
    sandbox: Sandbox
    folder: Path
    submission: Path | None
    subject: Subject
    uv_cache: Path
    hidden: Sequence[Path]

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        spec: EnvironmentSpec,
        submission: Path | None,
        cache: Cache,
        progress: Progress = lambda _: None,
        hidden: Sequence[Path] = (),
    ) -> Iterator[Session]:
        """Without a submission there is no subject: that is how tests are collected.

        The submission sees nothing of `hidden`, neither while it is set up nor while it is tested.
        """
        sandbox = sandbox_for(spec)
        subject, source = Subject(), None
        if submission is not None:
            source = open_submission(submission)
            subject = prepare_subject(spec, source, sandbox, cache, progress, hidden)
        with cache.session() as folder:
            yield cls(spec, sandbox, folder, source, subject, cache.uv, hidden)

    @property
    def layout(self) -> Layout:
        return self.sandbox.layout(self.folder)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """What the tests and the submission see; the host's only where there is no isolation anyway."""
        layout = self.layout
        path = f"{layout.tools}:{PATH}"
        if self.subject.env is not None:
            path = f"{self.sandbox.subject_env(self.subject.env)}/bin:{path}"
        host = os.environ if self.sandbox.name == "none" and self.spec.environment.include_os_env else {}
        return {
            **host,
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
        files: Mapping[str, Path],
        timeout: float,
    ) -> Judged:
        """Run the judge to its end; the boxes are gone when this returns."""
        return self.sandbox.judge(
            JudgeJob(
                argv=argv,
                environment=environment,
                submission=self.submission,
                layers=self.subject.layers,
                tests=tests,
                shown=shown,
                reports=reports,
                subject_env=self.subject.env,
                files=files,
                uv_cache=self.uv_cache,
                scratch=self.folder,
                timeout=timeout,
                hidden=self.hidden,
            )
        )
