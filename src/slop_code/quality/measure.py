"""Measurement of one snapshot: scb-check in a box without network, cached by the digest of the submission.

scb-check takes the place of a submission: the box limits its memory, processes, disk and output, and its environment
is set up from the lock. The snapshot itself is never in the box, only copies of its source files.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import digest_of, tail
from slop_code._version import __version__
from slop_code.errors import ConfigError, InfrastructureError, SubmissionSetupError, UsageError
from slop_code.evaluation.context import ignore_progress, tools_for
from slop_code.execution.environment import EnvironmentSpec, Limits, SetupSpec, VariablesSpec, load_environment
from slop_code.execution.installation.setup import prepare_subject
from slop_code.execution.sandbox import LOG, JudgeRequest, PreparedSubject, Sandbox, sandbox_for
from slop_code.execution.session import Session
from slop_code.execution.submission import open_submission, read_tree
from slop_code.execution.trees.manifest import check_manifest, write_manifest
from slop_code.quality.neutral_paths import ROOT
from slop_code.quality.quality_record import (
    NO_FILES,
    CodePart,
    LeftOut,
    QualityFigures,
    QualityProvenance,
    QualityRecord,
)
from slop_code.quality.scb_check_driver import MAX_REASON_LENGTH, NONE_PARSED
from slop_code.quality.scb_check_output import ScbCheckOutput, parse_output
from slop_code.quality.sources import Sources, copy_sources, incomplete_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slop_code.execution.cache import Cache
    from slop_code.execution.progress_events import ProgressCallback

LOCK = Path(__file__).with_name("scb-check.lock")
DRIVER = Path(__file__).with_name("scb_check_driver.py")
FIGURE_SOURCES = [
    LOCK.with_name(name)
    for name in (
        "scb-check.lock", "scb_check_driver.py", "sources.py", "source_text.py", "neutral_paths.py",
        "scb_check_output.py", "quality_record.py",
    )
]  # fmt: skip
"""Files that decide the figures of a submission."""

PYTHON = ">=3.12"
LIMITS = Limits(memory=2 << 30, processes=512, disk=64 << 20, output=8 << 20)
TIMEOUT_S = 900.0
MAX_LOG = 4 << 20
SHOWN_PATHS = 5


class FailedMeasurementError(InfrastructureError):
    """A measurement that may have more figures the next time, and so is not cached."""

    def __init__(self, quality: QualityRecord) -> None:
        super().__init__("; ".join(f"{part}: {reason}" for part, reason in quality.failures.items()))
        self.quality = quality


@dataclass(frozen=True, slots=True)
class ScbCheck:
    """scb-check in its own environment on this machine."""

    sandbox: Sandbox
    subject: PreparedSubject
    tools: Path | None
    """Entry of the test tools, without which no container of a judge starts."""

    @classmethod
    def install(
        cls, cache: Cache, environment: EnvironmentSpec | None = None, progress: ProgressCallback = ignore_progress
    ) -> ScbCheck:
        """Set up the environment at the first use, which needs network. Raises where that is not possible."""
        try:
            sandbox = sandbox_for(scb_check_environment(environment), cache, progress)
            sandbox.subject_python()
        except ConfigError as error:
            fact = str(error).partition("; ")[0]
            step = "install one, such as with `uv python install 3.12`"
            raise UsageError(f"scb-check needs Python 3.12 or newer: {fact}; {step}") from error
        cache.uv.mkdir(exist_ok=True)  # mounted in every box of a judge
        with cache.session_folder() as folder:
            (folder / "tool").mkdir()
            shutil.copyfile(LOCK, folder / "tool" / "requirements.txt")
            try:
                subject = prepare_subject(sandbox, folder / "tool", ())
            except (InfrastructureError, SubmissionSetupError) as error:
                raise InfrastructureError(f"scb-check cannot be installed: {error}") from error
        return cls(sandbox, subject, tools_for(sandbox).entry if sandbox.image() else None)

    def provenance(self) -> QualityProvenance:
        return QualityProvenance(
            scb_check=locked_version(),
            lock=hashlib.sha256(LOCK.read_bytes()).hexdigest(),
            python=self.sandbox.subject_version(),
            sandbox=self.sandbox.name,
            slop_code=__version__,
        )

    def measure(self, snapshot: Path) -> QualityRecord:
        """The figures of a snapshot, from the cache where the same submission was measured before."""
        submission = open_submission(snapshot)
        tree = read_tree(submission)
        sources = [hashlib.sha256(file.read_bytes()).hexdigest() for file in FIGURE_SOURCES]
        key = digest_of([tree.digest, self.sandbox.name, *sources])

        def build(entry: Path) -> None:
            if tree.over_limit is not None:
                raise FailedMeasurementError(
                    self._record(tree.digest, {}, dict.fromkeys(CodePart, tree.over_limit), {})
                )
            quality = self._measure(submission, tree.digest)
            if set(quality.failures.values()) - {NONE_PARSED}:
                raise FailedMeasurementError(quality)
            quality.save(entry)
            write_manifest(entry)

        def load(entry: Path) -> QualityRecord:
            check_manifest(entry)
            quality = QualityRecord.load(entry)
            if quality is None or quality.submission != tree.digest:
                raise ValueError("not of this submission")
            return quality

        try:
            return self.sandbox.cache.load_or_build("quality", key, build, load)
        except FailedMeasurementError as failed:
            return failed.quality

    def _measure(self, submission: Path, digest: str) -> QualityRecord:
        with self.sandbox.cache.session_folder() as folder:
            sources = copy_sources(submission, folder)
            outputs = {part: self._run(folder / part, sources.copies[part]) for part in CodePart}
        reasons = {part: output.reason for part, output in outputs.items() if output.reason is not None}
        figures = {part: output.figures for part, output in outputs.items()}
        return self._record(digest, figures, reasons, _all_left_out(sources, outputs))

    def _run(self, folder: Path, copies: Mapping[str, str]) -> ScbCheckOutput:
        if not copies:
            return ScbCheckOutput(reason=NO_FILES)
        with self.sandbox.cache.session_folder() as scratch:
            workspace = scratch / "submission"
            workspace.mkdir()
            folder.rename(workspace / ROOT)
            shutil.copyfile(DRIVER, workspace / DRIVER.name)
            session = Session(self.sandbox, scratch, workspace, self.subject, ())
            request = self._request(session)
            done = session.judge(request).done
            if done.exit_code is None:
                return ScbCheckOutput(reason=f"scb-check did not end within {TIMEOUT_S:g} s")
            if done.exit_code != 0:
                last = "".join(done.output.splitlines()[-1:])[:MAX_REASON_LENGTH]
                return ScbCheckOutput(reason=f"scb-check ended with exit status {done.exit_code}: {last}".rstrip(": "))
            return parse_output(tail(request.reports / LOG, MAX_LOG), copies)

    def _request(self, session: Session) -> JudgeRequest:
        layout, folder = session.layout, session.folder
        for name in ("tests", "shown", "reports"):
            (folder / name).mkdir()
        assert self.subject.entry is not None, "the lock is never empty"
        python = f"{self.sandbox.subject_env(self.subject.entry)}/bin/python"
        command = [python, "-I", f"{layout.workspace}/{DRIVER.name}", f"{layout.workspace}/{ROOT}"]
        return JudgeRequest(
            argv=layout.entrypoint(command),
            environment=session.environment({}),
            tests=folder / "tests",
            shown=folder / "shown",
            reports=folder / "reports",
            tools=self.tools or folder / "tests",
            files={},
            timeout=TIMEOUT_S,
            entrypoint=command,
        )

    def _record(
        self,
        digest: str,
        figures: Mapping[CodePart, QualityFigures | None],
        reasons: Mapping[CodePart, str],
        left_out: Mapping[str, list[str]],
    ) -> QualityRecord:
        return QualityRecord(
            submission=digest,
            implementation=figures.get(CodePart.IMPLEMENTATION),
            tests=figures.get(CodePart.TESTS),
            reasons=dict(reasons),
            left_out=[
                LeftOut(reason=reason, files=len(paths), first=paths[:SHOWN_PATHS])
                for reason, paths in sorted(left_out.items())
            ],
            incomplete=incomplete_parts(left_out),
            provenance=self.provenance(),
        )


def scb_check_environment(given: EnvironmentSpec | None) -> EnvironmentSpec:
    """The sandbox of the given environment, else that of `local`, and nothing else of it."""
    spec = given or load_environment("local")
    docker = spec.docker and spec.docker.model_copy(update={"extra_mounts": {}, "network": None})
    local = load_environment("local")
    return spec.model_copy(
        update={
            "docker": docker, "python": PYTHON, "commands": local.commands, "environment": VariablesSpec(),
            "setup": SetupSpec(), "limits": LIMITS, "network": "none",
        }
    )  # fmt: skip


def locked_version() -> str:
    version = re.search(r"(?m)^scb-check==(\S+)", LOCK.read_text(encoding="utf-8"))
    assert version is not None
    return version[1]


def _all_left_out(sources: Sources, outputs: Mapping[CodePart, ScbCheckOutput]) -> dict[str, list[str]]:
    left_out = {reason: list(paths) for reason, paths in sources.left_out.items()}
    for part, output in outputs.items():
        for copy, reason in output.left_out.items():
            left_out.setdefault(reason, []).append(sources.copies[part][copy])
    return left_out
