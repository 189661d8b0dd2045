"""Members of tar archives, one by one, also such as no program of ours would write."""

from __future__ import annotations

import tarfile

from slop_code.execution.trees.archive import STATUS, pack_end

END = pack_end()


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % tarfile.BLOCKSIZE)


def member(
    name: str,
    kind: bytes = tarfile.REGTYPE,
    *,
    content: bytes = b"",
    size: int | None = None,
    target: str = "",
    owner: tuple[int, int] = (0, 0),
    format: int = tarfile.PAX_FORMAT,
) -> bytes:
    """A `size` may say something else than the content's."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    info.uid, info.gid = owner
    info.size = len(content) if size is None else size
    return info.tobuf(format, "utf-8", "surrogateescape") + padded(content)


def attributes(text: bytes, kind: bytes = tarfile.XHDTYPE, *, size: int | None = None) -> bytes:
    """A header of pax attributes, for the member behind it."""
    return member("attributes", kind, content=text, size=size, format=tarfile.USTAR_FORMAT)


def line(text: bytes) -> bytes:
    """One pax attribute, `key=value`: its length stands before it and counts itself."""
    length = next(n for n in range(len(text), len(text) + 10) if n == len(str(n)) + len(text) + 2)
    return b"%d %s\n" % (length, text)


def patched(header: bytes, offset: int, field: bytes) -> bytes:
    """Other bytes in a header, with the checksum that belongs to them."""
    block = bytearray(header[: tarfile.BLOCKSIZE])
    block[offset : offset + len(field)] = field
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + header[tarfile.BLOCKSIZE :]


def exit_status(status: int) -> bytes:
    return member(STATUS, content=str(status).encode())
