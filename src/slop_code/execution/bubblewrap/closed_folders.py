"""Access of root's boxes to files in closed folders, as after `sudo slop-code` in a home of mode 0700.

A box maps one user of the host. Where that user is root, the box's root may do with root's own files what it likes,
and with those of others only what their modes allow to everyone. So the evaluator first opens the paths that bwrap
mounts from closed folders, in a mount namespace of its own; a submission with closed files is copied.
"""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from slop_code.execution.bubblewrap.probe_results import ProbeResults
from slop_code.execution.bubblewrap.system_mounts import ROOTS, is_within
from slop_code.execution.helper import helper_path
from slop_code.execution.process import succeeds
from slop_code.execution.submission import copy_whole_tree, walk_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from slop_code.execution.sandbox import JudgeJob, SetupJob

    Job = TypeVar("Job", JudgeJob, SetupJob)

BIND_OPTIONS = ("--bind", "--ro-bind", "--bind-try", "--ro-bind-try")
OVERLAY_OPTION, LAYER_OPTION = "--overlay", "--overlay-src"
SYSTEM_FOLDERS = (*ROOTS, "/etc")
KERNEL_FOLDERS = ("/proc", "/sys", "/dev")
OPENED_COPY = "opened"
"""Name in a session's folder."""


def open_paths(argv: Sequence[str], user: int | None = None) -> list[str]:
    """The command of bwrap in a mount namespace in which its root reaches bwrap itself and every source.

    `user`: the user of the host whom the boxes run as, and who owns root's files in all sources but the system's. None:
    the evaluator's. Without privileges a box reaches what the evaluator reaches, so there is nothing to open.
    """
    if os.geteuid() != 0:
        return list(argv)
    closed: dict[str, str] = {}
    mapped: dict[str, None] = {}
    for source, is_system in [*((file, False) for file in _package_files(argv[0])), *_sources(argv)]:
        for path in (os.path.realpath(source), source):  # a link is gone when the folder that it is in is covered
            if not os.path.exists(path):
                continue
            if folder := closed_folder(path, user):
                closed[path] = folder
            if user is not None and not is_system and can_map(path):
                mapped[path] = None
    plain = [path for path in closed if path not in mapped]
    if not closed and user is None:
        return list(argv)
    folders = [*dict.fromkeys(closed.values())]
    outermost = [folder for folder in folders if not is_within(folder, [other for other in folders if other != folder])]
    covers = [word for folder in outermost for word in ("--cover", folder)]
    identity = [] if user is None else ["--as", str(user)]
    paths = [*plain, "--map", *mapped] if mapped else plain
    return [str(helper_path()), "open-paths", *identity, *covers, *paths, "--", *argv]


def _package_files(binary: str) -> list[str]:
    """The bundled binary and its libraries; where the system's own is, everyone can go."""
    if is_within(binary, ["/usr", "/bin", "/opt"]):
        return []
    package = Path(binary).parent.parent
    return [str(package), f"{package}.libs"]


def _sources(argv: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each with whether it is the system's; the values of variables are skipped."""
    words = iter(argv)
    for word in words:
        if word == "--":
            return
        if word == "--setenv":
            next(words), next(words)
        elif word in BIND_OPTIONS:
            source, target = next(words), next(words)
            yield source, is_within(source, KERNEL_FOLDERS) or (source == target and is_within(source, SYSTEM_FOLDERS))
        elif word == OVERLAY_OPTION:  # both folders have to be on one mount
            yield os.path.dirname(next(words)), False
        elif word == LAYER_OPTION:
            source = next(words)
            yield source, source in ("/usr/bin", "/bin")


_mappable: ProbeResults[bool] = ProbeResults(bool)


def can_map(path: str | Path) -> bool:
    """Not every file system can be mounted with other owners."""
    command = [str(helper_path()), "open-paths", "--as", "1", "--map", str(path), "--", "/bin/true"]
    return _mappable.get(os.stat(path).st_dev, lambda: succeeds(command))


def closed_folder(path: str, user: int | None = None) -> str | None:
    """The first folder on the way to a path that root of a box cannot search."""
    folders = reversed(Path(path).parents)
    closed = (folder for folder in folders if not _allows(os.stat(folder), stat.S_IXOTH, user))
    return next(map(os.path.realpath, closed), None)


def _allows(info: os.stat_result, right: int, user: int | None = None) -> bool:
    """`right`: as one of everyone. The owner root has all rights, if the group is root's, too."""
    if user is not None:
        return bool(info.st_mode & right)
    if info.st_uid == 0:
        return info.st_gid == 0 or bool(info.st_mode & right << 6)
    return bool(info.st_mode & (right << 3 if info.st_gid == os.getegid() else right))


def with_open_submission(job: Job, user: int | None = None) -> Job:
    """The job with a copy of the submission, owned by root, if a box could not use it as the evaluator does."""
    if os.geteuid() != 0 or job.submission is None:
        return job
    if _is_open(job.submission) and (user is None or can_map(job.submission)):
        return job
    target = job.scratch / OPENED_COPY
    target.mkdir(mode=0o700)
    copy_whole_tree(job.submission, target, job.scratch, "--no-preserve=ownership")
    return replace(job, submission=target)


def _is_open(root: Path) -> bool:
    """Links have no modes, and pipes and sockets no content."""
    if not _is_readable(os.stat(root)):
        return False
    return all(_is_readable(entry.info) for entry in walk_tree(root))


def _is_readable(info: os.stat_result) -> bool:
    if stat.S_ISDIR(info.st_mode):
        return _allows(info, stat.S_IROTH) and _allows(info, stat.S_IXOTH)
    return not stat.S_ISREG(info.st_mode) or _allows(info, stat.S_IROTH)
