"""Hard limits of this process that are too low: boxes inherit them, and verdicts would depend on them."""

from __future__ import annotations

import resource

UNLIMITED = resource.RLIM_INFINITY
MIN_HARD_LIMITS = (
    ("RLIMIT_DATA", "-d", UNLIMITED, 1),
    ("RLIMIT_AS", "-v", UNLIMITED, 1),
    ("RLIMIT_CPU", "-t", UNLIMITED, 1),
    ("RLIMIT_NOFILE", "-n", 4096, 1),
    ("RLIMIT_NPROC", "-u", 512, 1),
    ("RLIMIT_STACK", "-s", 8 << 20, 1024),
)
"""Name, option of `ulimit`, the least value, and the unit of `ulimit`; `slopbox reap` sets the soft limits.

`RLIMIT_FSIZE` is not here: how large files may become is up to the sandbox."""


def low_limit_reason(file_size: int = UNLIMITED) -> str | None:
    """Why no verdict can be had under the hard limits of this process, with what to do.

    `file_size`: the largest file that judge and subject may write.
    """
    for name, option, least, unit in (("RLIMIT_FSIZE", "-f", file_size, 1024), *MIN_HARD_LIMITS):
        hard = resource.getrlimit(getattr(resource, name))[1]
        if hard != UNLIMITED and (least == UNLIMITED or hard < least):
            wanted = "unlimited" if least == UNLIMITED else f"{-(-least // unit)} or more"
            return (
                f"verdicts would depend on the hard limit {name} of this process, which is {hard}; start slop-code "
                f"where `bash -c 'ulimit -H {option}'` prints {wanted}"
            )
    return None
