"""bwrap's arguments for the box of a judge template.

The box has the judge's view of tools and tests, without any submission. Boxes of evaluations are made inside it, so
that a forked judge has the capabilities to enter them. For that it also has the host paths that their arguments name.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from slop_code.execution.bubblewrap.box_arguments import (
    ALL_PROC,
    HOME,
    JUDGE,
    NEW_ROOT,
    RESOLVER,
    TOOLS,
    WORKSPACE,
    set_environment,
)
from slop_code.execution.bubblewrap.bwrap_binary import CONTAINED, OUTER_NAMESPACES, bwrap
from slop_code.execution.bubblewrap.cgroups import group_parents
from slop_code.execution.bubblewrap.system_mounts import ETC_FILES, further_arguments, system_arguments
from slop_code.execution.helper import LAUNCHER, helper_path
from slop_code.execution.sandbox import REPORTS_DIR, TESTS_DIR
from slop_code.execution.templates import DESCRIPTOR_VARIABLE
from slop_code.execution.uv import uv_paths

if TYPE_CHECKING:
    from pathlib import Path

    from slop_code.execution.cache import Cache
    from slop_code.execution.sandbox import JudgeRequest, TemplateSpec


def template_arguments(
    template: TemplateSpec, request: JudgeRequest, cache: Cache, prefix: str, folder: Path, descriptor: int
) -> list[str]:
    """`request` names the tests and the judge's files, `prefix` is that of the submission's interpreter.

    `folder` has the template's own files, and `descriptor` is that of its socket.
    """
    (folder / "settings.json").write_text(template.settings)
    uv, uvx = uv_paths()
    both = (sys.base_prefix, prefix)
    sources = [uv, uvx, ETC_FILES, helper_path(), cache.root]
    files = {**request.files, "settings.json": folder / "settings.json"}
    tests = ["--ro-bind", str(request.tests), f"{WORKSPACE}/{TESTS_DIR}"] if template.kind == "collected" else []
    folders = ("/tmp", NEW_ROOT, "/slop/tmp", HOME, f"{WORKSPACE}/{REPORTS_DIR}")
    own = {"TMPDIR": "/slop/tmp", DESCRIPTOR_VARIABLE: str(descriptor)}
    environment = {"HOME": HOME, "UV_TOOL_DIR": "/slop/tmp/tools", **template.environment, **own}
    return [
        bwrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-net", *OUTER_NAMESPACES, *CONTAINED,
        "--cap-add", "ALL",
        *system_arguments(prefixes=both), *RESOLVER, *further_arguments(sources, both),
        "--bind", str(cache.sessions), str(cache.sessions),
        *[word for parent in group_parents() for word in ("--bind", str(parent), str(parent))],
        # The host's /proc lets `init` mount one of this box's own over it, which nested boxes need in their turn.
        "--proc", "/proc", "--bind", "/proc", ALL_PROC, "--dev", "/dev",
        *[word for path in folders for word in ("--dir", path)], *tests,
        *[word for name, file in files.items() for word in ("--ro-bind", str(file), f"{JUDGE}/{name}")],
        "--overlay-src", str(cache.uv), "--tmp-overlay", f"{JUDGE}/uv-cache",
        "--ro-bind", str(uv), f"{TOOLS}/uv", "--ro-bind", str(uvx), f"{TOOLS}/uvx",
        "--ro-bind", str(helper_path()), f"{TOOLS}/{LAUNCHER}", "--ro-bind", str(helper_path()), "/slop/box",
        "--chdir", WORKSPACE, *set_environment(environment), "--",
        "/slop/box", "init", "--proc", ALL_PROC, "--judge", *template.argv,
    ]  # fmt: skip
