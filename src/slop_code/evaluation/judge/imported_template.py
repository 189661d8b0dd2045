"""Imported template: a script with pytest and the plugins of the test tools in memory, and nothing of any problem.

Each judge that it forks runs the console script `pytest` as a cold judge does: as the module `__main__`, with the
arguments, the environment and the working directory of the request.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
import warnings
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

TOOL = "pytest"
MAX_REASON_SIZE = 1000
PLUGINS = ("ctrf", "pytest_jsonreport", "pytest_metadata", "pytest_timeout")
"""Modules of the test tools. Those of other packages are imported anew in each judge, as nothing is known of them."""

BLOCKED = ["-p", "no:cacheprovider"]
"""Arguments of every judge; pytest does not import what they turn off."""


def load_plugins() -> str | None:
    """Imports the plugins as pytest does, with rewritten assertions; the reason if a judge would notice."""
    from _pytest.assertion import install_importhook
    from _pytest.config import get_config

    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        config = get_config(BLOCKED)
        hook = install_importhook(config)
        try:
            config._mark_plugins_for_rewrite(hook, False)
            config.pluginmanager.load_setuptools_entrypoints("pytest11")
        finally:
            sys.meta_path.remove(hook)
    for plugin, package in config.pluginmanager.list_plugin_distinfo():
        if not str(getattr(plugin, "__name__", "")).startswith(PLUGINS):
            return f"the plugin {package.project_name} may have read a clock or started a thread when it was imported"
    # A cold judge reports such a warning; it is given once only, and would be lost here.
    return f"a plugin of the test tools warns when it is imported: {recorded[0].message}" if recorded else None


def console_script(arguments: Sequence[str]) -> tuple[types.CodeType, dict[str, Any]]:
    """The code and the namespace of pytest's console script, which becomes the module `__main__`."""
    script = os.path.join(os.path.dirname(sys.executable), TOOL)
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    sys.argv[:] = [script, *arguments]
    sys.orig_argv[:] = [sys.executable, script, *arguments]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__.update(
        {
            "__annotations__": {},
            "__file__": script,
            "__cached__": None,
            "__loader__": SourceFileLoader("__main__", script),
        },
        __builtins__=sys.modules["builtins"],
    )
    return code, main.__dict__


def set_environment(environment: dict[str, str]) -> None:
    """Folders of PYTHONPATH are in `sys.path`, which Python made for the template."""
    old, new = (value.split(os.pathsep) for value in (os.environ.get("PYTHONPATH", ""), environment["PYTHONPATH"]))
    if old != new:
        sys.path[:] = [*new, *(folder for folder in sys.path if folder not in old)]
    os.environ.clear()
    os.environ.update(environment)


def serve() -> tuple[types.CodeType, dict[str, Any]]:
    """Returns only in a new judge."""
    reason = load_plugins()
    present = set(sys.modules)
    fork_server: Any = importlib.import_module("slop_code_fork_server")
    server = fork_server.take_socket()
    if reason is not None:
        fork_server.answer(server, refused=reason[:MAX_REASON_SIZE])
        os._exit(0)
    fork_server.freeze_memory()
    evaluation = fork_server.serve(server, "imported")
    request = evaluation.request
    try:
        fork_server.replace_descriptors(evaluation.log, [1, 2], nulls=[0])
        fork_server.restart_process()
        fork_server.hide_modules(present)
        set_environment(request["environment"])
        return console_script(request["argv"][request["argv"].index(TOOL) + 1 :])
    except BaseException as error:
        fork_server.fail(error)
        raise


if __name__ == "__main__":
    exec(*serve())  # noqa: S102  (the console script, with as few frames below it as possible)
