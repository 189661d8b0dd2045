"""Submissions that are no folder: tar archives and mappings of names to contents, unpacked into the cache."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast

from slop_code._arguments import check_path, wrong_argument
from slop_code._io import open_regular, os_error_text
from slop_code.errors import InfrastructureError, SubmissionError
from slop_code.evaluation.evaluator.member_names import MemberNames, refused_member
from slop_code.execution.cancellation import check_cancelled
from slop_code.execution.submission import MAX_BYTES
from slop_code.execution.trees.archive import read_members
from slop_code.execution.trees.tree_writer import ArchiveError, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from slop_code.execution.cache import Cache
    from slop_code.execution.trees.tree_writer import TreeMember

    Member = tuple[tarfile.TarInfo, Iterator[bytes] | None]

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz")
GZIP = b"\x1f\x8b"
MAX_PADDING = 1 << 20
"""Bytes after the end of a compressed archive: tar fills up its last record, usually of 10 KiB."""

FILE_MODE = 0o644
MTIME = 946_684_800
"""Of the files of a mapping: always the same, and after 1980, where the times of zip files begin."""

EXPECTED = "a folder, a tar archive (bytes, a path or a binary file) or a mapping of names to contents"


class BinaryReader(Protocol):
    """A file that is open for reading in binary mode; it need not be seekable."""

    def read(self, size: int, /) -> bytes: ...


SubmissionSource = str | Path | bytes | BinaryReader | Mapping[str, str | bytes]


def check_source(source: object) -> SubmissionSource:
    if isinstance(source, str | Path):
        return check_path("submission", source, EXPECTED)
    if isinstance(source, bytes | Mapping) or callable(getattr(source, "read", None)):
        return cast(SubmissionSource, source)
    raise wrong_argument("submission", source, EXPECTED)


def is_folder(source: SubmissionSource) -> bool:
    """True for a folder, which is evaluated in place. A path with the suffix of an archive may be a folder, too."""
    return isinstance(source, Path) and not (source.name.endswith(TAR_SUFFIXES) and not os.path.isdir(source))


@contextlib.contextmanager
def submission_folder(
    source: SubmissionSource, cache: Cache, *, max_bytes: int | None = None, any_links: bool = False
) -> Iterator[Path]:
    """The folder of a submission; that of an archive or a mapping is a temporary one in the cache.

    A SubmissionError names the member that leads outside of the folder, is of a wrong kind or exceeds the limits.
    `any_links`: symbolic links may lead anywhere, as in a folder. Nothing is ever written or read through them.
    """
    if isinstance(source, Path) and is_folder(source):
        yield source
        return
    with cache.session_folder() as session:
        folder = session / "submission"
        _unpack(source, folder, MAX_BYTES if max_bytes is None else max_bytes, any_links)
        del source  # it may be large, and the folder may wait for long
        yield folder


def _unpack(source: SubmissionSource, folder: Path, max_bytes: int, any_links: bool) -> None:
    try:
        with _members(source) as members:
            write_tree(_checked(members, max_bytes, any_links), folder)
    except ArchiveError as error:
        raise SubmissionError(f"submission: the archive has {error.fact}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        fact = "not a tar archive, plain or compressed with gzip, or one that is damaged or ends early"
        raise SubmissionError(f"submission: {fact}") from error
    except OSError as error:
        raise InfrastructureError(os_error_text(error, folder)) from error


@contextlib.contextmanager
def _members(source: SubmissionSource) -> Iterator[Iterable[Member]]:
    if isinstance(source, Mapping):
        yield (_file(name, content) for name, content in source.items())
    elif isinstance(source, Path):
        with _opened(source) as stream:
            yield _read_tar(stream)
    else:
        yield _read_tar(io.BytesIO(source) if isinstance(source, bytes) else cast(BinaryReader, source))


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_regular(path.resolve(strict=True))
    except (OSError, RuntimeError) as error:  # before 3.13 a loop of links is a RuntimeError
        raise SubmissionError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _file(name: object, content: object) -> Member:
    if not isinstance(name, str):
        raise SubmissionError(f"submission: a name must be a text, found {type(name).__name__}")
    if name.endswith("/"):
        raise refused_member(name, "it is the name of a folder; give files alone, their folders are made")
    if isinstance(content, str):
        try:
            content = content.encode()
        except UnicodeEncodeError as error:
            raise refused_member(name, "its text has characters that cannot be encoded; give bytes") from error
    if not isinstance(content, bytes):
        raise refused_member(name, f"its content must be a text or bytes, found {type(content).__name__}")
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), FILE_MODE, MTIME
    return member, iter([content])


class _Reader:
    """Reads as many bytes as were asked for, unless the source ends. The first bytes may be read twice."""

    def __init__(self, source: BinaryReader) -> None:
        self._source, self._head = source, b""
        self.head = self._head = self.read(len(GZIP))

    def read(self, size: int) -> bytes:
        parts, self._head = [self._head[:size]], self._head[size:]
        left = size - len(parts[0])
        while left > 0:
            check_cancelled()
            part = self._source.read(left)
            if not isinstance(part, bytes):
                raise SubmissionError(f"submission: a file must be open in binary mode, found {type(part).__name__}")
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def _read_tar(source: BinaryReader) -> Iterator[Member]:
    reader = _Reader(source)
    if reader.head != GZIP:
        yield from read_members(reader.read)
        return
    with gzip.GzipFile(fileobj=cast(IO[bytes], reader), mode="rb") as stream:
        yield from read_members(stream.read)
        if len(stream.read(MAX_PADDING + 1)) > MAX_PADDING:  # to its end, where the checksum is
            raise ArchiveError(f"more than {MAX_PADDING >> 20} MiB after its end")


def _checked(members: Iterable[Member], max_bytes: int, any_links: bool) -> Iterator[TreeMember]:
    """The members below the folder, each checked before it is written."""
    names, size = MemberNames(), 0
    for member, content in members:
        parts = names.add(member)
        size += member.size if content is not None else 0
        if size > max_bytes:
            raise refused_member(member.name, f"the files have more than {max_bytes >> 30} GiB with it")
        if parts:
            yield parts, member, content
    if not any_links:
        names.check_links()
