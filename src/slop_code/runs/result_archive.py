"""Archive of a result, a compressed tar of evaluation.json and the files of .scbench, and its delivery to a folder."""

from __future__ import annotations

import errno
import gzip
import io
import re
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from slop_code._io import open_regular, write_atomic
from slop_code.errors import InfrastructureError, ResultError, UsageError
from slop_code.evaluation.report import CorrectnessResults
from slop_code.evaluation.result_files.attempts import attempt_file, keep_attempt
from slop_code.evaluation.result_files.replace_result import OTHER_FOLDER, failed_path, move_result, new_result
from slop_code.evaluation.result_files.stored_record import SIZE_LIMIT
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.runs.checkpoint_lines import CheckpointFacts
from slop_code.runs.run_layout import RESULT_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from slop_code.runs.jobs.job_records import JobResult, Submission

MAX_RAW_FILE = 256 << 20
"""Bytes of a file of .scbench: nothing larger is ever read as evidence."""

MAX_UNPACKED = 1 << 30
"""Bytes of all files of a result together."""

MAX_FILES = 1000
COMPRESSION_LEVEL = 1
GZIP_FORMAT = 31
"""The `wbits` with which zlib expects a gzip header and trailer."""

FATAL = {errno.ENOSPC: "make room", errno.EDQUOT: "make room", errno.EROFS: "make it writable"}
"""Errors that would occur with every other result as well, each with the next step."""

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
_EXPECTED = re.compile(rf"{re.escape(RESULT_FILE)}|{re.escape(REPORTS_DIR)}(/{_NAME}){{1,2}}")


def pack_result(folder: Path) -> bytes:
    """Equal files make equal archives. Links, unexpected names and raw files beyond the limits are left out."""

    def read(name: str, limit: int) -> bytes:
        with open_regular(folder / name) as source:
            return source.read(limit + 1)

    return _pack([RESULT_FILE, *sorted(_raw_files(folder))], read, folder)


def add_attempts(archive: bytes, attempts: Sequence[bytes | None]) -> bytes:
    """The archive with the files of earlier attempts, each in a folder of its own; None for one that left nothing."""
    contents = _contents(archive)
    for number, attempt in enumerate(attempts, start=1):
        for name, content in _contents(attempt).items() if attempt else ():
            contents[attempt_file(number, name)] = content
    return _pack(list(contents), lambda name, _: contents[name], Path())


def _pack(names: Sequence[str], read: Callable[[str, int], bytes], folder: Path) -> bytes:
    """`read` gets a name and the number of bytes beyond which a file is left out."""
    packed, left = io.BytesIO(), MAX_UNPACKED - tarfile.RECORDSIZE
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=COMPRESSION_LEVEL, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in names[:MAX_FILES]:
            left -= 2 * tarfile.BLOCKSIZE  # the header, and the padding of the last block
            limit = max(0, min(left, SIZE_LIMIT if name == RESULT_FILE else MAX_RAW_FILE))
            content = read(name, limit)
            if len(content) > limit:
                if name == RESULT_FILE:
                    raise ResultError(f"{folder / name}: larger than {SIZE_LIMIT} bytes")
                continue
            left -= len(content)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _raw_files(folder: Path) -> Iterator[str]:
    top = folder / REPORTS_DIR
    if top.is_symlink() or not top.is_dir():
        return
    for path in [*top.iterdir(), *(inner for sub in top.iterdir() if _is_folder(sub) for inner in sub.iterdir())]:
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not path.is_symlink() and _EXPECTED.fullmatch(name):
            yield name


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def unpack_result(archive: bytes, folder: Path, foreign_step: str | None = OTHER_FOLDER) -> None:
    """Replace the result in `folder`, evaluation.json last: after a kill there is a whole result or none.

    One call at a time for a folder. A damaged archive is a ResultError, raised before anything is changed.
    `foreign_step`: see `new_result`.
    """
    contents = _contents(archive)
    with new_result(folder, foreign_step) as new:
        for name, content in contents.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            if name != RESULT_FILE:
                (new / name).write_bytes(content)
        write_atomic(new / RESULT_FILE, contents[RESULT_FILE])


def read_archived_results(archive: bytes) -> CorrectnessResults:
    try:
        return CorrectnessResults.model_validate_json(_contents(archive)[RESULT_FILE], strict=True)
    except ValidationError as error:
        raise _damaged(f"{RESULT_FILE}: {error.errors(include_url=False)[0]['msg']}") from error


def _contents(archive: bytes) -> dict[str, bytes]:
    """The content of every file by its name; all names and types are checked before any content is used."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(_decompress(archive)), mode="r:") as tar:
            for member in tar:
                if not _EXPECTED.fullmatch(member.name) or member.name in contents:
                    raise _damaged(f"{member.name!r} is not a name of a result file")
                if member.type != tarfile.REGTYPE or member.issparse():
                    raise _damaged(f"{member.name!r} is not a regular file")
                source = tar.extractfile(member)
                assert source is not None
                contents[member.name] = source.read()
                if len(contents) > MAX_FILES:
                    raise _damaged(f"more than {MAX_FILES} files")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise _damaged(str(error)) from error
    if RESULT_FILE not in contents:
        raise _damaged(f"no {RESULT_FILE}")
    if nested := [name for name in contents if name.rpartition("/")[0] in contents]:
        raise _damaged(f"{nested[0]!r} has a file as its folder")
    return contents


def _decompress(archive: bytes) -> bytes:
    decompressor = zlib.decompressobj(GZIP_FORMAT)
    raw = decompressor.decompress(archive, MAX_UNPACKED + 1)
    if len(raw) > MAX_UNPACKED:
        raise ValueError(f"larger than {MAX_UNPACKED} bytes")
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("truncated, or followed by other data")
    return raw


def _damaged(reason: str) -> ResultError:
    return ResultError(f"damaged result archive: {reason}")


def deliver(
    target: Submission,
    result: JobResult,
    *,
    move: bool,
    keep_verdict: bool = False,
    foreign_step: str | None = OTHER_FOLDER,
) -> CheckpointFacts:
    """The facts of the target: a verdict that cannot be written is none. A full disk ends the run.

    `move`: nobody else needs the result's temporary folder. `keep_verdict`: only a verdict replaces the earlier result.
    `foreign_step`: see `new_result`.
    """
    if target.output is None or result.archive is None:
        return result.facts
    try:
        if keep_verdict and result.facts.state != "evaluated":
            contents = _contents(result.archive)
            keep_attempt(target.output, contents, lambda name, path: path.write_bytes(contents[name]))
        elif move and result.folder is not None:
            with new_result(target.output, foreign_step) as new:
                move_result(result.folder, new)
        else:
            unpack_result(result.archive, target.output, foreign_step)
    except (UsageError, InfrastructureError) as error:
        return _not_written(result.facts, str(error))
    except OSError as error:
        message = f"{failed_path(error, target.output)}: {error.strerror}"
        if error.errno in FATAL:
            raise InfrastructureError(
                f"{message}; every result written before is whole: {FATAL[error.errno]} and start again"
            ) from error
        return _not_written(result.facts, f"{message}; make it writable and evaluate the run again")
    return result.facts


def _not_written(facts: CheckpointFacts, reason: str) -> CheckpointFacts:
    return CheckpointFacts.no_verdict(reason, attempts=facts.attempts) if facts.state == "evaluated" else facts
