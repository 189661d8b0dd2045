"""Token of the reward service: given by the operator, or made at the first start and stored."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from slop_code._io import TooLargeError, read_bounded
from slop_code.errors import UsageError
from slop_code.execution.cache import check_owner

FILE_NAME = "token"
"""In the state folder, so that a client knows the path before the service starts, and restarts keep the token.

No box of a submission mounts that folder: it is one of the hidden folders, which bubblewrap covers where they are
within the system, and containers mount nothing of the host unless configured.
"""

MIN_LENGTH = 16
MAX_LENGTH = 4096


def make_state_folder(state: Path) -> None:
    """Made where there is none. Whoever may write to it could choose the token, and the results of durable jobs."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_owner(state, "the state folder", "give another one with --state")


def stored_token_file(state: Path) -> Path:
    """Made where there is none, with a new token."""
    make_state_folder(state)
    file = state / FILE_NAME
    if not file.exists():
        with tempfile.NamedTemporaryFile("w", dir=state, prefix=f".{FILE_NAME}.") as new:  # its mode is 0600
            new.write(f"{secrets.token_urlsafe(32)}\n")
            new.flush()
            os.fsync(new.fileno())
            with contextlib.suppress(FileExistsError):  # another server was quicker, and its clients may have read it
                os.link(new.name, file)
    return file


def read_token(file: Path) -> str:
    try:
        real = Path(os.path.realpath(file))  # Kubernetes mounts a secret as a link
        text = read_bounded(real, MAX_LENGTH).decode()
    except TooLargeError as error:
        raise UsageError(f"{file}: larger than {MAX_LENGTH} bytes; give the file of a token") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}; "
            "give, with --token-file, a text file that this user can read"
        ) from error
    return checked_token(text.strip(), str(file))


def checked_token(token: str, source: str) -> str:
    if len(token) < MIN_LENGTH or not token.isascii() or not token.isprintable():
        expected = f"a token of at least {MIN_LENGTH} printable ASCII characters"
        raise UsageError(f"{source}: expected {expected}, such as `head -c 32 /dev/urandom | base64` prints")
    return token
