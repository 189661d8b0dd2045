"""A result folder as one value: evaluation.json and what lies in .scbench, to be kept, sent and delivered."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from typing import TYPE_CHECKING

from pydantic import ValidationError

from slop_code._io import open_regular, write_atomic
from slop_code.errors import ResultError
from slop_code.evaluation.report import SIZE_LIMIT, CorrectnessResults
from slop_code.execution.cache import remove_tree
from slop_code.execution.sandbox import REPORTS_DIR
from slop_code.runs.discover import RESULT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RAW_LIMIT = 256 << 20
"""For a file of .scbench: nothing larger is ever read as evidence."""

LIMIT = 1 << 30
"""For all of them, unpacked."""

MOST_FILES = 1000
LEVEL = 1
GZIP = 31
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
_EXPECTED = re.compile(rf"{re.escape(RESULT_FILE)}|{re.escape(REPORTS_DIR)}(/{_NAME}){{1,2}}")


def pack(folder: Path) -> bytes:
    """Equal files make equal parcels. Links, odd names and raw files beyond the limits are left out."""
    packed, left = io.BytesIO(), LIMIT - tarfile.RECORDSIZE
    with (
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=LEVEL, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in [RESULT_FILE, *sorted(_raw_files(folder))][:MOST_FILES]:
            left -= 2 * tarfile.BLOCKSIZE  # the header, and what fills the last block
            most = max(0, min(left, SIZE_LIMIT if name == RESULT_FILE else RAW_LIMIT))
            with open_regular(folder / name) as source:
                content = source.read(most + 1)
            if len(content) > most:
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


def unpack(parcel: bytes, folder: Path) -> None:
    """Deliver it: an evaluation.json that is there is whole and of one piece with its .scbench, even after a kill.

    One at a time for a folder. A damaged parcel is a ResultError, and then nothing has changed.
    """
    contents = _contents(parcel)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULT_FILE).unlink(missing_ok=True)
    for left in folder.glob(f".{RESULT_FILE}.*"):  # of writers that were killed
        left.unlink(missing_ok=True)
    _discard(folder / REPORTS_DIR)
    for name, content in contents.items():
        if name != RESULT_FILE:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    write_atomic(folder / RESULT_FILE, contents[RESULT_FILE])


def _discard(path: Path) -> None:
    if _is_folder(path):
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def results_in(parcel: bytes) -> CorrectnessResults:
    try:
        return CorrectnessResults.model_validate_json(_contents(parcel)[RESULT_FILE], strict=True)
    except ValidationError as error:
        raise _damaged(f"{RESULT_FILE}: {error.errors(include_url=False)[0]['msg']}") from error


def _contents(parcel: bytes) -> dict[str, bytes]:
    """Every file by its name, all of it checked before any of it is used."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(_expand(parcel)), mode="r:") as tar:
            for member in tar:
                if not _EXPECTED.fullmatch(member.name) or member.name in contents:
                    raise _damaged(f"{member.name!r} does not belong there")
                if member.type != tarfile.REGTYPE or member.issparse():
                    raise _damaged(f"{member.name!r} is no plain file")
                source = tar.extractfile(member)
                assert source is not None
                contents[member.name] = source.read()
                if len(contents) > MOST_FILES:
                    raise _damaged(f"more than {MOST_FILES} files")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise _damaged(str(error)) from error
    if RESULT_FILE not in contents:
        raise _damaged(f"no {RESULT_FILE}")
    if both := [name for name in contents if name.rpartition("/")[0] in contents]:
        raise _damaged(f"{both[0]!r} lies in what is a file")
    return contents


def _expand(parcel: bytes) -> bytes:
    expander = zlib.decompressobj(GZIP)
    raw = expander.decompress(parcel, LIMIT + 1)
    if len(raw) > LIMIT:
        raise ValueError(f"larger than {LIMIT} bytes")
    if not expander.eof or expander.unused_data:
        raise ValueError("it does not end where it should")
    return raw


def _damaged(why: str) -> ResultError:
    return ResultError(f"a damaged parcel: {why}")
