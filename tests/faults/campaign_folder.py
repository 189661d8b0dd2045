"""Folder of one campaign: its cache, its runs, and the evaluators that are started there."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slop_code.execution.cache import Cache
from tests.faults import checks
from tests.faults.baseline import (
    CHECKPOINTS,
    KINDS,
    ONCE,
    PATIENCE_S,
    PROBLEM,
    PROBLEMS,
    RESULT,
    SubmissionKind,
    digest_of,
    interruptible,
    link_tree,
    write_snapshot,
)
from tests.faults.repeated_work import RecordedEvent
from tests.process_checks import ends

if TYPE_CHECKING:
    import signal
    from pathlib import Path

    from tests.faults.baseline import Baseline
    from tests.faults.repeated_work import Stamps, StoredEntry

RUNS = 1
DISK = "16m"
MOUNTED = ("runs", "tmp", "cache/results", "cache/sessions")
"""Small disks of their own, so that each can be full alone."""


class Evaluator:
    """A slop-code that was started."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process, self._output = process, output

    def wait(self, seconds: float) -> bool:
        """Whether it ended in that time."""
        return self.process.poll() is not None or ends(self.process.pid, seconds)

    def send(self, number: signal.Signals, *, group: bool = False) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, number) if group else self.process.send_signal(number)

    def end(self) -> int:
        """Its exit status; one that does not end is killed, and that is -9 and said so."""
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with self._output.open("a") as file:
                file.write(f"\n(it did not end within {PATIENCE_S} s)\n")
            return self.process.wait()

    @property
    def said(self) -> str:
        return self._output.read_text(errors="replace")


@dataclass
class Single:
    snapshot: Path
    checkpoint: str
    output: Path


@dataclass
class CampaignFolder:
    baseline: Baseline
    folder: Path
    disks: bool = False
    """Whether it has small disks; only where this process has its mounts for itself."""

    known: dict[str, SubmissionKind] = field(default_factory=dict)
    """Every submission that was ever here, by its digest."""

    pids: list[int] = field(default_factory=list)
    touched: set[Path] = field(default_factory=set)
    """Results that a fault has given a reason to be done again."""

    damaged: set[Path] = field(default_factory=set)
    """Results that a fault itself has damaged, and that were not made again yet."""

    spoilt: set[Path] = field(default_factory=set)
    """Entries of the store that a fault itself has damaged."""

    others: set[str] = field(default_factory=set)
    """Digests of what a fault has put in the place of a submission for a while."""

    before: Stamps = field(default_factory=dict)
    """Which files the finished results were when the fault began."""

    kept: dict[Path, StoredEntry] = field(default_factory=dict)
    """The same of the store."""

    began: float = field(default_factory=time.time)

    alone: bool = False
    """Whether a single evaluation was disturbed in this round."""

    round: int = 0
    events_read: int = 0

    def __post_init__(self) -> None:
        for part in (*MOUNTED, "problems"):
            (self.folder / part).mkdir(parents=True)
            if self.disks and part in MOUNTED:
                mount(self.folder / part)
        for part in ONCE:
            if (self.baseline.cache / part).is_dir():
                link_tree(self.baseline.cache / part, self.cache.root / part)
        if self.baseline.sandbox == "docker":
            for part in ("support", "layers"):
                if (self.baseline.cache / part).is_dir():
                    link_tree(self.baseline.cache / part, self.cache.root / part)
        shutil.copytree(PROBLEMS / PROBLEM, self.problem, ignore=shutil.ignore_patterns("__pycache__"))
        self.begin_round()

    @property
    def cache(self) -> Cache:
        return Cache(self.folder / "cache")

    @property
    def problem(self) -> Path:
        return self.folder / "problems" / PROBLEM

    @property
    def top(self) -> Path:
        return self.folder / "runs" / str(self.round)

    @property
    def runs(self) -> list[Path]:
        return [self.top / str(number) for number in range(RUNS)]

    @property
    def single(self) -> Single:
        return Single(self.top / "single/snapshot", "checkpoint_1", self.top / "single/out")

    def snapshots(self) -> list[Path]:
        return [run / PROBLEM / checkpoint / "snapshot" for run in self.runs for checkpoint in CHECKPOINTS]

    def submission_kind(self, snapshot: Path) -> SubmissionKind:
        """As it was at first: by its index, so that every kind comes with every checkpoint."""
        if snapshot == self.single.snapshot:
            return SubmissionKind(list(KINDS)[self.round % 3], "checkpoint_1")
        index = self.snapshots().index(snapshot)
        return SubmissionKind(list(KINDS)[(index * 2 + self.round) % 3], snapshot.parent.name)

    def begin_round(self) -> None:
        self.alone = False
        for snapshot in [*self.snapshots(), self.single.snapshot]:
            self.write(snapshot)

    def write(self, snapshot: Path, kind: str | None = None, *, of: Path | None = None) -> str:
        """Its digest. `of`: the snapshot that it is to take the place of."""
        submission = self.submission_kind(of or snapshot)
        name = str((of or snapshot).relative_to(self.folder))
        digest = write_snapshot(snapshot, kind or submission.kind, name)
        self.known[digest] = SubmissionKind(kind or submission.kind, submission.checkpoint)
        return digest

    def results(self) -> list[Path]:
        """Those of the round that are there."""
        folders = [self.single.output, *(snapshot.parent for snapshot in self.snapshots())]
        return [folder / RESULT for folder in folders if (folder / RESULT).exists()]

    def of_runs(self) -> list[Path]:
        return [path for path in self.results() if path.parent != self.single.output]

    def excused(self) -> set[str]:
        """Digests of submissions that a fault has given a reason to be done again."""
        return {digest_of(path.parent / "snapshot") for path in self.touched} | self.others

    def checkpoint(self, digest: str) -> str:
        submission = self.known.get(digest)
        return submission.checkpoint if submission else ""

    def start(self, *, whole: bool, **further: str) -> Evaluator:
        problems, output = self.folder / "problems", self.folder / "said"
        if whole:
            words = self.baseline.eval_words(problems, *self.runs)
        else:
            single, self.alone = self.single, True
            words = self.baseline.single_words(problems, single.snapshot, single.checkpoint, single.output)
        variables = self.baseline.variables(self.cache.root, TMPDIR=str(self.folder / "tmp"), **further)
        with output.open("wb") as file:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=variables,
                start_new_session=True,
                preexec_fn=interruptible,
            )
        self.pids.append(process.pid)
        return Evaluator(process, output)

    def calm(self, *words: str) -> tuple[int, str]:
        """Another command of slop-code to its end, with the campaign's cache."""
        variables = self.baseline.variables(self.cache.root, TMPDIR=str(self.folder / "tmp"))
        done = subprocess.run([*self.baseline.program, *words], env=variables, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def new_events(self) -> list[RecordedEvent]:
        """Which evaluations of runs have begun, and failed, since the last time."""
        file = self.folder / "record"
        lines = file.read_text().splitlines() if file.exists() else []
        new, self.events_read = lines[self.events_read :], len(lines)
        return [
            RecordedEvent(what, start, int(attempt), digest) for what, start, attempt, digest in map(str.split, new)
        ]

    def close(self) -> None:
        for part in reversed(MOUNTED):
            if self.disks:
                subprocess.run(["umount", "--lazy", str(self.folder / part)], check=False)
        for _ in checks.left_running(self):  # one that is being killed may still make a file
            pass
        shutil.rmtree(self.folder, ignore_errors=True)


def mount(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0700", "faults", str(folder)], check=True)


def own(path: Path) -> None:
    """Make it a file of its own: what is a hard link into another cache must not change there."""
    with contextlib.suppress(FileNotFoundError):
        copy = path.with_name(f".{path.name}.own")
        shutil.copy2(path, copy)
        copy.replace(path)
