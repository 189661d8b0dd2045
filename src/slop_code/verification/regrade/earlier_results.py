"""Earlier results of a run, kept under a label as a run folder of their own."""

from __future__ import annotations

import datetime
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slop_code._io import read_bounded, write_atomic
from slop_code.errors import ResultError, UsageError
from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT
from slop_code.runs.folders.run_lock import STATE_DIR
from slop_code.runs.result_archive import pack_result, unpack_result
from slop_code.runs.run_layout import LINES_FILE, RESULT_FILE, SUMMARY_FILE, names_or_none
from slop_code.verification.regrade.regrade_record import RECORD_FILE, RegradeRecord

if TYPE_CHECKING:
    from pathlib import Path

EARLIER = f"{STATE_DIR}/earlier"
"""Folder of a run that has a folder for each label. Readers of runs leave it out, as its name is hidden."""

_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


def check_label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise UsageError(f"--label {text}: expected up to 64 letters, digits, '_', '.' and '-', not first '.' or '-'")
    return text


def label_for(run: Path, given: str | None) -> str:
    """The given one, else that of a regrade that was interrupted, else the time."""
    if given is not None:
        return given
    unfinished = [label for label in labels_of(run) if not _is_finished(run / EARLIER / label)]
    return unfinished[-1] if unfinished else f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}"


def labels_of(run: Path) -> list[str]:
    return [name for name in names_or_none(run / EARLIER) if _LABEL.fullmatch(name)]


def records_of(run: Path) -> list[RegradeRecord]:
    """The records of all regrades of a run, in the order in which they were made; damaged ones are left out."""
    dated: list[tuple[int, RegradeRecord]] = []
    for label in labels_of(run):
        path = run / EARLIER / label / RECORD_FILE
        try:
            dated.append((os.lstat(path).st_mtime_ns, RegradeRecord.load(path.parent)))
        except (OSError, ResultError):
            continue
    return [record for _, record in sorted(dated, key=lambda item: item[0])]


def _is_finished(folder: Path) -> bool:
    try:
        return RegradeRecord.load(folder).finished
    except ResultError:
        return False


@dataclass(frozen=True, slots=True)
class EarlierResults:
    run: Path
    label: str

    @property
    def folder(self) -> Path:
        return self.run / EARLIER / self.label

    @property
    def is_complete(self) -> bool:
        """Whether everything was kept before, so that results in the run may be new ones."""
        return os.path.lexists(self.folder / RECORD_FILE)

    def of(self, output: Path) -> Path:
        """The folder in which the earlier result of this folder of a checkpoint is kept."""
        return self.folder / os.path.relpath(output, self.run)

    def is_replaced(self, output: Path) -> bool:
        """Whether the folder has another result than the one that is kept."""
        return _content(output) != _content(self.of(output))

    def keep(self, output: Path, *, stale: bool) -> None:
        """Nothing that is kept is ever overwritten. `stale`: the result is about to be replaced."""
        kept = self.of(output)
        self.refuse_links(kept)
        if os.path.lexists(kept / RESULT_FILE):
            if stale and self.is_replaced(output):
                raise UsageError(f"{kept}: label {self.label} has another result; give another with --label")
        elif stale or not self.is_complete:
            kept.mkdir(parents=True, exist_ok=True)
            unpack_result(pack_result(output), kept)

    def keep_summary(self) -> None:
        for name in (LINES_FILE, SUMMARY_FILE):
            if os.path.lexists(self.run / name) and not os.path.lexists(self.folder / name):
                write_atomic(self.folder / name, read_bounded(self.run / name, SIZE_LIMIT))

    def refuse_links(self, kept: Path) -> None:
        """A link in a run folder could lead anywhere."""
        for path in (kept, *kept.parents):
            if path == self.run:
                return
            if path.is_symlink():
                raise UsageError(f"{path}: a link, in which earlier results are not kept; remove it")


def _content(folder: Path) -> bytes | None:
    try:
        return read_bounded(folder / RESULT_FILE, SIZE_LIMIT)
    except FileNotFoundError:
        return None
