"""Session: one judge/subject pair, or one collection of tests, with a folder that is removed at its end."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from slop_code.execution.installation.setup import prepare_subject
from slop_code.execution.sandbox import PATH, BoxLayout, JudgeJob, JudgeRequest, JudgeResult, PreparedSubject, Sandbox
from slop_code.execution.submission import open_submission

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    sandbox: Sandbox
    folder: Path
    submission: Path | None
    subject: PreparedSubject
    hidden: Sequence[Path]

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, sandbox: Sandbox, submission: Path | None, hidden: Sequence[Path] = (), entry_file: str | None = None
    ) -> Iterator[Session]:
        """Without a submission there is no subject: tests are collected in such a session.

        The submission sees nothing of `hidden`, neither during set-up nor while it is tested. Its entry file may name
        its dependencies.
        """
        subject, source = PreparedSubject(), None
        if submission is not None:
            source = open_submission(submission)
            subject = prepare_subject(sandbox, source, hidden, entry_file)
        with sandbox.cache.session_folder() as folder:
            yield cls(sandbox, folder, source, subject, hidden)

    @contextlib.contextmanager
    def another(self) -> Iterator[Session]:
        """The same submission as it was set up, in a second folder, so that both can be judged at a time."""
        with self.sandbox.cache.session_folder() as folder:
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
            **self.sandbox.spec.environment.env,
            **extra,
        }

    def judge(self, request: JudgeRequest) -> JudgeResult:
        """Run the judge to its end; both boxes are gone when this returns."""
        logger.info("opening %s boxes for %s in %s", self.sandbox.name, self.submission or "no subject", self.folder)
        result = self.sandbox.judge(JudgeJob(request, self.submission, self.subject, self.folder, self.hidden))
        if result.done.exit_code is None:
            logger.info("session timeout of %g s struck", request.timeout)
        logger.info(
            "closed %s boxes, exit code %s, isolation: %s", self.sandbox.name, result.done.exit_code, result.isolation
        )
        return result
