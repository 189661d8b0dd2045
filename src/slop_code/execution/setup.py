"""Set-up of submissions, once per content: the commands of the environment, or the Python requirements."""

from __future__ import annotations

import os
import re
import shlex
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from slop_code._io import TooLargeError, digest_of, read_bounded
from slop_code._version import __version__
from slop_code.errors import InfrastructureError
from slop_code.execution.manifest import check_sample_manifest, write_sample_manifest
from slop_code.execution.progress_events import ProgressEvent, ProgressKind
from slop_code.execution.sandbox import PATH, PreparedSubject, SetupJob
from slop_code.execution.submission import tree_digest
from slop_code.execution.uv import network_variables, uv_identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slop_code.execution.sandbox import Sandbox, SetupBox

LAYERS = "layers"
"""Cache entries with the workspace, as set-up commands left it."""

SUBJECTS = "subjects"
PLAIN_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?\s*([<>=!~][^;@/\\]*)?(;[^@/\\]*)?")
ARCHIVE = re.compile(r"\.(whl|zip|tar|tgz|tbz|txz|gz|bz2|xz|zst)\b", re.IGNORECASE)


def prepare_subject(sandbox: Sandbox, submission: Path, hidden: Sequence[Path]) -> PreparedSubject:
    """Run the environment's set-up commands, or install what a Python submission requires; once per content."""
    spec, python = sandbox.spec, sandbox.subject_python()
    commands = [*spec.setup.commands, *spec.setup.eval_commands]
    is_python = spec.interpreter() is not None
    if commands:
        steps = python_steps(python, None) if is_python else []
        steps += [[spec.local.shell or "/bin/sh", "-c", command] for command in commands]
        kind, content = LAYERS, tree_digest(submission)
    elif is_python:
        source, text = python_dependencies(submission)
        content = text if text is not None and is_plain(text) else (tree_digest(submission) if source else "")
        kind, steps = SUBJECTS, python_steps(python, source)
    else:
        return PreparedSubject()
    entry = _load_or_build(sandbox, submission, hidden, kind, content, steps)
    return PreparedSubject(entry, kind == LAYERS, _test_environment(sandbox, entry, kind))


def python_steps(python: str, source: str | None) -> list[list[str]]:
    venv = ["uv", "venv", "--quiet", "--no-config", "--relocatable", "--allow-existing", "--python", python]
    install = ["uv", "pip", "install", "--no-config", "--compile-bytecode", "--link-mode=copy"]
    steps = [[*venv, "{env}"]]
    if source == "requirements.txt":
        install.append("--no-sources")  # a pyproject.toml next to it is ignored
    if source:
        steps.append([*install, "--python", "{env}/bin/python", "-r", source])
    return steps


def python_dependencies(submission: Path) -> tuple[str | None, str | None]:
    """The file that names a Python submission's dependencies, and its text where nothing else matters."""
    for name in ("requirements.txt", "pyproject.toml"):
        path = Path(os.path.realpath(submission / name))
        if submission not in path.parents or not path.is_file():
            continue  # absent, or a pipe or a link that leads out, which uv must not read
        try:
            text = read_bounded(path, 1 << 20).decode("utf-8")
        except (OSError, UnicodeDecodeError, TooLargeError):
            return name, None
        if name == "requirements.txt":
            return name, text
        try:
            settings = tomllib.loads(text)
        except (ValueError, RecursionError):
            return None, None
        project, tools = settings.get("project"), settings.get("tool")
        if isinstance(project, dict) and ("dependencies" in project or "dynamic" in project):
            dependencies = project.get("dependencies")
            # Settings for uv can make a plain name refer to a file of the submission's own.
            own_sources = isinstance(tools, dict) and "uv" in tools
            # So can its own extras, where a dependency has the project's own name.
            own_sources |= "optional-dependencies" in project
            if not isinstance(dependencies, list) or "dynamic" in project or own_sources:
                return name, None
            return name, "\n".join(map(str, dependencies))
    return None, None


def is_plain(requirements: str) -> bool:
    """Names and versions only, and no file, folder, link or option that could install the submission's own code."""
    lines = (line.split("#")[0].strip() for line in requirements.splitlines())
    return all(not line or (PLAIN_REQUIREMENT.fullmatch(line) and not ARCHIVE.search(line)) for line in lines)


def _load_or_build(
    sandbox: Sandbox, submission: Path, hidden: Sequence[Path], kind: str, content: str, steps: Sequence[Sequence[str]]
) -> Path:
    """`content`: the part of the submission that the steps depend on."""
    fixed = [sandbox.spec.environment.env, [__version__, *sandbox.identity(), *uv_identity()]]
    key = digest_of([content, steps, *fixed])

    def run_setup(scratch: Path) -> None:
        deadline = time.monotonic() + sandbox.spec.setup.timeout
        job = SetupJob(
            submission=submission,
            environment=_setup_environment(sandbox, scratch),
            scratch=scratch,
            keep_workspace=kind == LAYERS,
            hidden=hidden,
        )
        env = sandbox.subject_env(scratch)
        with sandbox.setup_box(job) as setup_box:
            for step in steps:
                _run_step(sandbox, setup_box, [word.replace("{env}", env) for word in step], deadline)
        write_sample_manifest(scratch)

    def load(entry: Path) -> Path:
        check_sample_manifest(entry)
        sandbox.check_subject(entry)
        return entry

    return sandbox.cache.load_or_build(kind, key, run_setup, load)


def _run_step(sandbox: Sandbox, setup_box: SetupBox, command: Sequence[str], deadline: float) -> None:
    shown = command[-1] if command[1] == "-c" else shlex.join(command)
    sandbox.progress(ProgressEvent(ProgressKind.RUN_SETUP_COMMAND, shown))
    done = setup_box.run(command, max(0.0, deadline - time.monotonic()))
    if done.exit_code != 0:
        limit = f"did not end within the {sandbox.spec.setup.timeout:g} s for set-up"
        how = limit if done.exit_code is None else f"exited with {done.exit_code}"
        raise InfrastructureError(f"set-up: `{shown}` {how}\n{done.output.strip() or 'it printed nothing'}")


def _setup_environment(sandbox: Sandbox, scratch: Path) -> dict[str, str]:
    layout, given, env = sandbox.layout(scratch), sandbox.variables(), sandbox.subject_env(scratch)
    path = f"{layout.tools}:{given.get('PATH') or PATH}"
    own = {"PATH": path, "UV_PYTHON": sandbox.subject_python()}
    if sandbox.spec.interpreter() is not None:
        # uv and pip prefer these variables to VIRTUAL_ENV: the host's interpreter has packages of its own.
        python = f"{env}/bin/python"
        own = {"PATH": f"{env}/bin:{path}", "UV_PYTHON": python, "PIP_PYTHON": python, "PIP_REQUIRE_VIRTUALENV": "1"}
    return {
        **given,
        **own,
        "HOME": layout.home,
        "LANG": "C.UTF-8",
        "UV_CACHE_DIR": f"{layout.tmp}/uv",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        "VIRTUAL_ENV": env,
        **network_variables(),
        **sandbox.spec.environment.env,
    }


def _test_environment(sandbox: Sandbox, entry: Path, kind: str) -> dict[str, str]:
    """Variables that keep uv offline, and on the submission's own environment, while the tests run."""
    offline = {"UV_OFFLINE": "1", "UV_NO_SYNC": "1", "UV_PYTHON_DOWNLOADS": "never"}
    if sandbox.spec.interpreter() is None:
        return {**offline, "UV_PYTHON": sandbox.subject_python()}
    env = sandbox.subject_env(entry)
    # Set-up commands may have made the `.venv` that `uv run` takes by itself.
    project = {"UV_PROJECT_ENVIRONMENT": env} if kind == SUBJECTS else {}
    return {**offline, **project, "UV_PYTHON": f"{env}/bin/python"}
