"""What a test hands over by path becomes visible to the subject, as in `show.c`."""

from __future__ import annotations

import os
import stat

from slop_code.execution.helper.fallback.shared import DONE_PATH, PATH_MAX, SHOWN_PATH, die, make_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CODE = (b".py", b".pyc", b"/pytest.ini")
SEPARATORS = b":;,'\" \t\n=)]}"
NAME_MAX = 255


def is_code(path: bytes) -> bool:
    """Tests themselves are never handed over: a subject can make a test repeat a name that it gave it."""
    return path.endswith(CODE) or b"__pycache__" in path


def is_private(variable: bytes) -> bool:
    """pytest's own variables name the test that is running: not the subject's business."""
    return variable.startswith(b"PYTEST_")


def copy_file(source: bytes, target: bytes) -> None:
    partial = b"%s.%d~" % (target, os.getpid())
    try:
        with open(source, "rb") as reader, open(partial, "wb") as writer:
            while chunk := reader.read(65536):
                writer.write(chunk)
            os.fchmod(writer.fileno(), os.fstat(reader.fileno()).st_mode & 0o777)
        os.rename(partial, target)
    except OSError:
        try:
            os.unlink(partial)
        except OSError:
            pass
        raise


def copy_shown(source: bytes, target: bytes) -> None:
    mode = os.stat(source).st_mode
    if is_code(source) or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return
    if stat.S_ISREG(mode):
        if not os.path.lexists(target):
            copy_file(source, target)
        return
    try:
        os.mkdir(target, 0o755)
    except FileExistsError:
        pass
    for name in os.listdir(source):
        copy_shown(source + b"/" + name, target + b"/" + name)


def show(relative: bytes, source: bytes) -> None:
    """What was copied whole is noted; a file of a folder may have come alone before it."""
    target = SHOWN_PATH + b"/" + relative
    done = DONE_PATH + b"/" + relative.replace(b"/", b"\\")
    notable = len(relative) <= NAME_MAX
    if len(target) >= PATH_MAX or (notable and os.path.lexists(done)):
        return
    make_folders(os.path.dirname(target), 0o755)
    try:
        copy_shown(source, target)
    except OSError as error:
        die(f"cannot hand over {os.fsdecode(relative)}", error)
    if notable:
        try:
            os.close(os.open(done, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            pass


def resolve(path: bytes) -> bytes | None:
    """Where the kernel comes out; it, unlike realpath, follows no link of the subject's."""
    try:
        descriptor = os.open(path, os.O_PATH)
    except (OSError, ValueError):
        return None
    try:
        return os.readlink(b"/proc/self/fd/%d" % descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def consider(path: bytes, tests: bytes) -> bool:
    """Whether `path` is inside the tests folder; then it is shown, but never the whole folder."""
    resolved = resolve(path)
    if resolved == tests:
        return True
    if resolved is None or not resolved.startswith(tests + b"/") or is_code(resolved[len(tests) :]):
        return False
    show(resolved[len(tests) + 1 :], resolved)
    return True


def consider_text(text: bytes, tests: bytes) -> None:
    """The longest existing path that begins at each place; a list or a sentence may go on behind it."""
    found = text.find(tests)
    while found >= 0:
        path = text[found : found + PATH_MAX - 1]
        while len(path) >= len(tests) and not consider(path, tests):
            path = path[: max(0, *(path.rfind(separator) for separator in SEPARATORS))]
        found = text.find(tests, found + 1)


def show_call(argv: Sequence[bytes], variables: Iterable[bytes], cwd: bytes, tests: bytes) -> None:
    consider_text(cwd, tests)
    for word in argv[1:]:
        consider_text(word, tests)
        if not word.startswith((b"/", b"-")):
            consider(word, tests)
        value = word.partition(b"=")[2]
        if value and not value.startswith(b"/"):
            consider(value, tests)
    for variable in variables:
        if not is_private(variable) and not variable.startswith(b"SCBENCH_ASSET"):
            consider_text(variable, tests)
