"""One evaluation: a submission that is set up, and a folder that is removed when the evaluation ends."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.execution.sandbox import (
    PATH,
    BoxLayout,
    JudgeJob,
    JudgeRequest,
    JudgeResult,
    PreparedSubject,
    Sandbox,
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

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
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
        """Without a submission there is no subject: tests are collected in such a session.

        The submission sees nothing of `hidden`, neither during set-up nor while it is tested.
        """
        sandbox = sandbox or sandbox_for(spec, cache, progress)
        subject, source = PreparedSubject(), None
        if submission is not None:
            source = open_submission(submission)
            subject = prepare_subject(sandbox, source, hidden)
        with cache.session_folder() as folder:
            yield cls(spec, sandbox, cache, folder, source, subject, hidden)

    @contextlib.contextmanager
    def another(self) -> Iterator[Session]:
        """The same submission as it was set up, in a second folder, so that both can be judged at a time."""
        with self.cache.session_folder() as folder:
            yield replace(self, folder=folder)

    @property
    def layout(self) -> BoxLayout:
        return self.sandbox.layout(self.folder)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Environment variables of the tests and of the submission."""
        layout, given = self.layout, self.sandbox.variables()
        path = f"{layout.tools}:{given.get('PATH') or PATH}"
        if self.subject.entry is not None:
            path = f"{self.sandbox.subject_env(self.subject.entry)}/bin:{path}"
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

    def judge(self, request: JudgeRequest) -> JudgeResult:
        """Run the judge to its end; both boxes are gone when this returns."""
        logger.info("opening %s boxes for %s in %s", self.sandbox.name, self.submission or "no subject", self.folder)
        result = self.sandbox.judge(JudgeJob(request, self.submission, self.subject, self.folder, self.hidden))
        if result.done.exit_code is None:
            logger.info("session timeout of %g s struck", request.timeout)
        logger.info(
            "closed %s boxes, exit code %s, in force: %s", self.sandbox.name, result.done.exit_code, result.isolation
        )
        return result
